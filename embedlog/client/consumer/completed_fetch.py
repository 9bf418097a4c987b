"""The fetched records of one partition, handed out in parts.

Records before the consumer's position are left out. `fetched_batches` leaves out aborted records
for read_committed consumers. `take` returns rows, `take_columns` returns
whole batches without copying them. `wire.records.decode.choose` picks the fastest way to decode.
"""

from __future__ import annotations

from embedlog.client.consumer.fetched_batches import FetchedBatches
from embedlog.client.consumer.record import RecordChunk
from wire.records import RecordBatch, build_batch
from wire.records.decode.choose import columns, next_columns, next_rows
from wire.records.decode.rows import NO_ROWS, Rows, rows_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.client.consumer.record import ConsumerRecord
    from embedlog.client.consumer.subscription_state import PartitionState
    from wire.records.decode.columns import RecordColumns
    from wire.records.decode.layouts import AlikeColumns
    from wire.records.decode.uniform import RunRows
    from wire.records.legacy import LegacyBatch
    from wire.schemas.fetch import PartitionData


class CompletedFetch:
    """A broker's answer for one partition. Taking records moves the position in `state`."""

    __slots__ = (
        "_batch",
        "_end",
        "_index",
        "_records",
        "_records_index",
        "_rows",
        "_taken_position",
        "batches",
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
        """True once the application has taken every record."""
        self.head: tuple[str, int, int, int] = (*state.topic_partition, -1, -1)
        """Topic, partition, leader epoch and timestamp type of the records taken last."""
        self.batches = FetchedBatches(
            state, data, check_crcs=check_crcs, is_committed_only=is_committed_only
        )
        self._taken_position = 0
        """Byte position of the first batch that the last `take` read."""
        self._batch: RecordBatch | LegacyBatch | None = None
        """The batch that `_rows` belongs to; None after the last batch."""
        self._rows = NO_ROWS
        self._index = 0
        self._end = 0
        """Number of rows in `_rows`; `_index` is the next row to take."""
        self._records: Iterator[ConsumerRecord] = iter(())
        self._records_index = -1
        """Index in `_rows` of the next record of `_records`; -1 if `_records` is outdated."""

    def take(self, count_max: int, *, several: bool = False) -> Rows:
        """Return up to `count_max` records of one batch and move the position past them.

        With `several`, the records may come from successive batches of the same layout. The result
        is empty if no records are left.

        Raises:
            RecordUnreadable: the batch at the position is damaged. Later calls raise it again.
        """
        batches = self.batches
        while self._index == self._end:
            if batches.error is None:
                found = next_rows(
                    batches.view,
                    batches.position,
                    offset=self.state.offset,
                    count_max=count_max,
                    check_crcs=batches.check_crcs,
                    several=several,
                )
                if found is not None:
                    return self._take_found(found, count_max)
            batch = self._next_batch()
            if batch is None:
                return NO_ROWS
            self._cut(batch)
            if not self._end:
                batches.pass_over(batch)
        return self._take_part(count_max)

    def _take_found(self, found: RunRows, count_max: int) -> Rows:
        """Take up to `count_max` of the records that `next_rows` decoded."""
        self._move_past(found)
        view = self.batches.view
        if len(found.offsets) <= count_max:
            self.is_drained = found.end == len(view)
            return found
        self._begin(RecordBatch(view, self._taken_position), found)
        return self._take_part(count_max)

    def _take_part(self, count_max: int) -> Rows:
        """Take up to `count_max` of the remaining records of the current batch."""
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
        return self._index < self._end

    def take_next(self) -> ConsumerRecord | None:
        """Return the next record of the current batch, or None if the batch has no more.

        A call takes a fifth of the time of `take(1)`.
        """
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
        """Return whole batches, and the index of their first record at or after the position.

        Joins successive batches of the same layout until they hold `count_max` records. The
        position moves past them. Returns None if no records are left.

        Raises:
            RecordUnreadable: as `take`.
        """
        batches = self.batches
        if self._index == self._end and batches.error is None:
            alike = next_columns(
                batches.view,
                batches.position,
                offset=self.state.offset,
                count_max=count_max,
                check_crcs=batches.check_crcs,
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
        """Return the next whole batch, and the index of its first record at or after the position.

        The batch is not copied, and the position moves past it. Returns None if no batch is left.

        Raises:
            RecordUnreadable: as `take`.
        """
        batch = self._batch
        if self._index == self._end:
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
            # Count the records before the position: compaction may have removed some offsets.
            found = self.batches.rows_of(batch)
            start = len(found) - len(_rows_from(found, state.offset))
        state.offset_epoch = batch.partition_leader_epoch
        state.offset = batch.next_offset
        return batch, start

    def _move_past(self, found: RunRows | AlikeColumns) -> None:
        """Move the position past the batches that `next_rows` or `next_columns` decoded."""
        batches, state = self.batches, self.state
        self._taken_position = batches.position
        batches.go_to(found.end)
        state.offset = found.next_offset
        state.offset_epoch = found.epoch
        self._note_head(found.epoch, found.timestamp_type)

    def _note_head(self, epoch: int, kind: int) -> None:
        if epoch != self.head[2] or kind != self.head[3]:
            self.head = (*self.state.topic_partition, epoch, kind)

    def _take_from_legacy(self, batch: LegacyBatch) -> tuple[RecordBatch, int] | None:
        if self._index == self._end:
            self._cut(batch)
        if self._end:
            return self._take_run(batch), 0
        self.batches.pass_over(batch)
        return self.take_batch()

    def _take_run(self, batch: LegacyBatch) -> RecordBatch:
        """Build a new-format batch from the next records of an old-format batch.

        The new batch ends before the first gap in the offsets.
        """
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
        """Move the position back to `offset`: the next `take` returns these records again."""
        self.batches.go_to(self._taken_position)
        self._rows, self._index, self._end = NO_ROWS, 0, 0
        self.state.offset = offset

    # Batches

    def _next_batch(self) -> RecordBatch | LegacyBatch | None:
        self._batch = batch = self.batches.next()
        if batch is None:
            self.is_drained = True
        else:
            self._note_head(batch.partition_leader_epoch, batch.timestamp_type)
        return batch

    def _cut(self, batch: RecordBatch | LegacyBatch) -> None:
        """Decode a batch and keep its records at or after the position. There may be none."""
        self._taken_position = self.batches.position - batch.size
        self._begin(batch, _rows_from(self.batches.rows_of(batch), self.state.offset))

    def _begin(self, batch: RecordBatch | LegacyBatch, found: Rows) -> None:
        self._batch = batch
        self._rows = found
        self._index, self._end = 0, len(found)
        self._records_index = -1


def _rows_from(found: Rows, offset: int) -> Rows:
    offsets = found.offsets
    if offsets and offsets[0] >= offset:
        return found
    return rows_of([record for record in found if record[0] >= offset])
