"""The test kit: a Kafka for tests, and simulated twins of clock, files, scheduler and randomness.

with Kafka(brokers=3, topics={"orders": 6}) as kafka:       the fixture `kafka` of pytest is one
    my_service(kafka.bootstrap_servers)

runtime = sim_runtime(seed=7)        time stands still, the disk crashes on demand, no threads
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from embedlog.testing.kafka import Kafka
from embedlog.testing.shape import Shape
from embedlog.testing.sim_clock import SimClock
from embedlog.testing.sim_files import SimFiles, SimulatedCrash
from embedlog.testing.sim_runtime import SimRuntime, sim_runtime
from embedlog.testing.sim_scheduler import SimScheduler

if TYPE_CHECKING:
    from embedlog.testing.topics.formats import avro, confluent, protobuf
    from embedlog.testing.topics.formats.basic import Undecodable
    from embedlog.testing.topics.matching import any_, json_like, rec
    from embedlog.testing.topics.record import LogRecord
    from embedlog.testing.topics.topic import Topic
    from embedlog.testing.topics.transactions import OpenTransaction

__all__ = [
    "Kafka",
    "LogRecord",
    "OpenTransaction",
    "Shape",
    "SimClock",
    "SimFiles",
    "SimRuntime",
    "SimScheduler",
    "SimulatedCrash",
    "Topic",
    "Undecodable",
    "any_",
    "avro",
    "confluent",
    "json_like",
    "protobuf",
    "rec",
    "sim_runtime",
]

_LOADED_WHEN_USED = {
    "LogRecord": "topics.record",
    "OpenTransaction": "topics.transactions",
    "Topic": "topics.topic",
    "Undecodable": "topics.formats.basic",
    "any_": "topics.matching",
    "avro": "topics.formats",
    "confluent": "topics.formats",
    "json_like": "topics.matching",
    "protobuf": "topics.formats",
    "rec": "topics.matching",
}
"""Name -> the module below this package that has it."""


if not TYPE_CHECKING:  # a type checker would accept every name

    def __getattr__(name: str) -> Any:
        place = _LOADED_WHEN_USED.get(name)
        if place is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{place}"), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
