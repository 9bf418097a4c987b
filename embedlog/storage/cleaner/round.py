"""One round of compaction of one log, in slices.

    1. map       Read the dirty range, note the last offset of every key in it, and sync it.
    2. rewrite   Read all segments below the range's end, in groups of neighbours. Write the
                 remaining records of each group into one new segment, and swap it in.

Reading and writing need no lock; the swap takes the partition lock. If the log is truncated,
shortened by retention or deleted meanwhile, the round ends. Groups that were swapped in stay,
because each is correct on its own.
"""

from __future__ import annotations

from embedlog.errors import KafkaStorageError
from embedlog.storage.cleaner.filter import BatchFilter, modernised, read_fields
from embedlog.storage.cleaner.offset_map import OffsetMap
from embedlog.storage.cleaner.output import CleanedOutput
from embedlog.storage.cleaner.transactions import CleanedTransactions
from embedlog.storage.log.reader import cut
from embedlog.storage.producers.append import load_aborted_in_slices
from embedlog.storage.segments.indexes.offset import ENTRY_SIZE, RELATIVE_OFFSET_MAX
from embedlog.storage.segments.indexes.time import ENTRY_SIZE as TIME_ENTRY_SIZE
from wire.records.batch import RecordBatch, iter_batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from embedlog.storage.cleaner.dirty_range import DirtyRange
    from embedlog.storage.log.log import Log
    from embedlog.storage.segments.indexes.transaction import AbortedTransaction
    from embedlog.storage.segments.segment import Segment

    Group = tuple[Segment, ...]

SLICE_SIZE = 64 << 10
VERIFY_SIZE = 1 << 20
"""Checking the batches of an earlier process takes this many bytes a slice: some 5 ms."""


class LogChanged(Exception):
    """The log's segments have changed, or the log failed, so the round cannot continue."""


class CleaningProgress:
    """The bytes that a round has to rewrite, and has read and written so far."""

    def __init__(self, size: int) -> None:
        self.size = size
        """Size of all segments that the round rewrites."""
        self.read = self.written = 0


class CleaningRound:
    """One round. For one thread at a time, which must not hold the partition lock."""

    def __init__(
        self,
        log: Log,
        found: DirtyRange,
        *,
        now_ms: int,
        map_size_max: int,
        checkpoint: Callable[[], object],
        remove: Callable[[list[str], int], None],
    ) -> None:
        """`now_ms` is wall time; `map_size_max` limits the memory for keys, in bytes.

        `checkpoint` stores every log's `cleaned_offset` and `gaps_below`. `remove(paths, delay_ms)`
        removes the replaced files after a delay.
        """
        self.log = log
        self.is_complete = False
        self._is_announced = False
        """True once the checkpoint says that the log may have gaps in the rewritten range."""
        self._first_dirty = found.first_dirty
        self._end = found.end
        self._now_ms = now_ms
        self._checkpoint = checkpoint
        self._remove = remove
        self._map = OffsetMap(map_size_max)
        self._sources = tuple(s for s in log.segments if s.base_offset < found.end)
        self._output: CleanedOutput | None = None
        self.progress = CleaningProgress(sum(segment.size for segment in self._sources))
        self._slice_end = SLICE_SIZE
        self._slices = self._run()

    def step(self) -> bool:
        """Do one slice; return True once the round is complete and `cleaned_offset` has risen.

        Raises:
            LogChanged: the log has changed; abandon the round.
            CorruptRecord, RecordsError, KafkaStorageError, OSError, SegmentTooLarge: the log cannot
                be cleaned, or not at present; abandon the round.
        """
        self._check_unchanged()
        self._slice_end = self.progress.read + SLICE_SIZE
        if next(self._slices, None) is not None:
            return False
        if self._sources:
            raise LogChanged("interrupted")
        self.is_complete = True
        return True

    def abandon(self) -> None:
        """Remove the file of an incomplete round, unless its swap has been decided."""
        if self._output is not None:
            self._output.discard()
            self._output = None

    def _run(self) -> Iterator[int]:
        aborted: list[AbortedTransaction] = []
        for segment in self._sources:
            if segment.size > segment.trusted_size:
                yield from self._verify(segment)
            if segment.aborted.index is None:
                # The segment was loaded without its aborted transactions: read it to find them.
                files, directory = self.log.files, self.log.directory
                for _ in load_aborted_in_slices(files, directory, self.log.segments, segment):
                    yield self.progress.read
            aborted += self.log.transactions.aborted(segment.base_offset, segment.next_offset)
            yield self.progress.read
        yield from self._fill_map(set(aborted))
        if self.log.config.durability != "memory":
            # Sync the mapped records before older ones are removed because of them: otherwise a
            # loss of power could take both.
            self.log.durability.sync(self._end)
            yield self.progress.read
        transactions = CleanedTransactions(set(aborted))
        self._sources = tuple(s for s in self._sources if s.base_offset < self._end)
        filtered = BatchFilter(
            self._map,
            transactions,
            end=self._end,
            now_ms=self._now_ms,
            delete_retention_ms=self.log.config.delete_retention_ms,
        )
        for group in _groups(self._sources, self.log):
            with self.log.lock:
                filtered.protect(
                    {
                        producer.producer_id: (producer.last_data_offset, producer.producer_epoch)
                        for producer in list(self.log.transactions.producers)
                    }
                )
            self._output = output = CleanedOutput(
                self.log, group[0].base_offset, transactions.begin_segment()
            )
            yield from self._rewrite(group, filtered, output)
            self._finish(group, output)
            while not self._swap(group, output):
                yield self.progress.read

    def _verify(self, segment: Segment) -> Iterator[int]:
        """Check the batches that an earlier process has written, VERIFY_SIZE bytes a slice."""
        position, offset, size = 0, segment.base_offset, segment.size
        while position < size:
            end, _ = cut(
                segment, position, size, offset=offset, max_bytes=VERIFY_SIZE, min_one=True
            )
            offset = self.log.reader.verify(segment, position, end, offset)
            position = end
            yield self.progress.read

    def _fill_map(self, aborted: set[AbortedTransaction]) -> Iterator[int]:
        """Map the keys of the dirty range. If the memory is used up, end the range there."""
        transactions = CleanedTransactions(aborted)
        offset_map = self._map
        for segment in self._sources:
            if segment.next_offset <= self._first_dirty:
                continue
            start = segment.indexes.position_of(self._first_dirty, segment.size)
            for batch in self._batches(segment, start):
                if offset_map.is_full:
                    self._end = batch.base_offset
                    return
                if not transactions.read(batch) and not batch.is_control:
                    keys, offsets, _ = read_fields(batch)
                    offset_map.add(keys, offsets)
                if self.progress.read >= self._slice_end:
                    yield self.progress.read

    def _rewrite(self, group: Group, filtered: BatchFilter, output: CleanedOutput) -> Iterator[int]:
        for segment in group:
            for batch in self._batches(segment, 0):
                left = filtered.filter(batch)
                if left is not None:
                    output.append(batch if left is batch.buffer else RecordBatch(left))
                    self.progress.written += len(left)
                if self.progress.read >= self._slice_end:
                    yield self.progress.read

    def _batches(self, segment: Segment, position: int) -> Iterator[RecordBatch]:
        """Yield the batches from `position` on, as magic 2 and with checked checksums."""
        size = segment.size
        for stored in iter_batches(segment.file.view(0, size), position, size):
            self.progress.read += stored.size
            if isinstance(stored, RecordBatch):
                # Batches must be sound before they are dropped or rewritten.
                stored.check_crc()
                yield stored
            else:
                yield from modernised(stored)

    def _finish(self, group: Group, output: CleanedOutput) -> None:
        output.finish(group[-1].next_offset, group[-1].modified_ms)
        log = self.log
        if self._is_announced:
            return
        # Store that the log may have gaps before the first swap makes one: after a loss of power
        # the next open must not take gaps for damage.
        with log.lock:
            if log.offsets.cleaned_offset < 0:
                log.offsets.cleaned_offset = self._first_dirty
            log.offsets.gaps_below = max(log.offsets.gaps_below, self._sources[-1].next_offset)
        self._checkpoint()
        self._is_announced = True

    def _swap(self, group: Group, output: CleanedOutput) -> bool:
        """Swap the new segment in. Return False if a full disk interrupts: then call it again."""
        log = self.log
        with log.lock:
            self._check_unchanged()
            try:
                useless = output.swap_in(group)
            except KafkaStorageError:
                if not log.chain.is_swapping:
                    raise
                return False
            self._output = None
            self._sources = self._sources[len(group) :]
            if not self._sources:
                log.offsets.cleaned_offset = self._end
        self._remove(useless, log.config.file_delete_delay_ms)
        return True

    def _check_unchanged(self) -> None:
        """Raise LogChanged unless the log still has all segments that the round is to rewrite.

        Later groups count as well: records of this group go because later groups have newer ones.
        """
        sources = self._sources
        log = self.log
        if log.failure is not None:
            raise LogChanged(str(log.failure))
        if not sources:
            return
        segments = log.segments
        start = segments.index(sources[0]) if sources[0] in segments else 0
        if segments[start : start + len(sources)] != sources:
            raise LogChanged(str(log))


def _groups(sources: Group, log: Log) -> list[Group]:
    """Split the segments into groups of neighbours that fit into one segment.

    The segment size, the index sizes and the span of offsets limit a group.
    """
    config = log.config
    groups: list[list[Segment]] = []
    size = entries = time_entries = 0
    for segment in sources:
        size += segment.size
        offset_index, time_index = segment.indexes.load(segment.size)
        entries += len(offset_index)
        time_entries += len(time_index)
        if (
            not groups
            or size > config.segment_bytes
            or entries * ENTRY_SIZE > config.segment_index_bytes
            or time_entries * TIME_ENTRY_SIZE > config.segment_index_bytes
            or (
                segment.size
                and segment.next_offset - 1 - groups[-1][0].base_offset > RELATIVE_OFFSET_MAX
            )
        ):
            groups.append([])
            size, entries = segment.size, len(offset_index)
            time_entries = len(time_index)
        groups[-1].append(segment)
    return [tuple(group) for group in groups]
