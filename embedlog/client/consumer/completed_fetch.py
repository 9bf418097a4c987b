"""The records of one partition out of one fetch, handed out bit by bit.

Control batches are passed over, records below the position are cut off, and with read_committed so
are the batches of aborted transactions.
"""

from __future__ import annotations

from _heapq import heapify, heappop

from embedlog.client.consumer.consumer_record import RecordChunk
from embedlog.client.errors import RecordUnreadable
from wire.records import RecordBatch, RecordsError, build_batch, iter_batches, tuples
from wire.records.batch import (
    ATTRIBUTES_POSITION,
    CONTROL_BIT,
    ENTRY_HEAD,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from wire.records.crc32c import crc32c
from wire.records.decode.choose import columns, next_columns, next_rows, rows
from wire.records.decode.rows import NO_ROWS, Rows, rows_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.client.consumer.consumer_record import ConsumerRecord
    from embedlog.client.consumer.subscription_state import PartitionState
    from wire.records.decode.columns import RecordColumns
    from wire.records.decode.fast.strides.alike import AlikeColumns
    from wire.records.decode.fast.uniform.shape_runs import RunRows
    from wire.records.legacy import LegacyBatch
    from wire.schemas.fetch import PartitionData

_SPECIAL = TRANSACTIONAL_BIT | CONTROL_BIT
_LENGTH_START = 8
_ALIKE_MAX = 64
_ABORT_KEY = b"\x00\x00\x00\x00"
"""Version 0, type 0; a commit marker has type 1."""


class CompletedFetch:
    """What a broker returned for one partition; `state` keeps the position that this moves."""

    __slots__ = (
        "_aborted",
        "_aborted_producers",
        "_batch",
        "_batches",
        "_check_crcs",
        "_end",
        "_end_offset",
        "_end_position",
        "_error",
        "_index",
        "_is_committed_only",
        "_moved",
        "_position",
        "_records",
        "_records_index",
        "_rows",
        "_taken_position",
        "_view",
        "generation",
        "head",
        "is_drained",
        "state",
    )

    def __init__(
        self,
        state: PartitionState,
        data: PartitionData,
        *,
        check_crcs: bool,
        is_committed_only: bool,
    ) -> None:
        self.state = state
        self.generation = state.generation
        self.is_drained = False
        """Nothing is left."""
        self.head: tuple[str, int, int, int] = (*state.topic_partition, -1, -1)
        """Topic, partition, leader epoch and kind of timestamps of what was handed out last."""
        self._view = memoryview(data.records or b"")
        self._position = 0
        """Where the next batch begins."""
        self._taken_position = 0
        """Where the batch begins that the last records were of, or the first of several."""
        self._end_position = len(self._view)
        self._end_offset: int | None = None
        self._batches: Iterator[RecordBatch | LegacyBatch] | None = None
        """From that position on; None until asked for."""
        self._batch: RecordBatch | LegacyBatch | None = None
        """The batch that the rows are from; None at the end."""
        self._rows = NO_ROWS
        self._index = 0
        self._end = 0
        """How many rows there are."""
        self._records: Iterator[ConsumerRecord] = iter(())
        self._records_index = -1
        """The number of the row that the next of these records is made of."""
        self._check_crcs = check_crcs
        self._is_committed_only = is_committed_only
        self._error: RecordUnreadable | None = None
        self._moved = False
        # (first offset, producer id): a transaction counts from its first batch on.
        self._aborted: list[tuple[int, int]] = []
        self._aborted_producers: set[int] = set()
        if is_committed_only and data.aborted_transactions:
            self._aborted = [(a.first_offset, a.producer_id) for a in data.aborted_transactions]
            heapify(self._aborted)

    @property
    def end_offset(self) -> int:
        """The offset after the last batch; -1 if it cannot be told."""
        if self._end_offset is None:
            self._end_offset = _end_offset(self._view)
        return self._end_offset

    def take_moved(self) -> bool:
        """Did the position pass a batch that is not handed out, since this was asked last?"""
        moved, self._moved = self._moved, False
        return moved

    def take(self, count_max: int, *, several: bool = False) -> Rows:
        """Up to `count_max` records of one batch, moving the position past them; none at the end.

        They are of `several` batches, if these are alike and follow each other.

        Raises:
            RecordUnreadable: the batch at the position is damaged; every call says so again.
        """
        while self._index == self._end:
            if self._error is None:
                found = next_rows(
                    self._view,
                    self._position,
                    offset=self.state.offset,
                    count_max=count_max,
                    check_crcs=self._check_crcs,
                    several=several,
                )
                if found is not None:
                    return self._take_found(found, count_max)
            batch = self._next_batch()
            if batch is None:
                return NO_ROWS
            self._cut(batch)
            if not self._end:
                self._pass_over(batch)
        return self._take_part(count_max)

    def _take_found(self, found: RunRows, count_max: int) -> Rows:
        """Up to `count_max` records of batches that were read without `_next_batch`."""
        position = self._position
        self._move_past(found)
        if len(found.offsets) <= count_max:
            self.is_drained = found.end == self._end_position
            return found
        self._begin(RecordBatch(self._view, position), found)
        return self._take_part(count_max)

    def _take_part(self, count_max: int) -> Rows:
        """Up to `count_max` records of what is left of the batch that was begun."""
        batch = self._batch
        assert batch is not None, self
        found, start, state = self._rows, self._index, self.state
        state.offset_epoch = batch.partition_leader_epoch
        if count_max < self._end - start:
            self._index = end = start + count_max
            state.offset = found.offsets[end]
            return found.part(start, end)
        self._index = self._end
        state.offset = batch.next_offset
        return found.part(start, self._end) if start else found

    @property
    def is_inside_batch(self) -> bool:
        """Is there more of the batch that was begun?"""
        return self._index < self._end

    def take_next(self) -> ConsumerRecord | None:
        """`take(1)` as a record, if the batch that was begun has one more; it costs a fifth."""
        index = self._index
        if index == self._end:
            return None
        if index != self._records_index:
            chunk = RecordChunk(self.head)
            chunk.add(self._rows.part(index, self._end), self._end - index)
            self._records = iter(chunk)
        record = next(self._records)
        self._index = self._records_index = index = index + 1
        batch = self._batch
        assert batch is not None, self
        state = self.state
        state.offset = self._rows.offsets[index] if index < self._end else batch.next_offset
        return record

    def take_columns(self, count_max: int) -> tuple[RecordColumns, int] | None:
        """The next whole batches, and the index of the first record at the position; None at end.

        One batch, or several that follow each other if they are laid out alike: as many as
        `count_max` records need. The position moves past them.

        Raises:
            RecordUnreadable: as `take`.
        """
        if self._index == self._end and self._error is None:
            alike = next_columns(
                self._view,
                self._position,
                offset=self.state.offset,
                count_max=count_max,
                check_crcs=self._check_crcs,
            )
            if alike is not None:
                self._move_past(alike)
                return alike, 0
        taken = self.take_batch()
        if taken is None:
            return None
        batch, start = taken
        return columns(batch), start

    def take_batch(self) -> tuple[RecordBatch, int] | None:
        """The next whole batch and the index of its first record at the position; None at the end.

        For reading in place; the position moves past the batch.

        Raises:
            RecordUnreadable: as `take`.
        """
        batch = self._batch
        if self._index == self._end:
            plain = self._take_ordinary()
            if plain is not None:
                return plain, 0
            self._rows, self._index, self._end = NO_ROWS, 0, 0
            batch = self._next_batch()
            if batch is None:
                return None
        assert batch is not None, self
        if not isinstance(batch, RecordBatch):
            return self._take_from_legacy(batch)
        self._rows, self._index, self._end = NO_ROWS, 0, 0
        state = self.state
        start = 0
        if batch.base_offset < state.offset:
            # By count, as compaction may have taken records before the position.
            found = self._readable_all(batch)
            start = len(found) - len(self._from_position(found))
        state.offset_epoch = batch.partition_leader_epoch
        state.offset = batch.next_offset
        return batch, start

    def _take_ordinary(self) -> RecordBatch | None:
        """`take_batch` for most batches, in one go; None if there is anything special about it."""
        position = self._position
        if position == self._end_position or self._error is not None:
            return None
        try:
            batch = RecordBatch(self._view, position)
        except RecordsError:
            return None
        state = self.state
        attributes = batch.attributes
        if batch.base_offset < state.offset or attributes & _SPECIAL:
            return None
        if self._check_crcs and crc32c(batch.buffer[ATTRIBUTES_POSITION:]) != batch.crc:
            return None
        next_offset = batch.base_offset + batch.last_offset_delta + 1
        kind = (attributes & TIMESTAMP_TYPE_BIT) >> 3
        self._move_to(position + batch.size, next_offset, batch.partition_leader_epoch, kind)
        return batch

    def _move_past(self, found: RunRows | AlikeColumns) -> None:
        self._move_to(found.end, found.next_offset, found.epoch, found.timestamp_type)

    def _move_to(self, end: int, next_offset: int, epoch: int, kind: int) -> None:
        """What was read without `_next_batch` is handed out, if only by and by."""
        self._taken_position = self._position
        self._position = end
        self._batches = None
        state = self.state
        state.offset = next_offset
        state.offset_epoch = epoch
        self._note_head(epoch, kind)

    def _note_head(self, epoch: int, kind: int) -> None:
        if epoch != self.head[2] or kind != self.head[3]:
            self.head = (*self.state.topic_partition, epoch, kind)

    def _take_from_legacy(self, batch: LegacyBatch) -> tuple[RecordBatch, int] | None:
        if self._index == self._end:
            self._cut(batch)
        if self._end:
            return self._take_run(batch), 0
        self._pass_over(batch)
        return self.take_batch()

    def _take_run(self, batch: LegacyBatch) -> RecordBatch:
        """Records of an old format with offsets that follow each other, as a batch of the new."""
        found = self._rows.part(self._index, self._end)
        offsets = found.offsets
        first = offsets[0]
        count = sum(offset == first + index for index, offset in enumerate(offsets))
        self._index += count
        self.state.offset = offsets[count] if count < len(found) else batch.next_offset
        _, timestamps, keys, values, _ = zip(*found.part(0, count), strict=True)
        data = build_batch(
            values,
            keys=keys,
            timestamps=timestamps,
            base_offset=first,
            timestamp_type=max(batch.timestamp_type, 0),
        )
        return RecordBatch(memoryview(data))

    def give_back(self, offset: int) -> None:
        """Take back what was taken last, from `offset` on; the position returns there."""
        self._position, self._batches = self._taken_position, None
        self._rows, self._index, self._end = NO_ROWS, 0, 0
        self.state.offset = offset

    # Batches

    def _next_batch(self) -> RecordBatch | LegacyBatch | None:
        """The next batch that has records for the application."""
        if self._error is not None:
            raise self._error
        batches = self._batches
        if batches is None:
            batches = self._batches = iter_batches(self._view, self._position)
        offset = self.state.offset
        try:
            for batch in batches:
                self._position += batch.size
                if batch.next_offset <= offset:
                    continue
                if self._check_crcs:
                    batch.check_crc()
                if batch.attributes & _SPECIAL and self._is_passed_over(batch):
                    self._pass_over(batch)
                    continue
                self._batch = batch
                self._note_head(batch.partition_leader_epoch, batch.timestamp_type)
                return batch
        except RecordsError as error:
            raise self._unreadable(error) from error
        self._batch = None
        self.is_drained = True
        return None

    def _cut(self, batch: RecordBatch | LegacyBatch) -> None:
        """Make rows of what is left of a batch; perhaps nothing."""
        self._taken_position = self._position - batch.size
        self._begin(batch, self._from_position(self._readable_all(batch)))

    def _begin(self, batch: RecordBatch | LegacyBatch, found: Rows) -> None:
        self._batch = batch
        self._rows = found
        self._index, self._end = 0, len(found)
        self._records_index = -1

    def _readable_all(self, batch: RecordBatch | LegacyBatch) -> Rows:
        try:
            if isinstance(batch, RecordBatch):
                return rows(batch)
            return rows_of(list(batch.records()))
        except RecordsError as error:
            raise self._unreadable(error) from error

    def _from_position(self, found: Rows) -> Rows:
        offset = self.state.offset
        offsets = found.offsets
        if offsets and offsets[0] >= offset:
            return found
        return rows_of([record for record in found if record[0] >= offset])

    def _is_passed_over(self, batch: RecordBatch | LegacyBatch) -> bool:
        """Is it a marker, or aborted? Keeps the account of aborted transactions."""
        if not isinstance(batch, RecordBatch):
            return False
        if self._is_committed_only and batch.producer_id >= 0:
            producer_id = batch.producer_id
            while self._aborted and self._aborted[0][0] <= batch.last_offset:
                self._aborted_producers.add(heappop(self._aborted)[1])
            if batch.is_control:
                if producer_id in self._aborted_producers and _is_abort(batch):
                    self._aborted_producers.discard(producer_id)
            elif batch.is_transactional and producer_id in self._aborted_producers:
                return True
        return batch.is_control

    def _pass_over(self, batch: RecordBatch | LegacyBatch) -> None:
        self.state.offset = batch.next_offset
        self._moved = True

    def _unreadable(self, error: RecordsError) -> RecordUnreadable:
        topic, partition = self.state.topic_partition
        self._error = RecordUnreadable(topic, partition, self.state.offset, str(error))
        return self._error


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


def _is_abort(batch: RecordBatch) -> bool:
    for record in tuples(batch):
        key = record[2]
        return key is not None and key[2:4] == _ABORT_KEY[2:4]
    return False
