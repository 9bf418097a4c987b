"""`SimScheduler`: a scheduler without threads. A seed decides the order of events.

Waiting costs no real time: if no duty is due, the clock jumps to the next duty or to the end of the
wait.
"""

from __future__ import annotations

from embedlog.runtime.scheduler import Scheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.runtime.duty_thread import DutyThread
    from embedlog.runtime.pending import Pending
    from embedlog.runtime.randomness import Random
    from embedlog.runtime.threads import Duty, Thread
    from embedlog.testing.sim_clock import SimClock

_STEPS_MAX = 1_000_000
_STALLED_MAX = 10_000


class SimScheduler(Scheduler):
    """Runs duties in an order drawn from a seed, on the thread that waits or steps.

    It has no threads: `start_thread` fails, because no seed controls threads of the system.
    """

    def __init__(self, clock: SimClock, random: Random) -> None:
        super().__init__(clock, lambda due: _shuffled(due, random))
        self._clock: SimClock = clock

    def wait(self, pending: Pending[object], timeout_ms: int | None) -> bool:
        """Run duties and move the clock until `pending` is done or the time-out ends.

        Raises:
            AssertionError: the wait has no time-out and no duty could end it.
        """
        clock = self._clock
        deadline = None if timeout_ms is None else clock.monotonic_ms() + timeout_ms
        stalled = 0
        for _ in range(_STEPS_MAX):
            if pending.done():
                return True
            now_ms = clock.monotonic_ms()
            delay = self.run_due(now_ms)
            if pending.done():
                return True
            if deadline is not None and now_ms >= deadline:
                return False
            remaining = None if deadline is None else deadline - now_ms
            choices = [value for value in (delay, remaining) if value is not None]
            assert choices, "a wait for ever, and no duty that could end it"
            clock.advance(min(choices))
            stalled = stalled + 1 if min(choices) == 0 else 0
            assert stalled < _STALLED_MAX, "duties that are due again and again at one moment"
        raise AssertionError(f"a wait of more than {_STEPS_MAX} steps")

    def run_for(self, delay_ms: int) -> None:
        """Move the clock by `delay_ms`, and run every duty when it is due."""
        clock = self._clock
        end = clock.monotonic_ms() + delay_ms
        for _ in range(_STEPS_MAX):
            now_ms = clock.monotonic_ms()
            delay = self.run_due(now_ms)
            if now_ms >= end and delay != 0:
                return
            clock.advance(min(end - now_ms, end - now_ms if delay is None else delay))
        raise AssertionError(f"more than {_STEPS_MAX} steps in {delay_ms} ms")

    def start_thread(self, target: Callable[[], None], name: str) -> Thread:
        """Raise AssertionError: a simulation has one thread."""
        raise AssertionError(f"thread {name!r} in a simulation: make it a duty")

    def _failed(self, duty: Duty, error: Exception) -> None:
        """Raise the error, so that the test sees it."""
        raise error

    def duty_thread(self, duty: Duty, name: str) -> DutyThread:
        """Add the duty to this scheduler, without a thread."""
        self.add(duty)
        return _SimulatedThread(self, duty)  # type: ignore[return-value]

    def at_exit(self, function: Callable[[], None], order: int) -> Callable[[], None]:
        """Do nothing: a simulation ends with its test."""
        return lambda: None

    @property
    def is_watched(self) -> bool:
        """True: the test notices delays."""
        return True


def _shuffled(due: list[Duty], random: Random) -> list[Duty]:
    shuffled = []
    while due:
        shuffled.append(due.pop(random.below(len(due))))
    return shuffled


class _SimulatedThread:
    """Stands for a `DutyThread`; the scheduler runs its duty."""

    __slots__ = ("_duty", "_scheduler")

    def __init__(self, scheduler: Scheduler, duty: Duty) -> None:
        self._scheduler = scheduler
        self._duty = duty

    def notify(self) -> None:
        self._scheduler.notify(self._duty)

    def close(self) -> None:
        self._scheduler.remove(self._duty)
