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
    from embedlog.testing.control.door import ControlDoor as ControlDoor
    from embedlog.testing.registry.registry import Registry as Registry
    from embedlog.testing.remote import RemoteKafka as RemoteKafka

__all__ = [
    "ControlDoor",
    "Kafka",
    "Registry",
    "RemoteKafka",
    "Shape",
    "SimClock",
    "SimFiles",
    "SimRuntime",
    "SimScheduler",
    "SimulatedCrash",
    "sim_runtime",
]

_LAZY = {
    "ControlDoor": "embedlog.testing.control.door",
    "RemoteKafka": "embedlog.testing.remote",
    "Registry": "embedlog.testing.registry.registry",
}
"""Names whose modules load other packages, and load when a test first uses the name."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
