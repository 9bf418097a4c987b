"""The segment that compaction writes, and its swap with the segments that it was made from.

    <base>.log.cleaned    being written; removed when the directory is next opened
    <base>.log.swap       whole and synced: from here on it counts, whatever happens
    <base>.log            the former segments are out of the way

The step from `.cleaned` to `.swap` decides. Readers without a lock are never disturbed: the former
segments keep their files open, under any name or none, until the last reader drops them.
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
"""Bytes per sync: the thread that drives the scheduler waits for the disk meanwhile."""
SEGMENT_SIZE_MAX = 2**31 - 1


class SegmentTooLarge(Exception):
    """The batches that stay do not fit into one segment file."""


class CleanedOutput:
    """A segment while compaction fills it. Nobody else uses it before `swap_in`.

    If the disk refuses before that, the next open of the directory removes the file.
    """

    def __init__(
        self, log: Log, base_offset: int, aborted: TransactionIndex, *, suffix: str = paths.CLEANED
    ) -> None:
        """Begin the file; `aborted` gets the aborted transactions of the appended batches.

        `suffix` ends with `paths.CLEANED`: the next open removes the file after a crash.
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
        """Add a batch with the offsets it has.

        Raises:
            SegmentTooLarge: there are 2 GiB already.
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
        """Write and sync the rest; the segment spans the offsets below `next_offset`."""
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
        """Put the finished segment in place of `former`; return the useless files.

        Requires: the partition lock, and that `former` is part of the log, in a row and not written
        to. After the deciding step the swap can only be completed: if the disk runs short
        `is_swapping` stays set, and the caller repeats the call. Another error or an interrupt
        there poisons the log: the next open completes the swap.
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
        """Do the steps after the decision; they can be repeated after an error."""
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
        """Remove the file. Not after `swap_in`."""
        self._file.close()
        if self._log.files.stat(self._path) is not None:
            self._log.files.remove(self._path)

    def _write(self) -> None:
        if not self._pending:
            return
        # Joined, because a single call of the system takes no more than 1,024 pieces.
        content = b"".join(self._pending)
        write_fully(self._file.write, [content], self.segment.end[1] - self._pending_size)
        self._pending.clear()
        self._pending_size = 0
        if self.segment.end[1] - self._synced_size >= SYNC_SIZE:
            self._sync()

    def _sync(self) -> None:
        # At every level but memory: the former segments are about to be removed, and may have been
        # durable.
        if not self._is_volatile:
            self._file.sync()
        self._synced_size = self.segment.end[1]


def _put_away(former: tuple[Segment, ...]) -> list[str]:
    """Give the files of former segments meaningless names; return these.

    The first one's log stays, because the new one replaces it. So does its snapshot: the producer
    state at that offset is the same.
    """
    useless = former[0].file.put_away(paths.SIDECARS)
    for old in former[1:]:
        useless += old.file.put_away()
    return useless
