"""`Clock`: the monotonic clock and the wall clock.

Timers run on the monotonic clock. Wall time only stamps records and drives retention, because the
wall clock can be set back or jump by years.

Libraries that freeze time in tests replace functions in `time`. The wall clock follows them, so
that records carry the test's time. The monotonic clock stays the machine's: on a frozen clock no
time-out would ever end.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import partial
    from typing import Protocol

    class WallSource(Protocol):
        """A source of wall time. Reading it directly saves the call of a method of `Clock`."""

        def time_ns(self) -> int:
            """Nanoseconds since 1970-01-01 UTC."""

else:
    from _functools import partial


def _clock(name: str) -> Callable[[], int] | None:
    """Return a function that reads a clock of the system; None if the system has only its name."""
    number = getattr(time, name, None)
    if number is None or not hasattr(time, "clock_gettime_ns"):
        return None
    read = partial(time.clock_gettime_ns, number)
    try:
        read()
    except OSError:  # WebAssembly, sandboxes
        return None
    return read


class _Machine:
    """The machine's own clocks, in nanoseconds.

    They are attributes of a class, because libraries that freeze time replace only the functions in
    modules.
    """

    monotonic = _clock("CLOCK_MONOTONIC") or partial(time.monotonic_ns)
    elapsed = _clock("CLOCK_BOOTTIME") or monotonic
    # No library fakes TAI. It is ahead of UTC by the leap seconds, if the system knows them.
    wall = _clock("CLOCK_TAI") or partial(time.time_ns)


_monotonic_ns: Callable[[], int] = _Machine.monotonic


class Clock:
    """The operating system's clocks. `embedlog.testing.SimClock` is the twin that a test moves."""

    __slots__ = ()

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment; the value never falls."""
        return _monotonic_ns() // 1_000_000

    def monotonic_us(self) -> int:
        """Microseconds since the start of `monotonic_ms`, for latencies."""
        return _monotonic_ns() // 1_000

    def monotonic_source(self) -> Callable[[], int]:
        """Return a function that returns monotonic nanoseconds.

        For the system's clock it is the system's own function, which saves the call of a method.
        """
        return _monotonic_ns if type(self) is Clock else lambda: self.monotonic_ms() * 1_000_000

    def elapsed_ms(self) -> int:
        """Milliseconds since an arbitrary moment, including the time for which the machine slept.

        A system without such a clock gets `monotonic_ms`.
        """
        return _Machine.elapsed() // 1_000_000 if type(self) is Clock else self.monotonic_ms()

    def elapsed_source(self) -> Callable[[], int]:
        """Return a function that returns `elapsed_ms` in nanoseconds; see `monotonic_source`."""
        if type(self) is Clock:
            return _Machine.elapsed
        return lambda: self.elapsed_ms() * 1_000_000

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC: the time in records."""
        return time.time_ns() // 1_000_000

    def machine_wall_ms(self) -> int:
        """Wall time of the machine, to within a minute, even if a test has frozen `time`."""
        wall_ns: int = _Machine.wall()
        return wall_ns // 1_000_000

    def wall_source(self) -> WallSource:
        """Return the source of `wall_ms`. For the system's clock it is the module `time`: see
        `WallSource`.
        """
        return time if type(self) is Clock else _AskedClock(self)


class _AskedClock:
    __slots__ = ("_clock",)

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def time_ns(self) -> int:
        return self._clock.wall_ms() * 1_000_000
