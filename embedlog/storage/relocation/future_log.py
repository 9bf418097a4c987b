"""The copy of a log in another directory, until it takes the log's place (Kafka's future log)."""

from __future__ import annotations

from embedlog.errors import KafkaStorageError
from embedlog.runtime.files import File, remove_tree, write_fully, write_whole
from embedlog.storage import paths
from embedlog.storage.log.log import Log
from embedlog.storage.open_files import OpenFiles
from embedlog.storage.segments.segment import Segment
from embedlog.storage.segments.segment_file import ALL_FILES
from embedlog.storage.state_files import partition_metadata
from embedlog.storage.state_files.published_offset import PublishedOffset
from embedlog.storage.state_files.sealed_file import write_sealed

CHUNK_SIZE = 1 << 20
SYNC_SIZE = 8 << 20
"""The copy is synced each time that this many bytes were written. The thread that drives the
scheduler waits for each sync, so a sync must be short."""


class _Copied:
    def __init__(self, segment: Segment) -> None:
        self.size = 0
        self.unsynced_size = 0
        self.end_offset = segment.base_offset
        self.is_sealed = False
        """True once the copy of a closed segment is complete and synced, with its indexes."""
        self.file: File | None = None

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None


class FutureLog:
    """The copy of one log. For one thread at a time. Only `finish` needs the log's locks.

    Methods raise KafkaStorageError if a segment of the log cannot be read.
    """

    def __init__(self, log: Log, open_files: OpenFiles, data: str, uuid: bytes) -> None:
        """The copy will lie in the data directory `data`, which `open_files` belongs to.

        Nothing is created before `make`.
        """
        self._log = log
        self._open_files = open_files
        self._files = open_files.files
        self._segments: dict[Segment, _Copied] = {}
        self.directory = f"{data}/{paths.future_log_name(log.topic_partition, uuid)}"

    @property
    def size(self) -> int:
        return sum(copied.size for copied in list(self._segments.values()))

    @property
    def end_offset(self) -> int:
        """End offset of the last segment whose bytes are all copied.

        Records behind it may be copied as well: their offsets are unknown without decoding.
        """
        known = [copied.end_offset for copied in list(self._segments.values())]
        return max(known, default=self._log.offsets.log_start_offset)

    @property
    def lag_size(self) -> int:
        known = self._segments
        return sum(
            segment.size - (known[segment].size if segment in known else 0)
            for segment in self._log.segments
        )

    def make(self) -> None:
        self._files.make_directory(self.directory)

    def catch_up(self, size_max: int) -> int:
        """Copy at most `size_max` more bytes, oldest segment first; return how many were copied."""
        log, left = self._log, size_max
        segments = log.segments
        self._drop_changed(segments)
        for segment in segments:
            copied = self._segments.setdefault(segment, _Copied(segment))
            if copied.is_sealed:
                continue
            try:
                left -= self._copy(segment, copied, left)
                if segment is segments[-1] or copied.size < segment.size:
                    break
                self._seal(segment, copied)
                if left <= 0:
                    break
            except (OSError, KafkaStorageError):
                # No error if retention or compaction has removed the segment meanwhile.
                if segment in log.segments:
                    raise
                break
        return size_max - left

    def sync(self) -> None:
        """Sync the copied bytes, so that `finish` has little to sync under the log's locks."""
        for segment, copied in self._segments.items():
            self._sync(segment, copied)

    def finish(self) -> None:
        """Copy the remaining bytes and the files beside the segments, and sync all of it.

        Requires: the partition lock and the sync lock.
        """
        log, files = self._log, self._files
        while self.lag_size:
            self.catch_up(CHUNK_SIZE)
        self.catch_up(1)  # creates the copy of an empty last segment: no byte of it is left to copy
        self.sync()
        self._copy_file(self._path(log.segments[-1], paths.SNAPSHOT))
        for name in log.files.list(log.directory):
            if name.endswith(paths.QUARANTINE):
                self._copy_file(f"{self.directory}/{name}", sync=True)
        if log.topic_id is not None:
            path = f"{self.directory}/{paths.PARTITION_METADATA}"
            partition_metadata.write(files, path, log.topic_id, sync=True)
        content = log.epochs.cache.encode()
        write_sealed(files, f"{self.directory}/{paths.SEALED_LEADER_EPOCHS}", content, sync=True)
        if log.offsets.published is not None:
            published = PublishedOffset(self._open_files, self.directory)
            published.store(log.offsets.high_watermark)
            published.release()
        mark = f"{self.directory}/{paths.COPIED_HERE}"
        write_whole(files, mark, f"{log.directory}\n".encode(), sync=True)
        files.sync_directory(self.directory)

    def close(self) -> None:
        for copied in self._segments.values():
            copied.close()

    def discard(self) -> None:
        """Remove the copy. After an OSError the next open of the data directory removes it."""
        self.close()
        self._segments.clear()
        remove_tree(self._files, self.directory)

    # Steps

    def _drop_changed(self, segments: tuple[Segment, ...]) -> None:
        """Remove copies of segments that left the log: new segments may have the same names."""
        present = set(segments)
        for segment in [each for each in self._segments if each not in present]:
            self._segments[segment].close()
            for suffix in ALL_FILES:
                path = self._path(segment, suffix)
                if self._files.stat(path) is not None:
                    self._files.remove(path)
            del self._segments[segment]

    def _copy(self, segment: Segment, copied: _Copied, size_max: int) -> int:
        end_offset, size, _, _ = segment.end
        file = self._open(segment, copied)
        start = copied.size
        end = min(size, start + size_max)
        while copied.size < end:
            chunk_end = min(end, copied.size + CHUNK_SIZE)
            view = segment.file.view(copied.size, chunk_end)
            write_fully(file.write, [view], copied.size)
            copied.unsynced_size += chunk_end - copied.size
            copied.size = chunk_end
            if copied.unsynced_size >= SYNC_SIZE:
                self._sync(segment, copied)
        if copied.size == size:
            copied.end_offset = end_offset
        return end - start

    def _open(self, segment: Segment, copied: _Copied) -> File:
        if copied.file is None:
            copied.file = self._files.open(self._path(segment, paths.LOG), create=True)
            if not copied.size:
                copied.file.truncate(0)
        return copied.file

    def _sync(self, segment: Segment, copied: _Copied) -> None:
        if copied.unsynced_size:
            self._open(segment, copied).sync()
            copied.unsynced_size = 0

    def _seal(self, segment: Segment, copied: _Copied) -> None:
        """Sync the complete copy of a closed segment, and copy its indexes and snapshot."""
        if copied.is_sealed:
            return
        self._sync(segment, copied)
        copied.close()
        for suffix in (*paths.SIDECARS, paths.SNAPSHOT):
            self._copy_file(self._path(segment, suffix))
        copied.is_sealed = True

    def _copy_file(self, path: str, *, sync: bool = False) -> None:
        """Copy the file of the same name in the log's directory to `path`, if it exists."""
        log = self._log
        try:
            content = log.files.read(f"{log.directory}/{path.rpartition('/')[2]}")
        except FileNotFoundError:
            return
        write_whole(self._files, path, content, sync=sync)

    def _path(self, segment: Segment, suffix: str) -> str:
        return paths.segment_file(self.directory, segment.base_offset, suffix)
