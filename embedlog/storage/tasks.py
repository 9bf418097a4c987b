"""The background work of a log manager, and when each piece of it is due.

    retention, expiry of producers     at their intervals, which are long
    checkpoints, flushes               once something may have changed, until they find nothing new
    compaction                         the same, once there is a compacted log
    unlinking                          file.delete.delay.ms after files have become useless

So an idle broker does not wake for the second kind. `stir` gives those that rest their time again:
the broker calls it after a request when `is_resting` is set.
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord, KafkaError
from embedlog.storage.log_config import NO_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.runtime import Clock
    from embedlog.storage.cleaner import LogCleaner, Settings
    from embedlog.storage.log import Log
    from embedlog.storage.log_manager import LogManager

CHECKPOINT_INTERVAL_MS = 60_000
HIGH_WATERMARK_INTERVAL_MS = 5_000
RETENTION_INTERVAL_MS = 300_000
RETENTION_FIRST_MS = 30_000
PRODUCER_EXPIRY_INTERVAL_MS = 600_000
FLUSH_INTERVAL_MS = 1_000
CLEANER_BACKOFF_MS = 15_000

_NEVER = 1 << 62
_AFTER_CHANGES = {
    "_checkpoint": CHECKPOINT_INTERVAL_MS,
    "_high_watermarks": HIGH_WATERMARK_INTERVAL_MS,
    "_flush": FLUSH_INTERVAL_MS,
    "_clean": CLEANER_BACKOFF_MS,
}

CLOCK_DRIFT_MAX_MS = 5 * 60_000
"""Wall and monotonic time may part by this much before retention stops believing the wall clock."""


class Tasks:
    """A table of recurring work. An I/O error poisons the log it hits, and no other."""

    __slots__ = (
        "_clock",
        "_cleaner_settings",
        "_due",
        "_flushed",
        "_manager",
        "_useless",
        "_wall_offset",
        "cleaner",
        "is_resting",
        "retention_paused",
    )

    def __init__(
        self,
        manager: LogManager,
        clock: Clock,
        *,
        retention_first_ms: int = RETENTION_FIRST_MS,
        retention_interval_ms: int = RETENTION_INTERVAL_MS,
        cleaner_settings: Settings | None = None,
    ) -> None:
        self._manager = manager
        self._clock = clock
        now_ms = clock.monotonic_ms()
        self._wall_offset = clock.wall_ms() - now_ms
        self.retention_paused = False
        """The wall clock has jumped: nothing is removed by age until it is back."""
        self.cleaner: LogCleaner | None = None
        """Made when the first compacted log may need it."""
        self._cleaner_settings = cleaner_settings
        self._useless: list[tuple[int, list[str]]] = []
        """(monotonic time, files to remove then)."""
        self._flushed: dict[Log, int] = {}
        """Log -> monotonic time of its last flush."""
        self.is_resting = True
        """Would a change that is made now go unnoticed until `stir` is called?"""
        self._due: dict[str, list[int]] = {
            "_retention": [now_ms + retention_first_ms, retention_interval_ms],
            "_expire": [now_ms + PRODUCER_EXPIRY_INTERVAL_MS, PRODUCER_EXPIRY_INTERVAL_MS],
            "_unlink": [_NEVER, 0],
            **{name: [_NEVER, interval] for name, interval in _AFTER_CHANGES.items()},
        }

    def stop(self) -> None:
        """Leave the files alone from here on. Requires: no lock that the work takes."""
        if self.cleaner is not None:
            self.cleaner.stop()

    def stir(self) -> None:
        """Something may have changed: let the work that rests be due after its interval."""
        now_ms = self._clock.monotonic_ms()
        self.is_resting = False
        for name in _AFTER_CHANGES:
            task = self._due[name]
            if task[0] == _NEVER and (name != "_clean" or self._manager.has_compacted):
                task[0] = now_ms + task[1]

    def run_due(self, now_ms: int) -> int:
        """Do what is due at `now_ms` (monotonic); return milliseconds until the next."""
        for name, task in self._due.items():
            if task[0] <= now_ms:
                if name in _AFTER_CHANGES:
                    # Said before the work looks: whoever changes what it has seen finds it said.
                    task[0] = _NEVER
                    self.is_resting = True
                work: Callable[[int], bool] = getattr(self, name)
                if work(now_ms):
                    task[0] = now_ms + task[1]
        return max(1, min(task[0] for task in self._due.values()) - now_ms)

    def unlink_later(self, useless: list[str], delay_ms: int) -> None:
        """Remove files after a while. Requires: called by the work itself.

        What is left at the close, or after a crash, goes when its log is next opened.
        """
        due_ms = self._clock.monotonic_ms() + delay_ms
        self._useless.append((due_ms, useless))
        task = self._due["_unlink"]
        task[0] = min(task[0], due_ms)

    # Each says whether it wants to come back after its interval

    def _checkpoint(self, _now_ms: int) -> bool:
        return self._manager.checkpoint_positions()

    def _high_watermarks(self, _now_ms: int) -> bool:
        return self._manager.checkpoint_high_watermarks()

    def _retention(self, now_ms: int) -> bool:
        from embedlog.storage.retention import delete_old_segments

        wall_ms = self._clock.wall_ms()
        if self._believes_clock(now_ms, wall_ms):
            self._for_each(lambda log: delete_old_segments(log, wall_ms, self.unlink_later))
        return True

    def _clean(self, now_ms: int) -> bool:
        """A slice of compaction. Tombstones age by the wall clock, so it must be right."""
        delay_ms: int | None = CLEANER_BACKOFF_MS
        if self._believes_clock(now_ms, self._clock.wall_ms()):
            if self.cleaner is None:
                from embedlog.storage.cleaner import DefaultSettings, LogCleaner

                settings = self._cleaner_settings or DefaultSettings()
                self.cleaner = LogCleaner(self._manager, settings, self._clock, self.unlink_later)
            delay_ms = self.cleaner.run_once()
        self._due["_clean"][1] = CLEANER_BACKOFF_MS if delay_ms is None else delay_ms
        return delay_ms is not None

    def _believes_clock(self, now_ms: int, wall_ms: int) -> bool:
        drift = wall_ms - now_ms - self._wall_offset
        self.retention_paused = abs(drift) > CLOCK_DRIFT_MAX_MS
        return not self.retention_paused

    def _unlink(self, now_ms: int) -> bool:
        due = [names for due_ms, names in self._useless if due_ms <= now_ms]
        self._useless = [entry for entry in self._useless if entry[0] > now_ms]
        self._due["_unlink"][0] = min((due_ms for due_ms, _ in self._useless), default=_NEVER)
        for useless in due:
            self._manager.remove_files(useless)
        return False

    def _expire(self, _now_ms: int) -> bool:
        wall_ms = self._clock.wall_ms()
        self._for_each(lambda log: log.producers.expire(wall_ms))
        return True

    def _flush(self, now_ms: int) -> bool:
        """Obey flush.ms and flush.messages, for the few topics that set them."""
        logs = self._manager.logs()
        is_any_unsynced = False
        self._flushed = {log: self._flushed[log] for log in logs if log in self._flushed}
        for log in logs:
            config = log.config
            if config.flush_ms == NO_LIMIT and config.flush_messages == NO_LIMIT:
                continue
            last_ms = self._flushed.setdefault(log, now_ms)
            unsynced = log.log_end_offset - log.synced_offset
            is_any_unsynced = is_any_unsynced or unsynced > 0
            if unsynced and (
                now_ms - last_ms >= config.flush_ms or unsynced >= config.flush_messages
            ):
                self._flushed[log] = now_ms
                self._guarded(log, lambda log: log.flush())
        return is_any_unsynced

    def _for_each(self, work: Callable[[Log], object]) -> None:
        for log in self._manager.logs():
            if log.failure is None:
                with log.lock:
                    self._guarded(log, work)

    def _guarded(self, log: Log, work: Callable[[Log], object]) -> None:
        try:
            work(log)
        except (KafkaError, CorruptRecord) as error:
            log.poison(error)
