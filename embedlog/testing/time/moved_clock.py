"""`SteadyClock` and `MovedClock`: the machine's time, immune to libraries that freeze it.

freezegun and time-machine replace functions of `time`. `Clock` takes its wall time from there on
purpose; the clocks of the test kit take it from the machine unless `follows` is set.
"""

from __future__ import annotations

from collections.abc import Callable

from embedlog.runtime.clock import Clock
from embedlog.testing.time.waits import Waits

_LEAP_SECONDS_MAX_MS = 60_000


class SteadyClock(Clock):
    """The machine's clocks. A test that freezes `time` does not change them."""

    __slots__ = ("_correction_ms", "_machine", "follows")

    def __init__(self) -> None:
        self._machine = machine = Clock()
        difference_ms = machine.wall_ms() - machine.machine_wall_ms()
        # The machine's own wall clock may be ahead by the leap seconds. A larger difference means
        # that a test has frozen `time` already.
        is_frozen = abs(difference_ms) > _LEAP_SECONDS_MAX_MS
        self._correction_ms = 0 if is_frozen else difference_ms
        self.follows = False
        """True if the wall time comes from the module `time`, which a test may have frozen."""

    def wall_ms(self) -> int:
        if self.follows:
            return self._machine.wall_ms()
        return self._machine.machine_wall_ms() + self._correction_ms

    def monotonic_source(self) -> Callable[[], int]:
        return self._machine.monotonic_source()

    def elapsed_ms(self) -> int:
        return self._machine.elapsed_ms()

    def elapsed_source(self) -> Callable[[], int]:
        return self._machine.elapsed_source()


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
