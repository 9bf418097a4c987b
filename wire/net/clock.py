"""A monotonic clock for time-outs. It keeps running if a test freezes Python's `time` module."""

from __future__ import annotations

import time


class _Machine:
    """Holds the clock's function: libraries that freeze time replace attributes of modules only."""

    if hasattr(time, "clock_gettime"):
        read, which = time.clock_gettime, (time.CLOCK_MONOTONIC,)
    else:
        read, which = time.monotonic, ()  # type: ignore[assignment]


def monotonic() -> float:
    """Return the seconds since an arbitrary moment."""
    return _Machine.read(*_Machine.which)
