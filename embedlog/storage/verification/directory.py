"""Checking every file of a data directory, without changing any.

No lock is taken. If the directory is in use, or was not closed cleanly, a torn batch at the end of
a log is no damage: a process is writing it, or the next open cuts it off. A bad index or snapshot
is reported as damage as well, although the next open rebuilds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from embedlog.common import TopicPartition
from embedlog.errors import CorruptRecord
from embedlog.runtime.files import Files
from embedlog.storage import paths
from embedlog.storage.log.gaps import read_gaps_below
from embedlog.storage.producers import snapshot as producer_snapshot
from embedlog.storage.recovery.torn_write import is_torn
from embedlog.storage.segments.scan import has_good_batch_after
from embedlog.storage.state_files import partition_metadata
from embedlog.storage.state_files.checkpoint_files import NAMES, WITH_TWIN, read_text, read_twin
from embedlog.storage.state_files.clean_shutdown import holds_marker, was_written_in_this_boot
from embedlog.storage.state_files.commit_file import check_commits
from embedlog.storage.state_files.leader_epochs import LeaderEpochs, read_epochs, read_epochs_text
from embedlog.storage.state_files.published_offset import read_published
from embedlog.storage.verification.root import (
    check_archives,
    check_epochs_text,
    check_marker,
    check_properties,
    check_texts,
    was_closed_by_us,
)
from embedlog.storage.verification.segment import PAGE_SIZE, SegmentCheck
from embedlog.storage.verification.verified_segments import SoundSegments, VerifiedSegment


class DirectoryCheck:
    """The check of one data directory; `findings` runs it."""

    def __init__(
        self,
        files: Files,
        data: str,
        progress: Callable[[int], None],
        is_chosen: Callable[[TopicPartition], bool] = lambda _: True,
        *,
        known: Mapping[str, VerifiedSegment] | None = None,
        wall_ms: int = 0,
    ) -> None:
        """Prepare to check the partitions that `is_chosen` accepts.

        `progress` is called with each number of segment bytes read. `known` has the closed segments
        that an earlier check found sound, by their path below `data`: an unchanged one is not read.
        `wall_ms` is stored as the time of the check of each sound segment.
        """
        self._files = files
        self._data = data
        self._progress = progress
        self._is_chosen = is_chosen
        self._is_clean = holds_marker(files, data)
        self._is_closed = self._is_clean and was_closed_by_us(files, data)
        # If the machine restarted without a clean shutdown, the epoch cache may be older than the
        # log.
        self._knows_epochs = self._is_clean or was_written_in_this_boot(files, data)
        self._checkpoints: dict[str, Mapping[TopicPartition, int]] = {}
        self.ends: dict[TopicPartition, tuple[int, int]] = {}
        """Checked partition -> (base offset of its first segment, end offset)."""
        self.torn_size = 0
        """Bytes of torn batches at the ends of logs: no damage."""
        self.batch_count = 0
        self.segment_count = 0
        self.sound = SoundSegments(files, data, known or {}, wall_ms)

    def partitions(self) -> list[TopicPartition]:
        """Return every chosen partition that has a directory."""
        found = map(paths.parse_log_directory, self._files.list(self._data))
        return sorted(each for each in found if each is not None and self._is_chosen(each))

    def size(self) -> int:
        """Return the size of all chosen segments, as the total for a progress display."""
        total = 0
        for topic_partition in self.partitions():
            directory = paths.log_directory(self._data, topic_partition)
            for name in self._files.list(directory):
                stat = self._files.stat(f"{directory}/{name}") if name.endswith(paths.LOG) else None
                total += stat.size if stat is not None else 0
        return total

    def findings(self) -> Iterator[CorruptRecord]:
        """Check the directory and yield each damage: file, position and reason."""
        yield from self._directory_files()
        for topic_partition in self.partitions():
            yield from self._log(topic_partition)
        yield from self._ranges()

    def _directory_files(self) -> Iterator[CorruptRecord]:
        yield from check_properties(self._files, self._data)
        yield from check_marker(self._files, self._data)
        yield from check_archives(self._files, self._data)
        yield from check_commits(self._files, self._data)
        if self._is_closed:
            present = filter(None, map(paths.parse_log_directory, self._files.list(self._data)))
            yield from check_texts(self._files, self._data, set(present))
        try:
            read_twin(self._files, self._data, paths.GAPS)
        except CorruptRecord as error:
            yield error
        for name in NAMES:
            for read in (read_text, read_twin) if name in WITH_TWIN else (read_text,):
                try:
                    found = read(self._files, self._data, name)
                except CorruptRecord as error:
                    yield error
                else:
                    if found is not None:
                        self._checkpoints[name] = found

    def _log(self, topic_partition: TopicPartition) -> Iterator[CorruptRecord]:
        directory = paths.log_directory(self._data, topic_partition)
        try:
            names = self._files.list(directory)
        except FileNotFoundError:
            return  # the log was deleted meanwhile
        epochs, found = self._epochs(directory)
        yield from found
        if self._is_closed:
            yield from check_epochs_text(self._files, directory)
        yield from self._small_files(directory, names)
        gaps_below = read_gaps_below(self._files, self._data, topic_partition)
        bases = paths.segment_bases(names)
        epoch, expected = -1, -1
        # Unless the log is complete from offset 0, transactions may have begun in removed segments.
        transactions: dict[int, int] | None = {} if bases[:1] == [0] and not gaps_below else None
        for slot, base in enumerate(bases):
            segment = SegmentCheck(
                self._files,
                directory,
                base,
                epochs=epochs,
                gaps_below=gaps_below,
                progress=self._progress,
                transactions=transactions,
            )
            if 0 <= expected != base and not expected < base <= gaps_below:
                reason = f"begins at offset {base}, the segment before ends at {expected}"
                yield CorruptRecord(segment.path, 0, reason)
            is_last = slot + 1 == len(bases)
            self.segment_count += 1
            known = None if is_last else self.sound.known_as(segment.path)
            if known is not None:
                epoch, expected = known.epoch, known.next_offset
                transactions = None if known.transactions is None else dict(known.transactions)
                self.batch_count += known.batch_count
                continue
            stat, is_sound = self._files.stat(segment.path), True
            for finding in segment.findings(epoch):
                if is_last and self._is_unfinished(topic_partition, segment):
                    self.torn_size += len(segment.tail or b"") - segment.end % PAGE_SIZE
                else:
                    is_sound = False
                    yield finding
            epoch, expected = segment.epoch, segment.next_offset
            self.batch_count += segment.batch_count
            if is_sound and not is_last and stat is not None:
                self.sound.remember(segment, stat, transactions)
        if bases:
            self.ends[topic_partition] = (bases[0], expected)

    def _is_unfinished(self, topic_partition: TopicPartition, segment: SegmentCheck) -> bool:
        """Return whether the damage in the last segment is only a torn write at its end.

        That is no damage in a directory that is in use, or was not closed cleanly.
        """
        if segment.tail is None or self._is_clean:
            return False
        points = self._checkpoints.get(paths.RECOVERY_POINTS, {})
        if segment.next_offset < points.get(topic_partition, 0):
            return False
        view, at = segment.tail, segment.end % PAGE_SIZE
        is_followed = has_good_batch_after(view, at, segment.next_offset, beyond=at + 1)
        return not is_followed and is_torn(view, at)

    def _epochs(self, directory: str) -> tuple[LeaderEpochs | None, list[CorruptRecord]]:
        """Return (epoch cache, damage of its files); the cache is None if it may be out of date."""
        found: list[CorruptRecord] = []
        epochs: LeaderEpochs | None = None
        try:
            read_epochs_text(self._files, directory)
        except CorruptRecord as error:
            found.append(error)
        try:
            epochs = read_epochs(self._files, directory)
        except CorruptRecord as error:
            found.append(error)
        return epochs if self._knows_epochs else None, found

    def _small_files(self, directory: str, names: list[str]) -> Iterator[CorruptRecord]:
        for name in names:
            path = f"{directory}/{name}"
            try:
                if name.endswith(paths.SNAPSHOT):
                    producer_snapshot.decode(self._files.read(path), path)
                elif name == paths.PUBLISHED_OFFSET:
                    read_published(self._files, directory)
                elif name == paths.PARTITION_METADATA:
                    partition_metadata.decode(self._files.read(path), path)
            except FileNotFoundError:
                continue
            except CorruptRecord as error:
                yield error

    def _ranges(self) -> Iterator[CorruptRecord]:
        """Yield each checkpoint entry whose offset lies outside its log."""
        for name, offsets in self._checkpoints.items():
            for topic_partition, offset in offsets.items():
                if topic_partition not in self.ends:
                    continue
                start, end = self.ends[topic_partition]
                is_of_high_watermarks = name == paths.HIGH_WATERMARKS
                if is_of_high_watermarks and not self._is_closed:
                    continue  # an open after a crash ignores this file, which may be out of date
                if offset > end or (is_of_high_watermarks and offset < start):
                    reason = f"offset {offset} of {topic_partition}, which has {start} to {end}"
                    yield CorruptRecord(f"{self._data}/{name}", 0, reason)
