"""The machine's clock for time-outs, also while a test has frozen `time`."""

from __future__ import annotations

import time


class _Machine:
    """Attributes of a class: libraries that freeze time replace what modules hold."""

    if hasattr(time, "clock_gettime"):
        read, which = time.clock_gettime, (time.CLOCK_MONOTONIC,)
    else:
        read, which = time.monotonic, ()  # type: ignore[assignment]


def monotonic() -> float:
    """Seconds since an arbitrary moment; never falls, and never stands still."""
    return _Machine.read(*_Machine.which)
