"""Writing a compacted segment, and swapping it with the segments that it replaces.

The file has three names, one after the other:

    <base>.log.cleaned    It is being written. After a crash the next open removes it.
    <base>.log.swap       It is whole and synced. After a crash the next open completes the swap.
    <base>.log            The former segments were renamed, and it has taken their place.

The rename from `.cleaned` to `.swap` decides. Readers without a lock are not disturbed: the files
of the former segments stay open, even without a name, until the last reader drops them.
"""

from __future__ import annotations

from embedlog.errors import KafkaStorageError
from embedlog.runtime.files import File, write_fully
from embedlog.storage import paths
from embedlog.storage.events import events
from embedlog.storage.log.log import Log
from embedlog.storage.segments.indexes.offset import RELATIVE_OFFSET_MAX
from embedlog.storage.segments.indexes.transaction import TransactionIndex
from embedlog.storage.segments.segment import Segment
from wire.records.batch import RecordBatch

WRITE_SIZE = 1 << 20
SYNC_SIZE = 8 << 20
"""The output is synced each time that this many bytes were written. The thread that drives the
scheduler waits for each sync, so a sync must be short."""
SEGMENT_SIZE_MAX = 2**31 - 1


class SegmentTooLarge(Exception):
    """The remaining batches do not fit into one segment file."""


class CleanedOutput:
    """A segment while compaction fills it. Nobody else uses it before `swap_in`.

    If the disk refuses before `swap_in`, the next open of the directory removes the file.
    """

    def __init__(
        self, log: Log, base_offset: int, aborted: TransactionIndex, *, suffix: str = paths.CLEANED
    ) -> None:
        """Create the file. `aborted` becomes the segment's index of aborted transactions.

        `suffix` must end with `paths.CLEANED`, so that the next open removes the file after a
        crash.
        """
        self._log = log
        self._is_decided = False
        self._is_volatile = log.config.durability == "memory"
        self.segment = segment = log.chain.new(base_offset)
        segment.aborted.index = aborted
        self._path = segment.path + suffix
        self._file: File = log.files.open(self._path, create=True)
        self._file.truncate(0)
        self._pending: list[memoryview | bytes] = []
        self._pending_size = 0
        self._synced_size = 0

    def append(self, batch: RecordBatch) -> None:
        """Append a batch without changing its offsets.

        Raises:
            SegmentTooLarge: the file would exceed 2 GiB.
        """
        segment = self.segment
        last_offset, size = batch.last_offset, batch.size
        assert last_offset - segment.base_offset <= RELATIVE_OFFSET_MAX, (batch, segment)
        if segment.size + size > SEGMENT_SIZE_MAX:
            raise SegmentTooLarge(f"{self._path}: more than {SEGMENT_SIZE_MAX} bytes")
        interval = self._log.config.index_interval_bytes
        segment.extend(last_offset, size, batch.max_timestamp, interval)
        self._pending.append(batch.buffer)
        self._pending_size += size
        if self._pending_size >= WRITE_SIZE:
            self._write()

    def finish(self, next_offset: int, modified_ms: int) -> None:
        """Write and sync the rest. `next_offset` is the end offset of the finished segment."""
        self._write()
        segment = self.segment
        _, size, largest, holder = segment.end
        self._sync()
        self._file.close()
        segment.end = (next_offset, size, largest, holder)
        segment.file.capacity = segment.synced_size = size
        segment.modified_ms = modified_ms
        segment.file.dirty = True
        segment.file.is_name_synced = True

    def swap_in(self, former: tuple[Segment, ...]) -> list[str]:
        """Replace the segments `former` by the finished one; return the paths of files to remove.

        Requires: the partition lock. `former` are closed segments of the log, next to each other.

        The rename to `.swap` decides. If the disk runs short after it, `swap_in` raises,
        `is_swapping` stays set, and the caller must repeat the call. Any other error or an
        interrupt after the rename poisons the log, and the next open completes the swap.

        Raises:
            KafkaStorageError: the disk refuses, or another swap of the log is under way.
        """
        log, segment = self._log, self.segment
        if log.chain.is_swapping and not self._is_decided:
            raise KafkaStorageError(f"{segment.path}: another swap of {log} is under way")
        is_left = False
        try:
            if not self._is_decided:
                self._decide(former)
            useless = self._complete(former)
        except OSError as error:
            refusal = log.health.refused(error)
            is_left = log.failure is None
            raise refusal from error
        finally:
            if log.chain.is_swapping and not is_left:
                log.health.poison(KafkaStorageError(f"the swap of {segment.path} was interrupted"))
        self._store_indexes()
        return useless

    def _decide(self, former: tuple[Segment, ...]) -> None:
        for old in former:
            old.file.part_with()
        self._log.chain.is_swapping = self._is_decided = True
        try:
            self._log.files.rename(self._path, self.segment.path + paths.SWAP)
        except OSError:
            self._log.chain.is_swapping = self._is_decided = False
            raise

    def _complete(self, former: tuple[Segment, ...]) -> list[str]:
        """Do the steps after the rename to `.swap`. After an error they can be repeated."""
        log, files, segment = self._log, self._log.files, self.segment
        if not self._is_volatile:
            files.sync_directory(log.directory)
        useless = _put_away(former)
        files.rename(segment.path + paths.SWAP, segment.path)
        log.chain.swap_in(segment, former)
        log.chain.is_swapping = False
        return useless

    def _store_indexes(self) -> None:
        if not self._is_volatile:
            try:
                self.segment.finish()
            except OSError as error:
                # The indexes are hints. The next open rebuilds them.
                events.debug("%s: the indexes are not stored: %s", self.segment.path, error)

    def discard(self) -> None:
        """Remove the file, if it still has its first name. Requires: `swap_in` was not called."""
        self._file.close()
        if self._log.files.stat(self._path) is not None:
            self._log.files.remove(self._path)

    def _write(self) -> None:
        if not self._pending:
            return
        # Join the pieces, because one system call takes at most 1,024 of them.
        content = b"".join(self._pending)
        write_fully(self._file.write, [content], self.segment.end[1] - self._pending_size)
        self._pending.clear()
        self._pending_size = 0
        if self.segment.end[1] - self._synced_size >= SYNC_SIZE:
            self._sync()

    def _sync(self) -> None:
        # Sync at every durability level but `memory`: the former segments will be removed, and
        # their records may have been durable.
        if not self._is_volatile:
            self._file.sync()
        self._synced_size = self.segment.end[1]


def _put_away(former: tuple[Segment, ...]) -> list[str]:
    """Rename the files of former segments for removal; return the new paths.

    The first segment's `.log` file keeps its name: the new file will be renamed over it. The first
    producer snapshot stays, because the producer state at its offset is the same.
    """
    useless = former[0].file.put_away(paths.SIDECARS)
    for old in former[1:]:
        useless += old.file.put_away()
    return useless
