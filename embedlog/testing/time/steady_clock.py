"""`SteadyClock`: the machine's time, immune to libraries that freeze it.

freezegun and time-machine replace functions of `time`. `Clock` takes its wall time from there on
purpose; the clocks of the test kit take it from the machine unless `follows` is set.
"""

from __future__ import annotations

from collections.abc import Callable

from embedlog.runtime.clock import Clock

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

    def time_ns(self) -> int:
        """Nanoseconds of wall time: a `WallSource` is one call cheaper than `wall_ms`."""
        return self.wall_ms() * 1_000_000

    def wall_source(self) -> SteadyClock:
        return self

    def monotonic_source(self) -> Callable[[], int]:
        return self._machine.monotonic_source()

    def elapsed_ms(self) -> int:
        return self._machine.elapsed_ms()

    def elapsed_source(self) -> Callable[[], int]:
        return self._machine.elapsed_source()
