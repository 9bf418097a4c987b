"""The record batches of one fetched partition that have records for the application.

Control batches are skipped; with read_committed, batches of aborted transactions are skipped too.
"""

from __future__ import annotations

from _heapq import heapify, heappop

from embedlog.client.errors import RecordUnreadable
from embedlog.errors import again
from wire.records import RecordBatch, RecordsError, iter_batches, tuples
from wire.records.decode.choose import rows
from wire.records.decode.rows import rows_of
from wire.records.format import CONTROL_BIT, ENTRY_HEAD, LOG_OVERHEAD, TRANSACTIONAL_BIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.client.consumer.subscription_state import PartitionState
    from wire.records.decode.rows import Rows
    from wire.records.legacy import LegacyBatch
    from wire.schemas.fetch import AbortedTransaction, PartitionData

_SPECIAL = TRANSACTIONAL_BIT | CONTROL_BIT
_LENGTH_START = 8
_ALIKE_MAX = 64
_ABORT_KEY = b"\x00\x00\x00\x00"
"""Key of an abort marker: version 0, type 0. A commit marker has type 1."""


class FetchedBatches:
    """Iterates over batches. Skipping a batch moves the position in `state` past it."""

    __slots__ = (
        "_aborted",
        "_batches",
        "_end_offset",
        "_state",
        "check_crcs",
        "error",
        "moved",
        "position",
        "view",
    )

    def __init__(
        self,
        state: PartitionState,
        data: PartitionData,
        *,
        check_crcs: bool,
        is_committed_only: bool,
    ) -> None:
        self._state = state
        self.view = memoryview(data.records or b"")
        self.position = 0
        """Start of the next batch in `view`."""
        self.check_crcs = check_crcs
        self.error: RecordUnreadable | None = None
        """The error to raise if the batch at the position is damaged; None until this is found."""
        self.moved = False
        """True once a batch was skipped."""
        self._batches: Iterator[RecordBatch | LegacyBatch] | None = None
        """Iterator over the batches from `position` on; `next` creates it."""
        self._end_offset: int | None = None
        self._aborted: AbortedTransactions | None = None
        if is_committed_only and data.aborted_transactions:
            self._aborted = AbortedTransactions(data.aborted_transactions)

    @property
    def end_offset(self) -> int:
        """The offset after the last batch; -1 if the batches cannot be parsed."""
        if self._end_offset is None:
            self._end_offset = _end_offset(self.view)
        return self._end_offset

    def go_to(self, position: int) -> None:
        self.position = position
        self._batches = None

    def next(self) -> RecordBatch | LegacyBatch | None:
        """Return the next batch that has records for the application; None at the end.

        Raises:
            RecordUnreadable: the batch at the position is damaged. Later calls raise it again.
        """
        if self.error is not None:
            raise again(self.error)
        batches = self._batches
        if batches is None:
            batches = self._batches = iter_batches(self.view, self.position)
        offset = self._state.offset
        try:
            for batch in batches:
                self.position += batch.size
                if batch.next_offset <= offset:
                    continue
                if self.check_crcs:
                    batch.check_crc()
                if batch.attributes & _SPECIAL and self._is_passed_over(batch):
                    self.pass_over(batch)
                    continue
                return batch
        except RecordsError as error:
            raise self._unreadable(error) from error
        return None

    def rows_of(self, batch: RecordBatch | LegacyBatch) -> Rows:
        """Decode all records of a batch.

        Raises:
            RecordUnreadable: the batch is damaged.
        """
        try:
            if isinstance(batch, RecordBatch):
                return rows(batch)
            return rows_of(list(batch.records()))
        except RecordsError as error:
            raise self._unreadable(error) from error

    def pass_over(self, batch: RecordBatch | LegacyBatch) -> None:
        """Skip a batch that has no records for the application."""
        self._state.offset = batch.next_offset
        self.moved = True

    def _is_passed_over(self, batch: RecordBatch | LegacyBatch) -> bool:
        """Whether the batch is a control batch or part of an aborted transaction."""
        if not isinstance(batch, RecordBatch):
            return False
        is_aborted = self._aborted is not None and self._aborted.has(batch)
        return is_aborted or batch.is_control

    def _unreadable(self, error: RecordsError) -> RecordUnreadable:
        topic, partition = self._state.topic_partition
        self.error = RecordUnreadable(topic, partition, self._state.offset, str(error))
        return self.error


def _end_offset(view: memoryview) -> int:
    last = position = 0
    view_end = len(view)
    while position + ENTRY_HEAD.size <= view_end:
        size = LOG_OVERHEAD + ENTRY_HEAD.unpack_from(view, position)[1]
        if size <= LOG_OVERHEAD or position + size > view_end:
            break
        start, end = position + _LENGTH_START, position + LOG_OVERHEAD
        count = 1
        if view[start:end] == view[start + size : end + size]:
            # Often many successive batches have equal sizes. Count them at once: compare all first
            # bytes of their length fields, then all second bytes, and so on.
            count = min((view_end - position) // size, _ALIKE_MAX)
            for place in range(start, end):
                column = bytes(view[place : position + count * size : size])
                count -= len(column.lstrip(column[:1]))
        position += count * size
        last = position - size
    try:
        (batch,) = iter_batches(view, last, position)
    except (RecordsError, ValueError):  # the last batch is malformed, or there is none
        return -1
    return batch.next_offset


class AbortedTransactions:
    """The aborted transactions of one fetched partition. Call `has` for each batch in log order."""

    __slots__ = ("_by_first_offset", "_open")

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        # A heap of (first offset, producer id): a transaction begins with its first batch.
        self._by_first_offset = [(each.first_offset, each.producer_id) for each in aborted]
        heapify(self._by_first_offset)
        self._open: set[int] = set()
        """Ids of producers whose aborted transaction has begun, but whose marker has not come."""

    def has(self, batch: RecordBatch) -> bool:
        """Return whether an aborted transaction wrote the batch.

        If the batch is an abort marker, the transaction of its producer ends.
        """
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
