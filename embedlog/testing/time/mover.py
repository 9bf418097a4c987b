"""`Mover`: moves the clock of a cluster, and does everything that is due on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from embedlog.errors import IllegalState
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.testing.time.moved_clock import MovedClock
from embedlog.testing.time.moved_scheduler import MovedScheduler

_NEVER = float("inf")


class Mover:
    """Moves one clock. Every thread may call every method, except the thread of a duty."""

    def __init__(self, scheduler: MovedScheduler, clock: MovedClock) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._moving = ranked_lock(Rank.MOVED_CLOCK)

    def move(
        self, duration_ms: int, until: Callable[[], bool] | None = None, *, stride_ms: int = 0
    ) -> bool:
        """Move the clock by `duration_ms`; do everything that is due on the way, in order.

        `until` is called before each step; when it returns True, the move ends there. Return
        whether it did. A step takes at least `stride_ms`: duties that are due within one stride
        run at its end, in the order of their due times.
        """
        clock, scheduler = self._clock, self._scheduler
        with self._one_at_a_time():
            end_ahead_ms = clock.ahead_ms + duration_ms
            try:
                while True:
                    now_ms = clock.monotonic_ms()
                    scheduler.run_all(now_ms)
                    if until is not None and until():
                        return True
                    left_ms = end_ahead_ms - clock.ahead_ms
                    if left_ms <= 0:
                        return False
                    step_ms = max(stride_ms, self._next_moment(now_ms) - clock.monotonic_ms(), 1)
                    clock.advance(int(min(left_ms, step_ms)))
                    clock.waits.let_go(clock.monotonic_ms(), scheduler.wake_parked)
            finally:
                scheduler.wake_all()

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        if self._scheduler.runs_here:
            raise IllegalState("the clock cannot be moved by a call that the clock itself has made")
        with self._moving:
            yield

    def _next_moment(self, now_ms: int) -> float:
        """Return the next time at which something happens, later than `now_ms`."""
        times = [max(at_ms, now_ms + 1) for _, at_ms in self._scheduler.duties()]
        times += [each for each in self._clock.waits.ends() if each > now_ms]
        return min(times, default=_NEVER)
