"""Which batches of a fetch belong to transactions that were aborted."""

from __future__ import annotations

from _heapq import heapify, heappop

from wire.records import RecordBatch, tuples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.schemas.fetch import AbortedTransaction

_ABORT_KEY = b"\x00\x00\x00\x00"
"""Version 0, type 0; a commit marker has type 1."""


class AbortedTransactions:
    """The aborted transactions of one fetched partition. Ask about each batch, in log order."""

    __slots__ = ("_by_first_offset", "_open")

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        # (first offset, producer id): a transaction begins with its first batch.
        self._by_first_offset = [(each.first_offset, each.producer_id) for each in aborted]
        heapify(self._by_first_offset)
        self._open: set[int] = set()
        """Producers inside an aborted transaction: it ends with its marker."""

    def has(self, batch: RecordBatch) -> bool:
        """Return whether an aborted transaction wrote the batch. An abort marker ends it."""
        producer_id = batch.producer_id
        if producer_id < 0:
            return False
        while self._by_first_offset and self._by_first_offset[0][0] <= batch.last_offset:
            self._open.add(heappop(self._by_first_offset)[1])
        if batch.is_control:
            if producer_id in self._open and _is_abort(batch):
                self._open.discard(producer_id)
            return False
        return batch.is_transactional and producer_id in self._open


def _is_abort(batch: RecordBatch) -> bool:
    for record in tuples(batch):
        key = record[2]
        return key is not None and key[2:4] == _ABORT_KEY[2:4]
    return False
