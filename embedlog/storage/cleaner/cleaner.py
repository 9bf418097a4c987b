"""The cleaner of a data directory's logs.

It does a round on the log with the largest share of dirty bytes, then on the next, until no log is
due. It works in slices of some milliseconds, in the thread that drives the scheduler. While no
compacted log changes it does not run at all.
"""

from __future__ import annotations

from contextlib import suppress

from embedlog.errors import CorruptRecord, KafkaError
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.storage.cleaner.dirty_range import DirtyRange, dirty_range
from embedlog.storage.cleaner.output import SegmentTooLarge
from embedlog.storage.cleaner.round import CleaningRound, LogChanged
from embedlog.storage.events import events
from embedlog.storage.log_health import HARMLESS_ERRORS
from wire.records.errors import RecordsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from embedlog.runtime import Clock
    from embedlog.storage.cleaner.settings import CleanerSettings
    from embedlog.storage.log.log import Log


class LogCleaner:
    """Compacts the logs of one data directory. Thread-safe: one call at a time."""

    def __init__(
        self,
        logs: Callable[[], Sequence[Log]],
        settings: CleanerSettings,
        clock: Clock,
        *,
        checkpoint: Callable[[], object],
        remove: Callable[[list[str], int], None],
    ) -> None:
        """`checkpoint` stores every log's `cleaned_offset`.

        `remove(paths, delay_ms)` removes files after a delay.
        """
        self._logs = logs
        self._checkpoint = checkpoint
        self._remove = remove
        self._settings = settings
        self._clock = clock
        self._lock = ranked_rlock(Rank.CLEANER)
        self._round: CleaningRound | None = None
        self._is_stopped = False
        self.uncleanable: dict[Log, tuple[int, str]] = {}
        """Log -> (wall time, reason) of a failed cleaning. Such a log is not cleaned again before
        it is next opened."""

    def run_once(self) -> int | None:
        """Do one slice of work; return the milliseconds until the next.

        None if no log will be due before a log changes.
        """
        with self._lock:
            if self._is_stopped or not self._settings.log_cleaner_enable:
                return None
            if self._round is None:
                wait_ms = self._begin()
                if self._round is None:
                    return wait_ms
            return self._continue(self._round)

    def finish_now(self) -> Iterator[int]:
        """Do every round that is due, one slice per step of the iterator.

        If the slice completed a round, yield the bytes that the round has saved, else 0. Stop early
        if the disk refuses a round, or if the log was changed so that the round had to end.
        """
        while True:
            with self._lock:
                if self._is_stopped or not self._settings.log_cleaner_enable:
                    return
                if self._round is None:
                    self._begin()
                round = self._round
                if round is None:
                    return
                self._continue(round)
                if round.log.chain.is_swapping:
                    return
                is_over = self._round is None
                is_complete = is_over and round.is_complete
            yield round.progress.size - round.progress.written if is_complete else 0
            if is_over and not is_complete and round.log not in self.uncleanable:
                return

    def stop(self) -> None:
        """Abandon the present round, and do no work from now on."""
        with self._lock:
            self._is_stopped = True
            self._end_round()

    def _begin(self) -> int | None:
        """Begin a round on the due log with the largest share of dirty bytes.

        If no log is due, return the milliseconds until the next look, as `run_once` does.
        """
        now_ms = self._clock.wall_ms()
        logs = [log for log in self._logs() if log.config.compact and log.failure is None]
        self.uncleanable = {log: why for log, why in self.uncleanable.items() if log in logs}
        best: tuple[Log, DirtyRange] | None = None
        waits = []
        for log in logs:
            if log in self.uncleanable:
                continue
            try:
                found = dirty_range(log, now_ms)
            except CorruptRecord as error:
                self._leave_alone(log, str(error))
                continue
            except KafkaError as error:
                # A segment cannot be opened. Without a descriptor try again later; after any other
                # error leave the log alone.
                if not _is_harmless(error):
                    self._leave_alone(log, str(error))
                waits.append(self._settings.log_cleaner_backoff_ms)
                continue
            if found.is_due and (best is None or found.ratio > best[1].ratio):
                best = (log, found)
            if found.wait_ms is not None:
                waits.append(found.wait_ms)
        if best is None:
            return max(min(waits), self._settings.log_cleaner_backoff_ms) if waits else None
        settings = self._settings
        size_max = settings.log_cleaner_dedupe_buffer_size
        self._round = CleaningRound(
            *best,
            now_ms=now_ms,
            map_size_max=int(size_max * settings.log_cleaner_io_buffer_load_factor),
            checkpoint=self._checkpoint,
            remove=self._remove,
        )
        return None

    def _continue(self, round: CleaningRound) -> int:
        size = round.progress.read + round.progress.written
        try:
            if round.step():
                self._round = None
                self._checkpoint()
                read, written = round.progress.read, round.progress.written
                events.info(
                    "%s was compacted: %d bytes read, %d written",
                    round.log.topic_partition,
                    read,
                    written,
                )
        except LogChanged:
            self._end_round()
        except (CorruptRecord, RecordsError, SegmentTooLarge) as error:
            self._give_up(round.log, error)
        except (KafkaError, OSError) as error:
            if not _is_harmless(error):
                self._give_up(round.log, error)
            else:
                # The disk is full or too many files are open: try again later.
                self._end_round()
                return self._settings.log_cleaner_backoff_ms
        if round.log.chain.is_swapping:
            return self._settings.log_cleaner_backoff_ms  # the disk is full
        moved = round.progress.read + round.progress.written - size
        return max(1, int(moved * 1000 / self._settings.log_cleaner_io_max_bytes_per_second))

    def _give_up(self, log: Log, error: Exception) -> None:
        events.warning("%s cannot be compacted and is left alone: %s", log.topic_partition, error)
        self._leave_alone(log, f"{type(error).__name__}: {error}")
        self._end_round()

    def _leave_alone(self, log: Log, why: str) -> None:
        self.uncleanable[log] = (self._clock.wall_ms(), why)

    def _end_round(self) -> None:
        round, self._round = self._round, None
        if round is None:
            return
        with suppress(OSError):  # the next open of the log removes the rest
            round.abandon()


def _is_harmless(error: KafkaError | OSError) -> bool:
    """Return whether the cause is a shortage (disk, descriptors) that may be over next time."""
    cause = error.__cause__ if isinstance(error, KafkaError) else error
    return isinstance(cause, OSError) and cause.errno in HARMLESS_ERRORS
