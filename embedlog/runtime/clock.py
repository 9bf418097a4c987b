"""The two clocks: one that only moves forward, and the one on the wall.

Timers run on the monotonic clock. Wall time stamps records and drives retention, nothing else:
it may be set back or jump by years.

Tests freeze time: libraries for that put their own functions into `time`. What they say is the
wall clock here, so records carry the time of the test. The monotonic clock stays the machine's,
by a call that is left alone: with a clock that stands still no time-out would ever end.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import partial
    from typing import Protocol

    class WallSource(Protocol):
        """Something with the wall time, for who asks a million times a second."""

        def time_ns(self) -> int:
            """Nanoseconds since 1970-01-01 UTC."""

else:
    from _functools import partial


class _Machine:
    """The machine's own clocks, in nanoseconds. Attributes of a class: libraries that freeze time
    replace the functions that modules hold."""

    if hasattr(time, "clock_gettime_ns"):
        monotonic = partial(time.clock_gettime_ns, time.CLOCK_MONOTONIC)
    else:
        monotonic = partial(time.monotonic_ns)
    if hasattr(time, "CLOCK_BOOTTIME"):
        elapsed = partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)
    else:
        elapsed = monotonic
    if hasattr(time, "CLOCK_TAI"):
        # Nobody fakes it. It is ahead of UTC by the leap seconds, where the system knows them.
        wall = partial(time.clock_gettime_ns, time.CLOCK_TAI)
    else:
        wall = partial(time.time_ns)


_monotonic_ns: Callable[[], int] = _Machine.monotonic


class Clock:
    """The operating system's clocks. `embedlog.testing.SimClock` is the twin a test moves."""

    __slots__ = ()

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment; never falls."""
        return _monotonic_ns() // 1_000_000

    def monotonic_us(self) -> int:
        """Microseconds since the same moment, for latencies."""
        return _monotonic_ns() // 1_000

    def monotonic_source(self) -> Callable[[], int]:
        """The same in nanoseconds, as a function; that of the system itself saves a call."""
        return _monotonic_ns if type(self) is Clock else lambda: self.monotonic_ms() * 1_000_000

    def elapsed_ms(self) -> int:
        """As `monotonic_ms`, from a moment of its own; it also counts while the machine sleeps.

        Where the system has no such clock it is the monotonic one.
        """
        return _Machine.elapsed() // 1_000_000 if type(self) is Clock else self.monotonic_ms()

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC, as records carry them."""
        return time.time_ns() // 1_000_000

    def machine_wall_ms(self) -> int:
        """The same by the machine's own clock, to within a minute, also while a test has frozen
        `time`. For comparing the two."""
        wall_ns: int = _Machine.wall()
        return wall_ns // 1_000_000

    def wall_source(self) -> WallSource:
        """What `wall_ms` asks; that of the system itself saves a call."""
        return time if type(self) is Clock else _AskedClock(self)


class _AskedClock:
    __slots__ = ("_clock",)

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def time_ns(self) -> int:
        return self._clock.wall_ms() * 1_000_000
