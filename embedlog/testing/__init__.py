"""The test kit: simulated twins of clock, files, scheduler and randomness.

runtime = sim_runtime(seed=7)        time stands still, the disk crashes on demand, no threads
"""

from __future__ import annotations

from embedlog.testing.sim_clock import SimClock
from embedlog.testing.sim_files import SimFiles, SimulatedCrash
from embedlog.testing.sim_runtime import SimRuntime, sim_runtime
from embedlog.testing.sim_scheduler import SimScheduler

__all__ = ["SimClock", "SimFiles", "SimRuntime", "SimScheduler", "SimulatedCrash", "sim_runtime"]
