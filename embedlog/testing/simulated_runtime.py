"""`sim_runtime`: a deterministic runtime from a seed."""

from __future__ import annotations

from embedlog.runtime import Runtime
from embedlog.runtime.randomness import seeded
from embedlog.testing.sim_clock import START_WALL_MS, SimClock
from embedlog.testing.sim_files import SimFiles
from embedlog.testing.sim_scheduler import SimScheduler


class SimRuntime(Runtime):
    """A `Runtime` with simulated parts, typed by their own classes."""

    __slots__ = ()

    clock: SimClock
    files: SimFiles
    scheduler: SimScheduler


def sim_runtime(
    seed: int = 0, *, files: SimFiles | None = None, wall_ms: int = START_WALL_MS
) -> SimRuntime:
    """Return a runtime with one thread, a still clock, a crashing disk, and randomness of `seed`.

    Pass `files` to continue with the disk of an earlier run. The wall clock begins at `wall_ms`.

    >>> runtime = sim_runtime(seed=7)
    >>> runtime.random.below(100) == sim_runtime(seed=7).random.below(100)
    True
    """
    clock = SimClock(wall_ms)
    return SimRuntime(
        clock=clock,
        files=files if files is not None else SimFiles(clock),
        scheduler=SimScheduler(clock, seeded(seed + 1)),
        random=seeded(seed),
    )
