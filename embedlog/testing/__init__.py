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
from embedlog.testing.topics.formats import avro, confluent, protobuf
from embedlog.testing.topics.formats.basic import Undecodable
from embedlog.testing.topics.matching import any_, json_like, rec
from embedlog.testing.topics.record import LogRecord

__all__ = [
    "Kafka",
    "LogRecord",
    "Shape",
    "SimClock",
    "SimFiles",
    "SimRuntime",
    "SimScheduler",
    "SimulatedCrash",
    "Undecodable",
    "any_",
    "avro",
    "confluent",
    "json_like",
    "protobuf",
    "rec",
    "sim_runtime",
]
