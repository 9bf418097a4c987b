"""`SimClock`: a clock that a test moves."""

from __future__ import annotations

from embedlog.runtime.clock import Clock

START_WALL_MS = 1_700_000_000_000


class SimClock(Clock):
    """Monotonic and wall time under a test's control.

    >>> clock = SimClock()
    >>> clock.advance(1500)
    >>> clock.monotonic_ms()
    1500
    """

    __slots__ = ("_monotonic_us", "_suspended_ms", "_wall_offset_ms")

    def __init__(self, wall_ms: int = START_WALL_MS) -> None:
        """Start at monotonic 0 and the given wall time."""
        self._monotonic_us = 0
        self._suspended_ms = 0
        self._wall_offset_ms = wall_ms

    def monotonic_ms(self) -> int:
        """Milliseconds advanced so far."""
        return self._monotonic_us // 1000

    def monotonic_us(self) -> int:
        """Microseconds advanced so far."""
        return self._monotonic_us

    def elapsed_ms(self) -> int:
        """Milliseconds advanced or suspended so far."""
        return self.monotonic_ms() + self._suspended_ms

    def wall_ms(self) -> int:
        """The simulated time of day."""
        return self._wall_offset_ms + self._monotonic_us // 1000

    def machine_wall_ms(self) -> int:
        """The same as `wall_ms`."""
        return self.wall_ms()

    def advance(self, delay_ms: float) -> None:
        """Move both clocks forward."""
        assert delay_ms >= 0, delay_ms
        self._monotonic_us += int(delay_ms * 1000)

    def suspend(self, delay_ms: int) -> None:
        """Pass time as while a machine sleeps: timers do not notice."""
        assert delay_ms >= 0, delay_ms
        self._suspended_ms += delay_ms
        self._wall_offset_ms += delay_ms

    def set_wall(self, wall_ms: int) -> None:
        """Set the wall clock, as an operator or NTP does; timers do not notice."""
        self._wall_offset_ms = wall_ms - self.monotonic_ms()
