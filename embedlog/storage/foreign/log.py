"""Reading one partition's log from another process, without a lock and without writing anything.

Meanwhile the owner may append, roll, compact, delete old segments or the whole topic, or die. A
reader gets only records that the owner has published (see `published_offset`), and checks their
checksums. A segment that it has opened stays readable after the owner removed it. If the owner has
died, a reader does not get batches that recovery would cut off, nor the records of an unfinished
commit of staged files (see `staging`).

After a restart of the machine the published offset no longer holds. Until the owner opens the log,
readers also get records that other replicas did not have.

At durability `os` a reader may see a batch some microseconds before the owner's own readers do. If
an interrupt or a disk error undoes the append at that moment, the reader has seen a batch that was
never published.
"""

from __future__ import annotations

from _bisect import bisect_right

from embedlog import errors
from embedlog.errors import CorruptRecord, again
from embedlog.storage import paths
from embedlog.storage.foreign.batches import LOOKS_MAX, ForeignListing, unreadable, walk
from embedlog.storage.foreign.cuts import find_cuts
from embedlog.storage.foreign.offset_range import Mark
from embedlog.storage.foreign.tail import ForeignTail, transactions_at
from embedlog.storage.state_files.checkpoint_files import read_offsets
from embedlog.storage.state_files.commit_file import PREPARED, Commit, read_last
from embedlog.storage.state_files.published_offset import read_published
from wire.records.batch import RecordBatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.common import TopicPartition
    from embedlog.runtime.files import Files
    from embedlog.storage.foreign.segment import Batch, ForeignSegment


class ForeignLog:
    """One partition's log, as of the last `refresh`. Not thread-safe."""

    def __init__(
        self, files: Files, data: str, topic_partition: TopicPartition, *, is_checked: bool = True
    ) -> None:
        """Read the log for the first time.

        Without `is_checked`, unless the machine has restarted, the search for the log's end reads
        only headers of the last segment's batches: damage shows when a batch is read.

        Raises:
            UnknownTopicOrPartition: there is no such log.
            CorruptRecord: the log cannot be read at all.
        """
        self._files = files
        self._data = data
        self.topic_partition = topic_partition
        self._listing = ForeignListing(files, data, topic_partition)
        self._tail: ForeignTail | None = None
        self._is_checked = is_checked
        self.log_start_offset = 0
        self.refresh()

    @property
    def high_watermark(self) -> int:
        assert self._tail is not None
        return self._tail.next_offset

    @property
    def last_stable_offset(self) -> int:
        """The end offset for read_committed readers, never below the log start offset."""
        assert self._tail is not None
        return max(self._tail.last_stable_offset, self.log_start_offset)

    @property
    def damage(self) -> CorruptRecord | None:
        """Damage at the high watermark, which hides the later records; None without damage."""
        assert self._tail is not None
        return self._tail.damage

    @property
    def topic_id(self) -> bytes:
        """The content of `partition.metadata`. A new topic with the same name has another id."""
        return self._listing.topic_id

    def cuts(self, start: int, end: int, size_max: int) -> list[int]:
        """Return offsets between `start` and `end`, `size_max` bytes or more apart.

        Each lies between two batches.
        """
        listing, tail = self._listing, self._tail
        assert tail is not None
        marks = {tail.segment.base_offset: tail.segment.marks}
        offsets = (start, end)
        return find_cuts(
            self._files, listing.directory, listing.bases, offsets, marks, size_max=size_max
        )

    def mark_before(self, offset: int) -> Mark | None:
        """Return the place of a batch at or soon before `offset`, for a `ForeignRange`.

        None if no batch before `offset` was read in the last segment.
        """
        assert self._tail is not None
        segment = self._tail.segment
        found = segment.mark_before(offset)
        return found and Mark(segment.base_offset, *found)

    def segment_paths(self) -> list[tuple[int, str]]:
        directory = self._listing.directory
        return [(base, paths.segment_file(directory, base)) for base in self._listing.bases]

    # Looking

    def refresh(self) -> None:
        """Read what the owning process has changed: log start offset, records, open transactions.

        Raises:
            UnknownTopicOrPartition: the topic was deleted, or created again.
            KafkaStorageError: a file cannot be read; the message names it.
            CorruptRecord: a segment before the last is damaged; it may hide an open transaction.
        """
        for _ in range(LOOKS_MAX):
            try:
                commit = read_last(self._files, self._data)
                limit = self._limit_before(commit)
                self._listing.look()
                self._follow(limit)
                if not self._is_overtaken(commit):
                    break
                self._tail = None
            except FileNotFoundError:
                continue  # a segment was removed after the listing
            except OSError as error:
                raise unreadable(self.topic_partition, error) from error
        else:
            raise errors.UnknownTopicOrPartition(
                f"{self.topic_partition} has no segment in {self._data}"
            )
        self.log_start_offset = self._listing.start()

    def _follow(self, limit: int | None) -> None:
        tail = self._tail
        if tail is not None and tail.segment.is_replaced():
            self._tail = None
        is_fresh = False
        while True:
            tail = self._tail
            if tail is None:
                is_fresh = True
                known_bases = self._listing.bases
                bases = [base for base in known_bases if limit is None or base <= limit]
                bases = bases or known_bases[:1]
                undecided = transactions_at(self._files, self._listing.directory, bases)
                tail = self._tail = ForeignTail(self._listing.segment(bases[-1]), undecided)
            known = tail.damage
            if not self._is_checked and self._is_of_this_boot():
                tail.skim(limit)
            tail.advance(limit)
            if tail.damage is not None and not is_fresh and known is None:
                # Perhaps the writer undid an append whose batch this tail has read: read the
                # segment anew before reporting damage.
                self._tail = None
                continue
            slot = bisect_right(self._listing.bases, tail.segment.base_offset)
            if slot == len(self._listing.bases) or tail.damage is not None:
                return
            following = self._listing.bases[slot]
            if limit is not None and limit <= tail.next_offset < following:
                return
            if tail.next_offset == following:
                self._tail = ForeignTail(self._listing.segment(following), tail.open_transactions)
            else:
                # The records between the two segments were compacted or removed: begin again at the
                # last producer snapshot.
                self._tail = None

    def _limit_before(self, commit: Commit | None) -> int | None:
        """Return where readers must end: at the published offset, or before a prepared `commit`.

        None if all whole batches may be read.
        """
        limit = self._limit()
        if commit is None or commit.state != PREPARED:
            return limit
        start = commit.starts.get(self.topic_partition)
        return limit if start is None or (limit is not None and limit < start) else start

    def _is_overtaken(self, before: Commit | None) -> bool:
        """Return whether a commit that began after `before` may have been read in part."""
        after = read_last(self._files, self._data)
        begun = 0 if after is None else after.sequence
        known = 0 if before is None else before.sequence
        if after is None or begun == known:
            return False
        start = after.starts.get(self.topic_partition)
        return begun > known + 1 or (start is not None and self.high_watermark > start)

    def _limit(self) -> int | None:
        """Return the published offset; None if all whole batches may be read."""
        if not self._is_of_this_boot():
            return None  # the machine has restarted, so nobody is writing
        try:
            return read_published(self._files, self._listing.directory)
        except CorruptRecord:
            points = read_offsets(self._files, self._data, paths.RECOVERY_POINTS)
            return points.get(self.topic_partition, 0)

    def _is_of_this_boot(self) -> bool:
        """Return whether the last process that owned the directory opened it in this boot."""
        try:
            owner = self._files.read(f"{self._data}/{paths.LOCK}")
        except FileNotFoundError:
            return False
        return self._files.boot_id.encode() in owner.split()

    # Reading

    def batches(self, offset: int, end_offset: int) -> Iterator[Batch]:
        """Yield whole batches that begin before `end_offset`; the first holds `offset`.

        Control batches are included. Requires: `end_offset` is at most the high watermark.

        Raises:
            OffsetOutOfRange: `offset` is outside the log, or was removed before it was read.
            CorruptRecord: the next batch is damaged, or is missing.
        """
        if not self.log_start_offset <= offset <= self.high_watermark:
            raise self._out_of_range(offset)
        try:
            yield from walk(
                self._listing,
                offset,
                end_offset,
                open_at=self._open_at,
                look_again=self._look_again,
            )
        except OSError as error:
            raise unreadable(self.topic_partition, error) from error
        if end_offset >= self.high_watermark and self.damage is not None:
            raise again(self.damage)

    def _open_at(self, base: int, offset: int) -> tuple[ForeignSegment, int, int | None]:
        tail = self._tail
        assert tail is not None
        is_tail = base == tail.segment.base_offset
        segment = tail.segment if is_tail else self._listing.segment(base)
        return segment, segment.position_of(offset), tail.position if is_tail else None

    def _look_again(self, offset: int) -> None:
        self.refresh()
        if offset < self._listing.bases[0]:
            raise self._out_of_range(offset)

    def _out_of_range(self, offset: int) -> errors.KafkaError:
        return errors.OffsetOutOfRange(
            f"{self.topic_partition} holds offsets {self.log_start_offset} to "
            f"{self.high_watermark}, not {offset}"
        )

    def offset_for_timestamp(self, timestamp: int) -> int | None:
        """Return the offset of the first record with at least this timestamp; None without one."""
        end = self.high_watermark
        bases = self._listing.bases
        for slot, base in enumerate(bases):
            if slot + 1 < len(bases):
                if bases[slot + 1] <= self.log_start_offset:
                    continue
                try:
                    latest = self._listing.segment(base).latest_timestamp()
                except FileNotFoundError:
                    continue  # the segment was removed meanwhile
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
