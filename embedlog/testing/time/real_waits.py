"""`wait_in_real_time`: a wait of a test, whose time-out a jump of the clock does not end."""

from __future__ import annotations

from typing import Any

from embedlog.runtime import Runtime
from embedlog.runtime.pending import Pending


def wait_in_real_time(runtime: Runtime, pending: Pending[Any], timeout_ms: int) -> bool:
    """Wait for `pending` for at most `timeout_ms` of the machine's time; return whether it is done.

    With clock="auto" time leaps meanwhile, from one thing that is due to the next.
    """
    scheduler = runtime.scheduler
    if hasattr(scheduler, "wait_in_real_time"):
        done: bool = scheduler.wait_in_real_time(pending, timeout_ms)
        return done
    return scheduler.wait(pending, timeout_ms)
