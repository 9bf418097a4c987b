"""The batches of one partition out of one fetch, of which the application gets records.

Control batches are passed over, and with read_committed so are the batches of aborted transactions.
"""

from __future__ import annotations

from embedlog.client.consumer.aborted_transactions import AbortedTransactions
from embedlog.client.errors import RecordUnreadable
from wire.records import RecordBatch, RecordsError, iter_batches
from wire.records.decode.choose import rows
from wire.records.decode.rows import rows_of
from wire.records.format import CONTROL_BIT, ENTRY_HEAD, LOG_OVERHEAD, TRANSACTIONAL_BIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.client.consumer.subscription_state import PartitionState
    from wire.records.decode.rows import Rows
    from wire.records.legacy import LegacyBatch
    from wire.schemas.fetch import PartitionData

_SPECIAL = TRANSACTIONAL_BIT | CONTROL_BIT
_LENGTH_START = 8
_ALIKE_MAX = 64


class FetchedBatches:
    """Goes from batch to batch; the position in `state` moves past what is passed over."""

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
        """Where the next batch begins."""
        self.check_crcs = check_crcs
        self.error: RecordUnreadable | None = None
        """Why the batch at the position cannot be read."""
        self.moved = False
        """Was a batch passed over?"""
        self._batches: Iterator[RecordBatch | LegacyBatch] | None = None
        """From that position on; None until asked for."""
        self._end_offset: int | None = None
        self._aborted: AbortedTransactions | None = None
        if is_committed_only and data.aborted_transactions:
            self._aborted = AbortedTransactions(data.aborted_transactions)

    @property
    def end_offset(self) -> int:
        """The offset after the last batch; -1 if it cannot be told."""
        if self._end_offset is None:
            self._end_offset = _end_offset(self.view)
        return self._end_offset

    def go_to(self, position: int) -> None:
        """The next batch begins there."""
        self.position = position
        self._batches = None

    def next(self) -> RecordBatch | LegacyBatch | None:
        """The next batch that has records for the application; None at the end.

        Raises:
            RecordUnreadable: the batch at the position is damaged; every call says so again.
        """
        if self.error is not None:
            raise self.error
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
        """All records of a batch.

        Raises:
            RecordUnreadable: it is damaged.
        """
        try:
            if isinstance(batch, RecordBatch):
                return rows(batch)
            return rows_of(list(batch.records()))
        except RecordsError as error:
            raise self._unreadable(error) from error

    def pass_over(self, batch: RecordBatch | LegacyBatch) -> None:
        """It has nothing for the application."""
        self._state.offset = batch.next_offset
        self.moved = True

    def _is_passed_over(self, batch: RecordBatch | LegacyBatch) -> bool:
        """Is it a marker, or aborted?"""
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
            # Many have one size: then the bytes of their lengths are equal, each by itself.
            count = min((view_end - position) // size, _ALIKE_MAX)
            for place in range(start, end):
                column = bytes(view[place : position + count * size : size])
                count -= len(column.lstrip(column[:1]))
        position += count * size
        last = position - size
    try:
        (batch,) = iter_batches(view, last, position)
    except (RecordsError, ValueError):  # a strange one, or none at all
        return -1
    return batch.next_offset
