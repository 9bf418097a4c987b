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
from embedlog.testing.timed_out import WaitTimedOut

__all__ = [
    "Kafka",
    "Shape",
    "SimClock",
    "SimFiles",
    "SimRuntime",
    "SimScheduler",
    "SimulatedCrash",
    "WaitTimedOut",
    "sim_runtime",
]
