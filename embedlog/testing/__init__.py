"""The test kit: a Kafka for tests, and simulated twins of clock, files, scheduler and randomness.

with Kafka(brokers=3, topics={"orders": 6}) as kafka:       the fixture `kafka` of pytest is one
    my_service(kafka.bootstrap_servers)

runtime = sim_runtime(seed=7)        time stands still, the disk crashes on demand, no threads
"""

from __future__ import annotations

from embedlog.testing.kafka import Kafka
from embedlog.testing.shape import Shape
from embedlog.testing.sim_clock import SimClock
from embedlog.testing.sim_files import SimFiles, SimulatedCrash
from embedlog.testing.sim_runtime import SimRuntime, sim_runtime
from embedlog.testing.sim_scheduler import SimScheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.testing.faults.faults import Faults
    from embedlog.testing.faults.hold import Hold
    from embedlog.testing.faults.rule import FaultRule
    from embedlog.testing.faults.waiting import HeldRequest

__all__ = [
    "FaultRule",
    "Faults",
    "HeldRequest",
    "Hold",
    "Kafka",
    "Shape",
    "SimClock",
    "SimFiles",
    "SimRuntime",
    "SimScheduler",
    "SimulatedCrash",
    "sim_runtime",
]

_ON_FIRST_USE = {
    "FaultRule": "embedlog.testing.faults.rule",
    "Faults": "embedlog.testing.faults.faults",
    "HeldRequest": "embedlog.testing.faults.waiting",
    "Hold": "embedlog.testing.faults.hold",
}


def __getattr__(name: str) -> Any:
    module = _ON_FIRST_USE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(module), name)
