"""The records of one partition out of one fetch, handed out bit by bit.

Control batches are passed over, records below the position are cut off, and with read_committed so
are the batches of aborted transactions.
"""

from __future__ import annotations

from _heapq import heapify, heappop

from embedlog.client.errors import RecordUnreadable
from wire.records import RecordBatch, RecordsError, build_batch, iter_batches, tuples
from wire.records.reader import rows
from wire.records.rows import NO_ROWS, Rows, rows_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.client.consumer.subscription_state import PartitionState
    from wire.records.legacy import LegacyBatch
    from wire.schemas.fetch import PartitionData

_ABORT_KEY = b"\x00\x00\x00\x00"
"""Version 0, type 0; a commit marker has type 1."""


class CompletedFetch:
    """What a broker returned for one partition; `state` keeps the position that this moves."""

    __slots__ = (
        "_aborted",
        "_aborted_producers",
        "_batches",
        "_check_crcs",
        "_error",
        "_index",
        "_is_committed_only",
        "_moved",
        "_rows",
        "batch",
        "generation",
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
        self.batch: RecordBatch | LegacyBatch | None = None
        """The batch that the records handed out last are from; None at the end."""
        self._batches: Iterator[RecordBatch | LegacyBatch] = iter_batches(data.records or b"")
        self._rows = NO_ROWS
        self._index = 0
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

    def take_moved(self) -> bool:
        """Did the position pass a batch that is not handed out, since this was asked last?"""
        moved, self._moved = self._moved, False
        return moved

    def take(self, count_max: int) -> Rows:
        """Up to `count_max` records of one batch, moving the position past them; none at the end.

        Raises:
            RecordUnreadable: the batch at the position is damaged; every call says so again.
        """
        while self._index == len(self._rows):
            batch = self._next_batch()
            if batch is None:
                return NO_ROWS
            self._index = 0
            self._rows = self._readable(batch)
            if not self._rows:
                self._pass_over(batch)
        batch = self.batch
        assert batch is not None, self
        found = self._rows
        start, end = self._index, min(self._index + count_max, len(found))
        self._index = end
        state = self.state
        state.offset_epoch = batch.partition_leader_epoch
        state.offset = found.offsets[end] if end < len(found) else batch.next_offset
        return found if end - start == len(found) else found.part(start, end)

    def take_batch(self) -> tuple[RecordBatch, int] | None:
        """The next whole batch and the index of its first record at the position; None at the end.

        For reading in place; the position moves past the batch.

        Raises:
            RecordUnreadable: as `take`.
        """
        batch = self.batch
        if self._index == len(self._rows):
            self._rows, self._index = NO_ROWS, 0
            batch = self._next_batch()
            if batch is None:
                return None
        assert batch is not None, self
        if not isinstance(batch, RecordBatch):
            if not self._rows:
                self._rows, self._index = self._readable(batch), 0
            if self._rows:
                return self._take_run(batch), 0
            self._pass_over(batch)
            return self.take_batch()
        self._rows, self._index = NO_ROWS, 0
        state = self.state
        start = 0
        if batch.base_offset < state.offset:
            # By count, as compaction may have taken records before the position.
            found = self._readable_all(batch)
            start = len(found) - len(self._from_position(found))
        state.offset_epoch = batch.partition_leader_epoch
        state.offset = batch.next_offset
        return batch, start

    def _take_run(self, batch: LegacyBatch) -> RecordBatch:
        """Records of an old format with offsets that follow each other, as a batch of the new."""
        found = self._rows.part(self._index, len(self._rows))
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

    def give_back(self, count: int) -> None:
        """Take back the last `count` records that `take` returned; the position returns there."""
        self._index -= count
        self.state.offset = self._rows.offsets[self._index]

    # Batches

    def _next_batch(self) -> RecordBatch | LegacyBatch | None:
        """The next batch that has records for the application."""
        if self._error is not None:
            raise self._error
        offset = self.state.offset
        try:
            for batch in self._batches:
                if batch.next_offset <= offset:
                    continue
                if self._check_crcs:
                    batch.check_crc()
                if self._is_passed_over(batch):
                    self._pass_over(batch)
                    continue
                self.batch = batch
                return batch
        except RecordsError as error:
            raise self._unreadable(error) from error
        self.batch = None
        return None

    def _readable(self, batch: RecordBatch | LegacyBatch) -> Rows:
        return self._from_position(self._readable_all(batch))

    def _readable_all(self, batch: RecordBatch | LegacyBatch) -> Rows:
        try:
            if isinstance(batch, RecordBatch):
                return rows(batch)
            return rows_of(list(batch.records()))
        except RecordsError as error:
            raise self._unreadable(error) from error

    def _from_position(self, found: Rows) -> Rows:
        offset = self.state.offset
        if found and found.offsets[0] >= offset:
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


def _is_abort(batch: RecordBatch) -> bool:
    for record in tuples(batch):
        key = record[2]
        return key is not None and key[2:4] == _ABORT_KEY[2:4]
    return False
