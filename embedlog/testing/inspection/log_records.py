"""Counting the records of a log, without decoding them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from wire.records.batch import iter_batches

if TYPE_CHECKING:
    from embedlog.storage.log.log import Log
    from embedlog.storage.segments.indexes.transaction import AbortedTransaction
    from wire.records.batch import RecordBatch
    from wire.records.legacy import LegacyBatch

_READ_SIZE = 1 << 20

UNCOMMITTED, COMMITTED = "read_uncommitted", "read_committed"
ISOLATIONS = (UNCOMMITTED, COMMITTED)


def has_records(log: Log, offset: int, end_offset: int, *, is_committed: bool) -> bool:
    """Return whether there is a record from `offset` on; markers of transactions do not count.

    `is_committed`: aborted records do not count either.
    """
    aborted = log.transactions.aborted(offset, end_offset) if is_committed else []
    return any(
        not (batch.is_control or _is_aborted(batch, aborted))
        for batch in _batches(log, offset, end_offset)
    )


class RecordCount:
    """The number of records of one log, counted up as the log grows."""

    def __init__(self, *, is_committed: bool) -> None:
        """`is_committed`: leave out aborted records, and records of open transactions."""
        self.count = 0
        self._is_committed = is_committed
        self._next_offset = 0

    def follow(self, log: Log) -> int:
        """Count the records since the last call; return the number of all."""
        offsets = log.offsets
        end = offsets.last_stable_offset if self._is_committed else offsets.high_watermark
        start = max(self._next_offset, offsets.log_start_offset)
        if start < end:
            aborted = log.transactions.aborted(start, end) if self._is_committed else []
            for batch in _batches(log, start, end):
                if not (batch.is_control or _is_aborted(batch, aborted)):
                    self.count += batch.record_count
            self._next_offset = end
        return self.count


def _is_aborted(batch: RecordBatch | LegacyBatch, aborted: list[AbortedTransaction]) -> bool:
    return batch.is_transactional and any(
        each.producer_id == batch.producer_id
        and each.first_offset <= batch.base_offset <= each.last_offset
        for each in aborted
    )


def _batches(log: Log, offset: int, end_offset: int) -> Iterator[RecordBatch | LegacyBatch]:
    while offset < end_offset:
        read = log.reader.read(offset, max_bytes=_READ_SIZE, end_offset=end_offset)
        next_offset = read.next_offset
        for batch in iter_batches(read.records):
            next_offset = max(next_offset, batch.next_offset)
            if batch.next_offset > offset:
                yield batch
        if next_offset <= offset:
            return
        offset = next_offset
