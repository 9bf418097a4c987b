"""The background work of a log manager, and when each piece of it is due.

    retention, expiry of producers     at their intervals, which are long
    checkpoints, flushes               once something may have changed, until they find nothing new
    compaction                         the same, once there is a compacted log
    unlinking                          file.delete.delay.ms after files have become useless

Checkpoints, flushes and compaction rest once they find nothing new, so an idle broker does not wake
for them. `stir` makes resting work due again: the broker calls it after a request if `is_resting`
is set.

`finish_now` does all work at any time. A process that ends early would never do some work:
`finish_before_close` does this part.
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord, EmbedlogError, KafkaError
from embedlog.storage.events import events
from embedlog.storage.log.periodic_sync import PeriodicSync
from embedlog.storage.log.retention import delete_old_segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from embedlog.runtime import Runtime
    from embedlog.runtime.clock_guard import ClockGuard
    from embedlog.storage.cleaner.cleaner import LogCleaner
    from embedlog.storage.cleaner.settings import CleanerSettings
    from embedlog.storage.directory.leftovers import Leftovers
    from embedlog.storage.directory.log_checkpoints import LogCheckpoints
    from embedlog.storage.directory.owned_directory import OwnedDirectory
    from embedlog.storage.directory.pins import Pins
    from embedlog.storage.log.log import Log

CHECKPOINT_INTERVAL_MS = 60_000
HIGH_WATERMARK_INTERVAL_MS = 5_000
RETENTION_INTERVAL_MS = 300_000
RETENTION_FIRST_MS = 30_000
PRODUCER_EXPIRY_INTERVAL_MS = 600_000
FLUSH_INTERVAL_MS = 1_000

_NEVER = 1 << 62
_AFTER_CHANGES = {
    "_checkpoint": CHECKPOINT_INTERVAL_MS,
    "_high_watermarks": HIGH_WATERMARK_INTERVAL_MS,
    "_unsaved": HIGH_WATERMARK_INTERVAL_MS,
    "_flush": FLUSH_INTERVAL_MS,
    "_clean": 0,  # the interval is log.cleaner.backoff.ms, which may change
}


class LogTasks:
    """A duty that runs recurring work by a table of due times.

    An I/O error poisons only the log that it hits.
    """

    def __init__(
        self,
        runtime: Runtime,
        directory: OwnedDirectory,
        logs: Callable[[], Sequence[Log]],
        *,
        checkpoints: LogCheckpoints,
        leftovers: Leftovers,
        pins: Pins,
        retention_first_ms: int = RETENTION_FIRST_MS,
        retention_interval_ms: int = RETENTION_INTERVAL_MS,
        cleaner_settings: CleanerSettings | None = None,
    ) -> None:
        """`logs` returns the loaded logs."""
        self._runtime = runtime
        self._directory = directory
        self._logs = logs
        self._checkpoints = checkpoints
        self._leftovers = leftovers
        self._pins = pins
        now_ms = runtime.clock.monotonic_ms()
        self.failing: dict[str, tuple[int, str]] = {}
        """Name of work that failed at its last try -> (wall time of the first failure, reason)."""
        self._refusal: Exception | None = None
        """The last error that the running work has met, in any log."""
        self._syncs = PeriodicSync(logs, self._on)
        self.has_compacted = False
        """True if some log may belong to a compacted topic."""
        self.cleaner: LogCleaner | None = None
        """None until a compacted log may need it."""
        if cleaner_settings is None:
            from embedlog.storage.cleaner.settings import DefaultSettings

            cleaner_settings = DefaultSettings()
        self._cleaner_settings = cleaner_settings
        self.is_resting = True
        """True if some work will not notice a change until `stir` is called."""
        self._is_stopped = False
        self._due: dict[str, list[int]] = {
            "_retention": [now_ms + retention_first_ms, retention_interval_ms],
            "_expire": [now_ms + PRODUCER_EXPIRY_INTERVAL_MS, PRODUCER_EXPIRY_INTERVAL_MS],
            "_unlink": [_NEVER, 0],
            **{name: [_NEVER, interval] for name, interval in _AFTER_CHANGES.items()},
        }

    def due_times(self) -> dict[str, int]:
        """Return the monotonic time of each piece of work that is due some time, by its name."""
        return {
            name.strip("_").replace("_", " "): task[0]
            for name, task in self._due.items()
            if task[0] != _NEVER
        }

    def stop(self) -> None:
        """Stop using the files. Requires: the caller holds no lock that the work takes."""
        self._is_stopped = True
        if self.cleaner is not None:
            self.cleaner.stop()

    def stir(self) -> None:
        """Make resting work due after its interval, because something may have changed.

        The callers of this and of `reconfigured` may hold any lock.
        """
        now_ms = self._runtime.clock.monotonic_ms()
        self.is_resting = False
        for name in _AFTER_CHANGES:
            task = self._due[name]
            if task[0] == _NEVER and (name != "_clean" or self.has_compacted):
                task[0] = now_ms + (task[1] if name != "_clean" else self._backoff_ms)
        self._runtime.scheduler.notify(self)

    def reconfigured(self) -> None:
        """Let a waiting compaction begin no later than the changed log.cleaner.backoff.ms says."""
        task = self._due["_clean"]
        if task[0] != _NEVER:
            task[0] = min(task[0], self._runtime.clock.monotonic_ms() + self._backoff_ms)
        self._runtime.scheduler.notify(self)

    @property
    def clock_guard(self) -> ClockGuard:
        """Knows whether the wall clock can be trusted; if not, nothing is deleted by age."""
        return self._runtime.clock_guard

    @property
    def _backoff_ms(self) -> int:
        return max(1, self._cleaner_settings.log_cleaner_backoff_ms)

    def run_once(self, now_ms: int) -> int | None:
        """Do the work that is due at `now_ms` (monotonic); return milliseconds until more is."""
        if self._is_stopped:
            return None
        for name, task in self._due.items():
            if task[0] <= now_ms:
                if name in _AFTER_CHANGES:
                    # Rest before the work looks for changes: `stir` is called after later changes.
                    task[0] = _NEVER
                    self.is_resting = True
                if self._does(getattr(self, name), now_ms):
                    task[0] = now_ms + task[1]
        return max(1, min(task[0] for task in self._due.values()) - now_ms)

    def _does(self, work: Callable[[int], bool], now_ms: int) -> bool:
        """Do some work and record its error; return whether the work wants to run again.

        An error of the disk must not reach the thread that happens to run the work.
        """
        self._refusal = None
        try:
            wants_more = work(now_ms)
        except (OSError, KafkaError) as error:
            self._refusal = error
            wants_more = True
        self._note(work.__name__.strip("_").replace("_", " "), self._refusal)
        return wants_more

    def _on_each(self, work: Callable[[Log], object]) -> None:
        """Call `work` for every log that takes writes, under its lock."""
        for log in self._logs():
            if log.failure is None:
                with log.lock:
                    self._on(log, work)

    def _on(self, log: Log, work: Callable[[Log], object]) -> None:
        """Call `work` for one log and record its error, so that the other logs get their turn.

        A lasting error is also kept in the log's health; a lack of space or descriptors is not.
        """
        try:
            work(log)
        except KafkaError as error:
            self._refusal = error
        except CorruptRecord as error:
            log.health.poison(error)

    def _note(self, name: str, refusal: Exception | None) -> None:
        """Remember whether some work failed; log it when it begins to fail or works again."""
        directory = self._directory.path
        if refusal is None:
            if self.failing.pop(name, None) is not None:
                events.info("%s: %s works again", directory, name)
            return
        if name not in self.failing:
            events.error("%s: %s failed, and is tried again: %s", directory, name, refusal)
        since_ms, _ = self.failing.get(name, (self._runtime.clock.wall_ms(), ""))
        self.failing[name] = (since_ms, str(refusal))

    def unlink_later(self, useless: list[str], delay_ms: int) -> None:
        """Remove files after `delay_ms`. Only the background work itself may call it.

        Files that are left at the close, or after a crash, are removed when their log is next
        opened.
        """
        due_ms = self._runtime.clock.monotonic_ms() + delay_ms
        self._leftovers.add_files(useless, due_ms)
        task = self._due["_unlink"]
        task[0] = min(task[0], due_ms)

    # All at once

    def finish_now(self) -> Iterator[int]:
        """Do all the work now, step by step; each step yields the number of bytes that it freed.

        Useless files are removed without file.delete.delay.ms. Requires: no other thread does any
        of the work during a step; see `Scheduler.exclusively`.
        """
        if self._is_stopped:
            return
        now_ms = self._runtime.clock.monotonic_ms()
        self._expire(now_ms)
        for log in self._logs():
            yield self._retain(log, now_ms)
        if self.has_compacted and self.clock_guard.allows_deletion():
            yield from self._log_cleaner().finish_now()
        self._does(self._flush, now_ms)
        self._unlink(_NEVER)
        self._leftovers.remove()
        self._does(self._checkpoint, now_ms)
        self._does(self._high_watermarks, now_ms)
        self._does(self._unsaved, now_ms)
        yield 0

    def finish_before_close(self) -> None:
        """Remove old segments and every useless file.

        A process that ends before the first interval would otherwise never do so. Requires: no
        other thread does any of the work.
        """
        if self._directory.is_volatile or not self._directory.is_held:
            return
        now_ms = self._runtime.clock.monotonic_ms()
        for log in self._logs():
            try:
                self._retain(log, now_ms, is_closing=True)
            except (OSError, EmbedlogError):
                continue  # the disk refuses: the next process may try
        self._unlink(_NEVER)

    def _retain(self, log: Log, now_ms: int, *, is_closing: bool = False) -> int:
        wall_ms = self._runtime.clock.wall_ms()
        if log.failure is not None or not self.clock_guard.allows_deletion():
            return 0
        pins = self._pins.read(self._runtime.clock.machine_wall_ms())
        with log.lock:
            size = log.size
            pinned = pins.get(log.topic_partition)
            delete_old_segments(log, wall_ms, is_closing=is_closing, pinned_offset=pinned)
            return size - log.size

    # The work. Each method returns whether it is due again after its interval

    def _checkpoint(self, _now_ms: int) -> bool:
        is_any_unsynced = self._syncs.sync_sealed()
        return self._checkpoints.write_positions() or is_any_unsynced

    def _high_watermarks(self, _now_ms: int) -> bool:
        return self._checkpoints.write_high_watermarks()

    def _unsaved(self, _now_ms: int) -> bool:
        """Store again the state of single logs that the disk has refused."""
        unsaved = [log for log in self._logs() if log.refusals() and log.failure is None]
        for log in unsaved:
            with log.lock:
                self._on(log, lambda log: log.save())
        return any(log.refusals() for log in unsaved)

    def _retention(self, now_ms: int) -> bool:
        wall_ms = self._runtime.clock.wall_ms()
        self._leftovers.remove()
        if self.clock_guard.allows_deletion():
            deleted: list[tuple[Log, int]] = []
            pins = self._pins.read(self._runtime.clock.machine_wall_ms())

            def retain(log: Log) -> None:
                pinned = pins.get(log.topic_partition)
                count = delete_old_segments(log, wall_ms, self.unlink_later, pinned_offset=pinned)
                deleted.append((log, count))

            self._on_each(retain)
            for log, count in deleted:
                if count:
                    start, name = log.offsets.log_start_offset, log.topic_partition
                    events.info("%s: %d old segments deleted; it begins at %d", name, count, start)
        return True

    def _clean(self, now_ms: int) -> bool:
        """Do a slice of compaction if the wall clock, by which tombstones age, can be trusted."""
        delay_ms: int | None = self._backoff_ms
        if self.clock_guard.allows_deletion():
            delay_ms = self._log_cleaner().run_once()
        if delay_ms is not None:
            self._due["_clean"][1] = delay_ms
        return delay_ms is not None

    def _log_cleaner(self) -> LogCleaner:
        if self.cleaner is None:
            from embedlog.storage.cleaner.cleaner import LogCleaner

            self.cleaner = LogCleaner(
                self._logs,
                self._cleaner_settings,
                self._runtime.clock,
                checkpoint=self._checkpoints.write_positions,
                remove=self.unlink_later,
            )
        return self.cleaner

    def _unlink(self, now_ms: int) -> bool:
        next_ms = self._leftovers.remove_due(now_ms)
        self._due["_unlink"][0] = _NEVER if next_ms is None else next_ms
        return False

    def _expire(self, _now_ms: int) -> bool:
        wall_ms = self._runtime.clock.wall_ms()
        if self.clock_guard.allows_deletion():
            self._on_each(lambda log: log.transactions.producers.expire(wall_ms))
        return True

    def _flush(self, now_ms: int) -> bool:
        return self._syncs.flush(now_ms)
