"""One partition's log as another process sees it: no lock taken, nothing written or removed.

The owner may append, roll, compact, delete old segments or the whole topic meanwhile, or die. What
is read is bounded by what it has published (see `published_offset`), and was checked here; a
segment that it removes stays readable to whoever is at it. Of a log whose owner has died, what a
recovery would cut is not shown, nor a commit of staged files before it is done (see `adoption`).

At durability `os` a batch may be seen some microseconds before the owner's own readers see it. If
an interrupt or a failing disk takes back the append at just that moment, it was never there.
"""

from __future__ import annotations

from _bisect import bisect_right

from embedlog import errors
from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.adoption.commit_file import PREPARED, read_last
from embedlog.storage.checkpoint_files import read_offsets
from embedlog.storage.foreign_cuts import find_cuts
from embedlog.storage.foreign_segment import ForeignSegment
from embedlog.storage.foreign_tail import ForeignTail, transactions_at
from embedlog.storage.gaps import read_gaps_below
from embedlog.storage.published_offset import read_published
from wire.records.batch import RecordBatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.common import TopicPartition
    from embedlog.runtime.files import Files
    from embedlog.storage.adoption.commit_file import Commit
    from embedlog.storage.foreign_segment import Batch

_ATTEMPTS = 20
"""So often a listing may be overtaken by the owner's next change to it."""


class ForeignLog:
    """Not thread-safe. `refresh` looks at what the owner has done; the facts are of that moment."""

    def __init__(self, files: Files, data: str, topic_partition: TopicPartition) -> None:
        """Look at the log for the first time.

        Raises:
            UnknownTopicOrPartition: there is none.
            CorruptRecord: it cannot be read at all.
        """
        self._files = files
        self._data = data
        self.topic_partition = topic_partition
        self._directory = paths.log_directory(data, topic_partition)
        self._topic_id = self._read_topic_id()
        self._bases: list[int] = []
        self._swapped: set[int | None] = set()
        self._tail: ForeignTail | None = None
        self._gaps_below = 0
        self.log_start_offset = 0
        self.refresh()

    @property
    def high_watermark(self) -> int:
        """The end of what may be read."""
        assert self._tail is not None
        return self._tail.next_offset

    @property
    def last_stable_offset(self) -> int:
        """The end of what a read_committed reader may see."""
        assert self._tail is not None
        return self._tail.last_stable_offset

    @property
    def damage(self) -> CorruptRecord | None:
        """Why nothing at the high watermark or behind it can be read, though there is more."""
        assert self._tail is not None
        return self._tail.damage

    @property
    def topic_id(self) -> bytes:
        """The content of `partition.metadata`, by which another topic of that name shows."""
        return self._topic_id

    def cuts(self, start: int, end: int, size_max: int) -> list[int]:
        """Offsets behind batches inside (start, end): parts of about `size_max` stored bytes."""
        return find_cuts(self._files, self._directory, self._bases, (start, end), size_max=size_max)

    def segment_paths(self) -> list[tuple[int, str]]:
        """The base offset and the file of every segment, in order."""
        return [(base, paths.segment_file(self._directory, base)) for base in self._bases]

    # Looking

    def refresh(self) -> None:
        """Look at what the owner has done since.

        Raises:
            UnknownTopicOrPartition: the topic was deleted; perhaps made anew, as another one.
            CorruptRecord: a segment before the last is damaged, and an open transaction may be
                hidden by that.
        """
        for _ in range(_ATTEMPTS):
            topic_id = self._read_topic_id()
            if topic_id != self._topic_id and self._topic_id:
                raise self._gone()
            self._topic_id = topic_id
            try:
                commit = read_last(self._files, self._data)
                limit = self._limit_before(commit)
                self._bases = self._list()
                self._follow(limit)
                if not self._is_overtaken(commit):
                    break
                self._tail = None
            except FileNotFoundError:
                continue  # between the listing and the look a segment has gone
        else:
            raise self._gone()
        starts = self._offsets(paths.LOG_START_OFFSETS)
        self.log_start_offset = max(self._bases[0], starts.get(self.topic_partition, 0))

    def _follow(self, limit: int | None) -> None:
        """Bring the tail to the end of the last segment, from where it was."""
        tail = self._tail
        if tail is not None and tail.segment.is_replaced():
            self._tail = None
        is_fresh = False
        while True:
            tail = self._tail
            if tail is None:
                is_fresh = True
                bases = [base for base in self._bases if limit is None or base <= limit]
                bases = bases or self._bases[:1]
                base = bases[-1]
                undecided = transactions_at(self._files, self._directory, bases)
                tail = self._tail = ForeignTail(self._segment(base), undecided)
            known = tail.damage
            tail.advance(limit)
            if tail.damage is not None and not is_fresh and known is None:
                # Perhaps an append was taken back, of which the tail had seen the batch.
                self._tail = None
                continue
            slot = bisect_right(self._bases, tail.segment.base_offset)
            if slot == len(self._bases) or tail.damage is not None:
                return
            following = self._bases[slot]
            if limit is not None and limit <= tail.next_offset < following:
                return
            if tail.next_offset == following:
                self._tail = ForeignTail(self._segment(following), tail.open_transactions)
            else:
                # What lies between was compacted or removed: begin again, from the last snapshot.
                self._tail = None

    def _limit_before(self, commit: Commit | None) -> int | None:
        """How far one may read: not into a commit that is not done."""
        limit = self._limit()
        if commit is None or commit.state != PREPARED:
            return limit
        start = commit.starts.get(self.topic_partition)
        return limit if start is None or (limit is not None and limit < start) else start

    def _is_overtaken(self, before: Commit | None) -> bool:
        """Has another commit begun since, of which a part may have been seen?"""
        after = read_last(self._files, self._data)
        begun = 0 if after is None else after.sequence
        known = 0 if before is None else before.sequence
        if after is None or begun == known:
            return False
        start = after.starts.get(self.topic_partition)
        return begun > known + 1 or (start is not None and self.high_watermark > start)

    def _limit(self) -> int | None:
        """How far the owner says that one may read; None when all whole batches are published."""
        lock = f"{self._data}/{paths.LOCK}"
        try:
            if self._files.boot_id.encode() not in self._files.read(lock).split():
                return None  # the machine has restarted since: who wrote it is no more
        except FileNotFoundError:
            return None
        try:
            return read_published(self._files, self._directory)
        except CorruptRecord:
            return self._offsets(paths.RECOVERY_POINTS).get(self.topic_partition, 0)

    def _list(self) -> list[int]:
        names = self._files.list(self._directory)
        swapped = paths.LOG + paths.SWAP
        self._swapped = {paths.parse_offset(name) for name in names if name.endswith(swapped)}
        bases = sorted(
            offset
            for name in names
            if name.endswith(paths.LOG) and (offset := paths.parse_offset(name)) is not None
        )
        if not bases:
            raise FileNotFoundError(self._directory)
        return bases

    def _segment(self, base_offset: int) -> ForeignSegment:
        # Compaction's output that is about to replace several segments, or has begun to.
        suffix = paths.LOG + paths.SWAP if base_offset in self._swapped else paths.LOG
        return ForeignSegment(self._files, self._directory, base_offset, suffix)

    def _read_topic_id(self) -> bytes:
        try:
            return self._files.read(f"{self._directory}/{paths.PARTITION_METADATA}")
        except FileNotFoundError:
            if self._files.stat(self._directory) is None:
                raise self._gone() from None
            return b""

    def _gone(self) -> errors.KafkaError:
        return errors.UnknownTopicOrPartition(
            f"{self.topic_partition} is not in {self._data}, or is another than it was"
        )

    def _offsets(self, name: str) -> dict[TopicPartition, int]:
        return read_offsets(self._files, self._data, name)

    # Reading

    def batches(self, offset: int, end_offset: int) -> Iterator[Batch]:
        """Yield whole batches from the one that holds `offset` to the one before `end_offset`.

        Control batches too. The log may go on meanwhile; what is yielded lies below the offset
        that was given, at most the high watermark.

        Raises:
            OffsetOutOfRange: `offset` is outside the log, or was removed before it was read.
            CorruptRecord: the next batch is damaged.
        """
        if not self.log_start_offset <= offset <= self.high_watermark:
            raise self._out_of_range(offset)
        attempts = 0
        expected = -1
        while offset < end_offset:
            began = offset
            try:
                for batch in self._batches_of_segment(offset):
                    if batch.base_offset >= end_offset:
                        return
                    if batch.last_offset < offset:
                        expected = batch.last_offset + 1
                        continue
                    if expected >= 0 and batch.base_offset != expected:
                        self._check_gap(expected, batch)
                    yield batch
                    offset = expected = batch.last_offset + 1
            except FileNotFoundError:
                attempts += 1
                self.refresh()
                if attempts > _ATTEMPTS or offset < self._bases[0]:
                    raise self._out_of_range(offset) from None
                continue
            if offset == began:
                slot = bisect_right(self._bases, offset)
                if slot == len(self._bases):
                    break
                # Compaction has left nothing up to there.
                offset, expected = self._bases[slot], -1
        if offset >= self.high_watermark and self.damage is not None:
            raise self.damage

    def _batches_of_segment(self, offset: int) -> Iterator[Batch]:
        tail = self._tail
        assert tail is not None
        base = self._bases[max(0, bisect_right(self._bases, offset) - 1)]
        is_tail = base == tail.segment.base_offset
        segment = tail.segment if is_tail else self._segment(base)
        end = tail.position if is_tail else None
        position = segment.position_of(offset)
        for _, batch in segment.batches(position, end):
            yield batch

    def _check_gap(self, expected: int, batch: Batch) -> None:
        """Offsets may skip where compaction was, which then has said so."""
        if self._gaps_below < batch.base_offset:
            self._gaps_below = read_gaps_below(self._files, self._data, self.topic_partition)
        if not expected < batch.base_offset <= self._gaps_below:
            reason = f"offset {batch.base_offset}, expected {expected}"
            raise CorruptRecord(self._directory, 0, reason)

    def _out_of_range(self, offset: int) -> errors.KafkaError:
        return errors.OffsetOutOfRange(
            f"{self.topic_partition} holds offsets {self.log_start_offset} to "
            f"{self.high_watermark}, not {offset}"
        )

    def offset_for_timestamp(self, timestamp: int) -> int | None:
        """The offset of the first record that is not older than `timestamp`, None without one."""
        end = self.high_watermark
        for slot, base in enumerate(self._bases):
            if slot + 1 < len(self._bases):
                if self._bases[slot + 1] <= self.log_start_offset:
                    continue
                try:
                    latest = self._segment(base).latest_timestamp()
                except FileNotFoundError:
                    continue  # removed meanwhile
                if latest is not None and latest < timestamp:
                    continue
            for batch in self.batches(max(base, self.log_start_offset), end):
                if batch.max_timestamp < timestamp or _is_control(batch):
                    continue
                for record in batch.records():
                    if record.timestamp >= timestamp and record.offset >= self.log_start_offset:
                        return record.offset
            break
        return None


def _is_control(batch: Batch) -> bool:
    return isinstance(batch, RecordBatch) and batch.is_control
