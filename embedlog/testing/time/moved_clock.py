"""`MovedClock`: the machine's time plus the jumps of a test."""

from __future__ import annotations

from collections.abc import Callable

from embedlog.testing.time.steady_clock import SteadyClock
from embedlog.testing.time.waits import Waits


class MovedClock(SteadyClock):
    """The machine's clocks, ahead by the time that a test has jumped.

    >>> clock = MovedClock()
    >>> before = clock.monotonic_ms()
    >>> clock.advance(3_600_000)
    >>> clock.monotonic_ms() - before >= 3_600_000
    True
    """

    __slots__ = ("_ahead_us", "waits")

    def __init__(self, ahead_ms: int = 0) -> None:
        """`ahead_ms`: time that was jumped already, for a copy of another cluster."""
        super().__init__()
        self._ahead_us = ahead_ms * 1000
        self.waits = Waits(self.monotonic_ms, self.real_ms)
        """The threads that wait by this clock."""

    @property
    def ahead_ms(self) -> int:
        """Milliseconds by which the clock is ahead of the machine's."""
        return self._ahead_us // 1000

    def real_ms(self) -> int:
        """Monotonic milliseconds of the machine: the time of clients in other processes."""
        return self._machine.monotonic_ms()

    def advance(self, duration_ms: int) -> None:
        """Move all clocks ahead. Requires: one thread at a time moves the clock."""
        assert duration_ms >= 0, duration_ms
        self._ahead_us += duration_ms * 1000

    def monotonic_ms(self) -> int:
        return (self._machine.monotonic_us() + self._ahead_us) // 1000

    def monotonic_us(self) -> int:
        return self._machine.monotonic_us() + self._ahead_us

    def monotonic_source(self) -> Callable[[], int]:
        return lambda: self.monotonic_us() * 1000

    def elapsed_ms(self) -> int:
        return self._machine.elapsed_ms() + self._ahead_us // 1000

    def elapsed_source(self) -> Callable[[], int]:
        return lambda: self.elapsed_ms() * 1_000_000

    def wall_ms(self) -> int:
        return super().wall_ms() + self._ahead_us // 1000

    def machine_wall_ms(self) -> int:
        return self._machine.machine_wall_ms() + self._ahead_us // 1000
