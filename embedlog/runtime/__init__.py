"""The only way to the operating system: clock, files, scheduler (threads, waiting), randomness.

A `Runtime` holds the four. `embedlog.testing.sim_runtime` makes a simulated, deterministic one.
"""

from __future__ import annotations

from embedlog.runtime.clock import Clock
from embedlog.runtime.clock_guard import ClockGuard
from embedlog.runtime.randomness import Random
from embedlog.runtime.scheduler import Scheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.files import Files

__all__ = ["Clock", "Random", "Runtime", "Scheduler", "real_runtime"]


class Runtime:
    """The four parts of the system, passed down together, and the guard of the wall clock."""

    __slots__ = ("clock", "clock_guard", "files", "random", "scheduler")

    def __init__(self, *, clock: Clock, files: Files, scheduler: Scheduler, random: Random) -> None:
        self.clock = clock
        self.clock_guard = ClockGuard(clock)
        self.files = files
        self.scheduler = scheduler
        self.random = random


def real_runtime(files: Files | None = None) -> Runtime:
    """Return a runtime over the operating system; `files` replaces its file system."""
    clock = Clock()
    if files is None:
        from embedlog.runtime.os_files import OsFiles

        files = OsFiles()
    return Runtime(clock=clock, files=files, scheduler=Scheduler(clock), random=Random())
