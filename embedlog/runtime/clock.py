"""The two clocks: one that only moves forward, and the one on the wall.

Timers run on the monotonic clock. Wall time stamps records and drives retention, nothing else:
it may be set back or jump by years.
"""

from __future__ import annotations

from time import monotonic_ns, time_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """The operating system's clocks. `embedlog.testing.SimClock` is the twin a test moves."""

    __slots__ = ()

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment; never falls."""
        return monotonic_ns() // 1_000_000

    def monotonic_us(self) -> int:
        """Microseconds since the same moment, for latencies."""
        return monotonic_ns() // 1_000

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC, as records carry them."""
        return time_ns() // 1_000_000

    def wall_ns_reader(self) -> Callable[[], int]:
        """`wall_ms` in nanoseconds, as a function for who asks a million times a second.

        That of the system itself saves a call; a clock that tells another time is asked for it.
        """
        return time_ns if type(self) is Clock else lambda: self.wall_ms() * 1_000_000
