"""`MovedScheduler`: the real scheduler, with a clock that a test moves.

`Mover` moves the clock. A jump goes from one due time to the next. At each it runs the due duties,
and lets the threads go on whose waits end there. So a session of 45 s ends before a session of
50 s that began with it, and a heartbeat that is due before both is sent before both.

Listeners and waiting threads run duties as well, as with the real clock. A jump wakes them.
"""

from __future__ import annotations

from _thread import get_ident

from embedlog.runtime.duty_thread import DutyThread
from embedlog.runtime.pending import Pending
from embedlog.runtime.scheduler import Scheduler
from embedlog.testing.time.moved_clock import MovedClock
from embedlog.testing.time.waits import Waits, WakeableDutyThread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.threads import Duty

_RUNS_MAX = 10_000
"""A duty that asks for this many runs at one moment waits for something else than time."""


class MovedScheduler(Scheduler):
    """Runs duties and parks threads by a `MovedClock`. See `Scheduler`."""

    def __init__(self, clock: MovedClock) -> None:
        super().__init__(clock)

    @property
    def _waits(self) -> Waits:
        assert isinstance(self._clock, MovedClock), self._clock
        return self._clock.waits

    def wait(self, pending: Pending[object], timeout_ms: int | None) -> bool:
        if pending.done():
            return True
        with self._waits.waiting(timeout_ms):
            return super().wait(pending, timeout_ms)

    def wait_in_real_time(self, pending: Pending[object], timeout_ms: int) -> bool:
        """Wait as `wait` does, but let the time-out end by the machine's clock."""
        with self._waits.watching(timeout_ms) as left_ms:
            while not pending.done():
                if left_ms() <= 0:
                    return False
                super().wait(pending, left_ms())  # a jump may end it early
            return True

    def duty_thread(self, duty: Duty, name: str) -> DutyThread:
        made = WakeableDutyThread(duty, name, self._clock, self.start_thread)
        self._waits.threads.add(made)
        return made

    # Called by `Mover`

    @property
    def runs_here(self) -> bool:
        """Whether the calling thread runs duties at this moment."""
        return self._runner == get_ident()

    def run_all(self, now_ms: int) -> None:
        """Run the duties that are due at `now_ms`, and the duties that they notify."""
        for _ in range(_RUNS_MAX):
            self.run_due(now_ms)
            if not self._hurried and all(at_ms > now_ms for _, at_ms in self.duties()):
                return
            with self._running:
                pass  # another thread was running duties: let it finish

    def wake_parked(self) -> None:
        """Let the waiting threads look at the clock again."""
        for parked in list(self._waiting.parked):
            parked.wake()

    def wake_all(self) -> None:
        """Let every thread look at the clock again."""
        self.wake_parked()
        for wake in self._listeners:
            wake()
        for thread in list(self._waits.threads):
            thread.look_again()
