"""A runtime in which nothing is left to chance but the seed."""

from __future__ import annotations

from embedlog.runtime import Runtime
from embedlog.runtime.randomness import seeded
from embedlog.testing.sim_clock import START_WALL_MS, SimClock
from embedlog.testing.sim_files import SimFiles
from embedlog.testing.sim_scheduler import SimScheduler


class SimRuntime(Runtime):
    """A `Runtime` whose edges are simulated, typed as what they are."""

    __slots__ = ()

    clock: SimClock
    files: SimFiles
    scheduler: SimScheduler


def sim_runtime(
    seed: int = 0, *, files: SimFiles | None = None, wall_ms: int = START_WALL_MS
) -> SimRuntime:
    """One thread, time that stands still, a disk that crashes on demand, randomness of `seed`.

    Pass `files` to go on with the disk of an earlier run. The wall clock begins at `wall_ms`.

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
