"""The machine's monotonic clock for time-outs, which works even if a test freezes `time`."""

from __future__ import annotations

import time


class _Machine:
    """The clock as class attributes: libraries that freeze time replace attributes of modules."""

    if hasattr(time, "clock_gettime"):
        read, which = time.clock_gettime, (time.CLOCK_MONOTONIC,)
    else:
        read, which = time.monotonic, ()  # type: ignore[assignment]


def monotonic() -> float:
    """Return the seconds since an arbitrary moment."""
    return _Machine.read(*_Machine.which)
