"""`ClockGuard`: pause deletions by age while the wall clock is in doubt.

A wall clock can be wrong for a while: someone sets it, or a machine wakes up or moves to another
host. Data that a wrong clock deletes is lost for good. So the guard compares the wall clock with a
clock that nobody can set. If they drift apart by more than five minutes, deletions pause. Deletions
resume when the wall clock is back, or after both clocks ran evenly for an hour: then the wall clock
was probably corrected. If the system has a clock that counts while the machine sleeps, the guard
uses that clock, and a suspend does not look like a jump.

Libraries that freeze time in tests do not move the machine's clock: the guard watches the latter,
so a test may move its time and see old data deleted.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.clock import Clock

DRIFT_MAX_MS = 5 * 60_000
"""Largest tolerated drift between the two clocks."""
SETTLED_AFTER_MS = 60 * 60_000
"""Time for which the clocks must run evenly after a jump."""

_NOT_PAUSED = -1


class ClockGuard:
    """One guard for each `Runtime`. Every method may be called from any thread.

    The guard sees a jump only between two calls of `allows_deletion`, so retention calls it at each
    interval, even with nothing to delete.
    """

    __slots__ = ("_clock", "_jump_ms", "_jumped_at_ms", "_relation_ms", "paused_since_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._relation_ms = clock.machine_wall_ms() - clock.elapsed_ms()
        """Wall time minus elapsed time, while the wall clock was trusted."""
        self._jump_ms = 0
        """Size of the jump that caused the pause: wall time minus elapsed time minus
        `_relation_ms`. 0 without a pause."""
        self._jumped_at_ms = 0
        """Elapsed time at which the guard saw the jump."""
        self.paused_since_ms = _NOT_PAUSED
        """Start of the present pause, in the doubtful wall time; -1 without a pause."""

    @property
    def is_paused(self) -> bool:
        """True if the last call of `allows_deletion` returned False."""
        return self.paused_since_ms != _NOT_PAUSED

    @property
    def reason(self) -> str:
        """A sentence with the cause of the pause and the condition for its end."""
        return (
            f"the wall clock jumped by {self._jump_ms // 1000} s: deletion by age is paused until "
            f"the clock is back, or has run evenly for {SETTLED_AFTER_MS // 60_000} minutes"
        )

    def allows_deletion(self) -> bool:
        """Return whether data may be deleted now because of its age."""
        now_ms, wall_ms = self._clock.elapsed_ms(), self._clock.machine_wall_ms()
        jump_ms = wall_ms - now_ms - self._relation_ms
        if abs(jump_ms) <= DRIFT_MAX_MS:
            if self.is_paused:
                self._go_on("the wall clock is back: deletion by age resumes")
            return True
        if not self.is_paused or abs(jump_ms - self._jump_ms) > DRIFT_MAX_MS:
            self._jump_ms, self._jumped_at_ms = jump_ms, now_ms
            if not self.is_paused:
                self.paused_since_ms = wall_ms
            self._tell("warning", self.reason)
            return False
        if now_ms - self._jumped_at_ms < SETTLED_AFTER_MS:
            return False
        self._relation_ms += jump_ms
        self._go_on("the wall clock ran evenly since its jump: deletion by age resumes")
        return True

    def _go_on(self, message: str) -> None:
        self.paused_since_ms = _NOT_PAUSED
        self._jump_ms = 0
        self._tell("info", message)

    def _tell(self, level: str, message: str) -> None:
        from logging import getLogger

        getattr(getLogger("embedlog.storage"), level)(message)
