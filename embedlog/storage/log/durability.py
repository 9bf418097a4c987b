"""The end of the records that survive a loss of power, and the syncs that extend it.

`runtime/descriptors.py` makes the system call: fdatasync, or F_FULLFSYNC on macOS.
"""

from __future__ import annotations

from errno import EMFILE, ENFILE

from embedlog.runtime.files import NotOpened
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.storage.segments.segment import Segment, segments_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.storage.log_health import LogHealth
    from embedlog.storage.segments.chain import SegmentChain

SYNC_WINDOW_SIZE = 4 << 20
"""At durability `fsync` at most this many bytes of a log are written but not synced. Recovery needs
this limit to tell a torn tail from rot: valid data more than this many bytes behind a bad batch
proves that the bad batch had been synced."""

NO_DESCRIPTOR = (EMFILE, ENFILE)
"""Error numbers of a sync that found no free descriptor. They do not poison the log, whichever call
raised them: no file was opened, so the kernel was not asked to sync. Every other error poisons the
log unless it is a `NotOpened`."""


class LogDurability:
    """The syncs of one log. A thread that takes both locks takes the partition lock first.

    The first failed sync poisons the log: the kernel may have dropped the pages that it could not
    write, and would report success to the next sync. Each method that syncs raises
    KafkaStorageError if this sync or an earlier one failed, which has poisoned the log. It raises
    the same if no descriptor was free: then a later call may succeed.
    """

    __slots__ = ("_chain", "_health", "lock", "synced_offset")

    def __init__(self, chain: SegmentChain, health: LogHealth, synced_offset: int) -> None:
        self._chain = chain
        self._health = health
        self.synced_offset = synced_offset
        """Every record below survives a loss of power."""
        # Re-entrant, so that an interrupt at its release does not lock this thread out for good.
        self.lock = ranked_rlock(Rank.SYNC)

    def sync(self, offset: int) -> None:
        """Return once every record below `offset` survives a loss of power.

        Group commit: if several threads call at the same time, one syncs for all, and the others
        find their records synced when they get the lock. 8 threads make 20,000 durable appends/s;
        with a lock for each waiter, all woken at once, they made 14,000. Call it without the
        partition lock.
        """
        if offset <= self.synced_offset:
            return
        with self.lock:
            if offset > self.synced_offset:
                self._health.check()
                segments = segments_from(self._chain.segments, self.synced_offset)
                self._sync(segments[-1].end[0], segments)

    def flush(self) -> None:
        self.sync(self._chain.end_offset)

    def sync_sealed(self, offset: int) -> None:
        """Sync the full segments that end at or before `offset`.

        Requires: no segments are removed at the same time.
        """
        with self.lock:
            offset = min(offset, self._chain.segments[-1].base_offset)
            if self._health.failure is None and offset > self.synced_offset:
                segments = segments_from(self._chain.segments, self.synced_offset)
                self._sync(offset, tuple(one for one in segments if one.base_offset < offset))

    def sync_cut(self, segment: Segment) -> None:
        """Sync a finished segment, whose file was cut to its content.

        The sync lock keeps a group commit from running at the same time: the kernel reports a
        failed write to one sync only, so the other sync would not see it.
        """
        with self.lock:
            self._health.check()
            self._sync(self._chain.end_offset, (segment,))

    def sync_name(self, segment: Segment) -> None:
        with self.lock:
            self._health.check()
            self._do_sync((segment,), lambda segment: segment.file.sync_name())

    def keep_window(self, segment: Segment, size: int) -> None:
        """Sync first if `size` more bytes would exceed SYNC_WINDOW_SIZE unsynced bytes.

        Requires: the partition lock.
        """
        if segment.end[1] + size - segment.synced_size > SYNC_WINDOW_SIZE:
            self.sync(segment.end[0])

    def promise_less(self, offset: int) -> None:
        """Lower `synced_offset` to `offset`, because the records from there on may be removed.

        Requires: the sync lock, or a new log.
        """
        self.synced_offset = min(self.synced_offset, offset)

    def _sync(self, end: int, segments: tuple[Segment, ...]) -> None:
        """Sync `segments`; then everything below offset `end` is synced.

        Requires: the sync lock, and that the log's health was checked under it.
        """
        self._do_sync(segments, Segment.sync)
        self.synced_offset = max(self.synced_offset, end)

    def _do_sync(self, segments: tuple[Segment, ...], do_sync: Callable[[Segment], None]) -> None:
        for segment in segments:
            try:
                do_sync(segment)
            except OSError as error:
                if isinstance(error, FileNotFoundError) and segment not in self._chain.segments:
                    continue  # retention has removed the segment
                error.filename = segment.path
                if isinstance(error, NotOpened) or error.errno in NO_DESCRIPTOR:
                    raise self._health.refused(error) from error
                raise self._health.poison(error) from error
