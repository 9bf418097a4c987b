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
    from collections.abc import Callable

    from embedlog.runtime.files import Files

__all__ = ["Clock", "Random", "Runtime", "Scheduler", "real_runtime"]


class Runtime:
    """The four parts of the system, passed down together, and the guard of the wall clock."""

    __slots__ = ("clock", "clock_guard", "files", "random", "scheduler", "watchers")

    def __init__(self, *, clock: Clock, files: Files, scheduler: Scheduler, random: Random) -> None:
        self.clock = clock
        self.clock_guard = ClockGuard(clock)
        self.files = files
        self.scheduler = scheduler
        self.random = random
        self.watchers: list[Callable[[], object]] = []
        """Functions of waiting tests, called after each operation of a coordinator, each change of
        the metadata and each connect or disconnect. They may be called under any lock, so they may
        only wake a thread."""

    def over(self, files: Files) -> Runtime:
        """Return a runtime with other files and the same other parts."""
        other = Runtime(clock=self.clock, files=files, scheduler=self.scheduler, random=self.random)
        other.watchers = self.watchers
        return other


def real_runtime(files: Files | None = None) -> Runtime:
    """Return a runtime over the operating system; `files` replaces its file system."""
    clock = Clock()
    if files is None:
        from embedlog.runtime.os_files import OsFiles

        files = OsFiles()
    return Runtime(clock=clock, files=files, scheduler=Scheduler(clock), random=Random())
