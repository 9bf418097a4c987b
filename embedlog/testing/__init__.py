"""The test kit: a Kafka for tests, and simulated twins of clock, files, scheduler and randomness.

with Kafka(brokers=3, topics={"orders": 6}) as kafka:       the fixture `kafka` of pytest is one
    my_service(kafka.bootstrap_servers)

runtime = sim_runtime(seed=7)        time stands still, the disk crashes on demand, no threads
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedlog.testing.kafka import Kafka
from embedlog.testing.shape import Shape
from embedlog.testing.sim_clock import SimClock
from embedlog.testing.sim_files import SimFiles, SimulatedCrash
from embedlog.testing.sim_runtime import SimRuntime, sim_runtime
from embedlog.testing.sim_scheduler import SimScheduler

if TYPE_CHECKING:
    from embedlog.testing.snapshots.snapshot import Snapshot
    from embedlog.testing.time.kafka_clock import KafkaClock
    from embedlog.testing.time.timers import DueTimer

__all__ = [
    "DueTimer",
    "Kafka",
    "KafkaClock",
    "Shape",
    "SimClock",
    "SimFiles",
    "SimRuntime",
    "SimScheduler",
    "SimulatedCrash",
    "Snapshot",
    "sim_runtime",
]

_PLACES = {
    "DueTimer": "embedlog.testing.time.timers",
    "KafkaClock": "embedlog.testing.time.kafka_clock",
    "Snapshot": "embedlog.testing.snapshots.snapshot",
}
"""Names that are loaded when they are first used, and their modules."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
