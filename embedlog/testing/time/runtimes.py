"""`kit_runtime`: the machine's files and threads with a clock of the test kit."""

from __future__ import annotations

from embedlog.runtime import Random, Runtime, Scheduler
from embedlog.runtime.files import Files
from embedlog.testing.time.steady_clock import SteadyClock

REAL = "real"


def kit_runtime(clock: str, files: Files | None = None, *, ahead_ms: int = 0) -> Runtime:
    """Return the runtime of a cluster with the `clock` of its shape.

    `files` are by default new files in memory. `ahead_ms`: see `MovedClock`.
    """
    made = SteadyClock()
    scheduler = Scheduler(made)
    if clock != REAL:
        from embedlog.testing.time.moved_clock import MovedClock
        from embedlog.testing.time.moved_scheduler import MovedScheduler

        made = moved = MovedClock(ahead_ms)
        scheduler = MovedScheduler(moved)
    if files is None:
        from embedlog.runtime.memory_files import MemoryFiles

        files = MemoryFiles(made)
    return Runtime(clock=made, files=files, scheduler=scheduler, random=Random())
