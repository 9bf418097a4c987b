"""Whether the wall clock may be believed when something is to be deleted for its age.

A wall clock may be wrong for a while: set by hand, by a machine that woke up, by a virtual one that
was moved. What is deleted by a wrong clock does not come back when the clock does. So it is held
against one that nobody sets. When the two part by more than five minutes, deletions pause. They
go on when the wall clock is back, or when both have gone evenly for an hour: then the new
relation is taken for the truth, as a clock that was put right, or a machine that was moved, looks
just so. The other clock counts the time of a suspend, where the system has such a one: then a
suspend is no jump at all.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.clock import Clock

DRIFT_MAX_MS = 5 * 60_000
"""The clocks may part by so much."""
SETTLED_AFTER_MS = 60 * 60_000
"""After a jump the clocks must have gone evenly for so long."""

_NOT_PAUSED = -1


class ClockGuard:
    """One for each `Runtime`. Asked before each deletion; any thread may ask.

    A jump is one since the last question, so who deletes asks at its intervals, too, when there is
    nothing to delete.
    """

    __slots__ = ("_clock", "_jump_ms", "_jumped_at_ms", "_relation_ms", "paused_since_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._relation_ms = clock.wall_ms() - clock.elapsed_ms()
        """Wall time less elapsed time, as it is believed."""
        self._jump_ms = 0
        """By how much the wall clock has left that."""
        self._jumped_at_ms = 0
        """The elapsed time at which it was seen to."""
        self.paused_since_ms = _NOT_PAUSED
        """When the present pause began, by the clock that is not believed; -1 without one."""

    @property
    def is_paused(self) -> bool:
        """Did the last question find that nothing may be deleted?"""
        return self.paused_since_ms != _NOT_PAUSED

    @property
    def reason(self) -> str:
        """Why nothing is deleted, and until when."""
        return (
            f"the wall clock has jumped by {self._jump_ms // 1000} s: nothing is deleted for its "
            f"age until it is back, or has gone evenly for {SETTLED_AFTER_MS // 60_000} minutes"
        )

    def allows_deletion(self) -> bool:
        """May something be deleted now because the wall clock says that it is old?"""
        now_ms, wall_ms = self._clock.elapsed_ms(), self._clock.wall_ms()
        jump_ms = wall_ms - now_ms - self._relation_ms
        if abs(jump_ms) <= DRIFT_MAX_MS:
            if self.is_paused:
                self._go_on("the wall clock is back: what is old is deleted again")
            return True
        is_another = abs(jump_ms - self._jump_ms) > DRIFT_MAX_MS
        if not self.is_paused or is_another:
            self._jump_ms, self._jumped_at_ms = jump_ms, now_ms
            if not self.is_paused:
                self.paused_since_ms = wall_ms
            self._tell("warning", self.reason)
            return False
        if now_ms - self._jumped_at_ms < SETTLED_AFTER_MS:
            return False
        self._relation_ms += jump_ms
        self._go_on("the wall clock has gone evenly since it jumped and is believed again")
        return True

    def _go_on(self, message: str) -> None:
        self.paused_since_ms = _NOT_PAUSED
        self._jump_ms = 0
        self._tell("info", message)

    def _tell(self, level: str, message: str) -> None:
        from logging import getLogger

        getattr(getLogger("embedlog.storage"), level)(message)
