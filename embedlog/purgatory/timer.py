"""The timer: tasks that run after a delay, driven by the runtime's scheduler."""

from __future__ import annotations

from embedlog.purgatory.timing_wheel import TimerTask, TimingWheel
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.runtime.outer_call import ANYWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.runtime.clock import Clock

__all__ = ["Timer", "TimerTask"]

_NEVER = 1 << 63


class Timer:
    """Runs tasks after their delays, with the precision of 1 ms. Thread-safe.

    It is a duty of the scheduler. `on_earlier` is the scheduler's `notify`: `add` calls it with
    the timer, no lock held, if the new task is due before the next announced call of `run_once`.
    """

    def __init__(self, clock: Clock, on_earlier: Callable[[Timer], None] | None = None) -> None:
        self._monotonic_ms = clock.monotonic_ms
        self.on_earlier = on_earlier
        self._lock = ranked_rlock(Rank.TIMER)  # faster than a Lock: see `runtime.pending`
        self._wheel = TimingWheel(start_ms=clock.monotonic_ms(), lock=self._lock)
        self._announced_ms = _NEVER
        self._overdue: list[TimerTask] = []
        """Expired tasks. Each stays until its `run` has returned: Ctrl-C may end it before."""
        self._run_count = 0
        """Number of tasks at the begin of `_overdue` that have run."""
        self._is_running = False
        """True while the next of them runs: it does not count as waiting."""

    @property
    def size(self) -> int:
        with self._lock:
            overdue_count = len(self._overdue) - self._run_count - self._is_running
            return self._wheel.size + overdue_count

    def tasks(self) -> list[TimerTask]:
        """Return the tasks that wait, in no order; each has its `expiration_ms`."""
        with self._lock:
            return self._wheel.tasks()

    def add(self, task: TimerTask) -> None:
        """Run `task` after `task.delay_ms`, or in this very call if the delay is not positive.

        A task that already waits gets the new time. Requires: no lock that `task.run` takes.
        """
        now_ms = self._monotonic_ms()
        wheel = self._wheel
        is_earlier = False
        with self._lock:
            # Move the wheel's time seldom: without a move nothing is wrong, but a task of a few ms
            # may go to a coarser level than necessary.
            if now_ms >= wheel.moves_at_ms or task.delay_ms <= 0:
                wheel.move_time(now_ms)
            waits = wheel.add(task, now_ms + task.delay_ms)
            if waits:
                # After a KeyboardInterrupt `advance` may still have to empty the task's bucket.
                first_ms = wheel.queue[0][0] if wheel.queue else now_ms
                if first_ms < self._announced_ms:
                    self._announced_ms = first_ms
                    is_earlier = True
        if not waits:
            task.run()
        elif is_earlier and self.on_earlier is not None:
            self.on_earlier(self)

    def advance_clock(self, now_ms: int) -> int:
        """Run every task due at `now_ms`, in order of time; return their number.

        `now_ms` may be in the past: later tasks wait for a later call.

        If a task raises, the tasks after it stay due for the next call. A task that Ctrl-C ends
        stays due as well, and runs again. Requires: one thread at a time, as the scheduler does.
        """
        overdue = self._overdue
        with self._lock:
            self._forget_run()
            self._wheel.advance(now_ms, overdue)
        if not overdue:
            return 0
        self._is_running = True
        try:
            while self._run_count < len(overdue):
                overdue[self._run_count].run()
                self._run_count += 1
        except Exception as error:
            if type(error) not in ANYWHERE:
                self._run_count += 1
            raise
        finally:
            self._is_running = False
        count = self._run_count
        with self._lock:
            self._forget_run()
        return count

    def _forget_run(self) -> None:
        if self._run_count:
            # No Ctrl-C can come between these two.
            del self._overdue[: self._run_count]
            self._run_count = 0

    def next_expiration_ms(self) -> int | None:
        """Return the time of the next call of `run_once`; None if no task waits.

        It is at or before the time of the next task.
        """
        with self._lock:
            return self._next_expiration_ms()

    def run_once(self, now_ms: int) -> int | None:
        """Run due tasks; return milliseconds until the next call, None if no task waits."""
        self.advance_clock(now_ms)
        with self._lock:
            next_ms = self._next_expiration_ms()
            if next_ms is None:
                self._announced_ms = _NEVER
                return None
            self._announced_ms = next_ms
        return max(0, next_ms - now_ms)

    def _next_expiration_ms(self) -> int | None:
        if self._overdue:
            return self._wheel.current_time_ms
        return self._wheel.next_expiration_ms()
