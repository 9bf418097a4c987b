"""The test kit: a Kafka for tests, and simulated twins of clock, files, scheduler and randomness.

    with Kafka(brokers=3, topics={"orders": 6}) as kafka:       the fixture `kafka` of pytest is one
        my_service(kafka.bootstrap_servers)

    runtime = sim_runtime(seed=7)        time stands still, the disk crashes on demand, no threads

A part of the kit is imported when one of its names is first used.
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
    from embedlog.testing.faults.faults import Faults as Faults
    from embedlog.testing.faults.hold import Hold as Hold
    from embedlog.testing.faults.rule import FaultRule as FaultRule
    from embedlog.testing.faults.waiting import HeldRequest as HeldRequest
    from embedlog.testing.proxy.proxy import Proxy as Proxy
    from embedlog.testing.timeline.event import Event as Event
    from embedlog.testing.timeline.recording import Recording as Recording
    from embedlog.testing.topics.formats import avro as avro
    from embedlog.testing.topics.formats import confluent as confluent
    from embedlog.testing.topics.formats import protobuf as protobuf
    from embedlog.testing.topics.formats.basic import Undecodable as Undecodable
    from embedlog.testing.topics.matching import any_ as any_
    from embedlog.testing.topics.matching import json_like as json_like
    from embedlog.testing.topics.matching import rec as rec
    from embedlog.testing.topics.record import LogRecord as LogRecord
    from embedlog.testing.topics.topic import Topic as Topic
    from embedlog.testing.topics.transactions import OpenTransaction as OpenTransaction
    from embedlog.testing.toxics.toxic import Toxic as Toxic

__all__ = [
    "Event",
    "FaultRule",
    "Faults",
    "HeldRequest",
    "Hold",
    "Kafka",
    "LogRecord",
    "OpenTransaction",
    "Proxy",
    "Recording",
    "Shape",
    "SimClock",
    "SimFiles",
    "SimRuntime",
    "SimScheduler",
    "SimulatedCrash",
    "Topic",
    "Toxic",
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
    "Event": "timeline.event",
    "FaultRule": "faults.rule",
    "Faults": "faults.faults",
    "HeldRequest": "faults.waiting",
    "Hold": "faults.hold",
    "LogRecord": "topics.record",
    "OpenTransaction": "topics.transactions",
    "Proxy": "proxy.proxy",
    "Recording": "timeline.recording",
    "Topic": "topics.topic",
    "Toxic": "toxics.toxic",
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
