"""The test kit: simulated twins of everything that chance can touch.

    runtime = sim_runtime(seed=7)        time stands still, the disk crashes on demand, no threads

Names are imported when they are first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.testing.sim_clock import SimClock
    from embedlog.testing.sim_files import SimFiles, SimulatedCrash
    from embedlog.testing.sim_runtime import SimRuntime, sim_runtime
    from embedlog.testing.sim_scheduler import SimScheduler

__all__ = ["SimClock", "SimFiles", "SimRuntime", "SimScheduler", "SimulatedCrash", "sim_runtime"]

_HOMES = {
    "SimClock": "sim_clock",
    "SimFiles": "sim_files",
    "SimRuntime": "sim_runtime",
    "SimScheduler": "sim_scheduler",
    "SimulatedCrash": "sim_files",
    "sim_runtime": "sim_runtime",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
