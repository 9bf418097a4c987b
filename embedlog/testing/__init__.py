"""The test kit: a Kafka for tests, and simulated twins of clock, files, scheduler and randomness.

with Kafka(brokers=3, topics={"orders": 6}) as kafka:       the fixture `kafka` of pytest is one
    my_service(kafka.bootstrap_servers)

@with_kafka(topics={"orders": 6})                           the same as a decorator
@simulate(seeds=200)                                        in simulated time, from seeds

runtime = sim_runtime(seed=7)        time stands still, the disk crashes on demand, no threads

pytest imports this package in every project that has embedlog, so a public name is imported when it
is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.testing.container import KafkaContainer as KafkaContainer
    from embedlog.testing.control.door import ControlDoor as ControlDoor
    from embedlog.testing.faults.faults import Faults as Faults
    from embedlog.testing.faults.hold import Hold as Hold
    from embedlog.testing.faults.rule import FaultRule as FaultRule
    from embedlog.testing.faults.waiting import HeldRequest as HeldRequest
    from embedlog.testing.forms import with_kafka as with_kafka
    from embedlog.testing.inspection.connections import ConnectionValue as ConnectionValue
    from embedlog.testing.inspection.group_values import GroupMember as GroupMember
    from embedlog.testing.inspection.group_values import GroupValue as GroupValue
    from embedlog.testing.inspection.partition import EpochValue as EpochValue
    from embedlog.testing.inspection.partition import Partition as Partition
    from embedlog.testing.inspection.partition import ProducerValue as ProducerValue
    from embedlog.testing.inspection.transactions import TransactionValue as TransactionValue
    from embedlog.testing.kafka import Kafka as Kafka
    from embedlog.testing.leaks import Leak as Leak
    from embedlog.testing.leaks import LeakWarning as LeakWarning
    from embedlog.testing.on_demand.group import Group as Group
    from embedlog.testing.on_demand.transaction import Transaction as Transaction
    from embedlog.testing.on_demand.transactions import HeldTransaction as HeldTransaction
    from embedlog.testing.on_demand.transactions import Transactions as Transactions
    from embedlog.testing.proxy.proxy import Proxy as Proxy
    from embedlog.testing.registry.registry import Registry as Registry
    from embedlog.testing.remote import RemoteKafka as RemoteKafka
    from embedlog.testing.seen_request import SeenRequest as SeenRequest
    from embedlog.testing.shape import Shape as Shape
    from embedlog.testing.sim_clock import SimClock as SimClock
    from embedlog.testing.sim_files import SimFiles as SimFiles
    from embedlog.testing.sim_files import SimulatedCrash as SimulatedCrash
    from embedlog.testing.sim_scheduler import SimScheduler as SimScheduler
    from embedlog.testing.simulated_runtime import SimRuntime as SimRuntime
    from embedlog.testing.simulated_runtime import sim_runtime as sim_runtime
    from embedlog.testing.simulation import SimulatedKafka as SimulatedKafka
    from embedlog.testing.simulation import simulate as simulate
    from embedlog.testing.snapshots.snapshot import Snapshot as Snapshot
    from embedlog.testing.time.kafka_clock import KafkaClock as KafkaClock
    from embedlog.testing.time.timers import DueTimer as DueTimer
    from embedlog.testing.timed_out import WaitTimedOut as WaitTimedOut
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
    from embedlog.testing.unfired import UnfiredFault as UnfiredFault
    from embedlog.testing.unittest_case import KafkaTestCase as KafkaTestCase
    from embedlog.testing.waits.aio import AioWaits as AioWaits
    from embedlog.testing.waits.waits import Waits as Waits

_PUBLIC = {
    "container": "KafkaContainer",
    "control.door": "ControlDoor",
    "faults.faults": "Faults",
    "faults.hold": "Hold",
    "faults.rule": "FaultRule",
    "faults.waiting": "HeldRequest",
    "forms": "with_kafka",
    "inspection.connections": "ConnectionValue",
    "inspection.group_values": "GroupMember GroupValue",
    "inspection.partition": "EpochValue Partition ProducerValue",
    "inspection.transactions": "TransactionValue",
    "kafka": "Kafka",
    "leaks": "Leak LeakWarning",
    "on_demand.group": "Group",
    "on_demand.transaction": "Transaction",
    "on_demand.transactions": "HeldTransaction Transactions",
    "proxy.proxy": "Proxy",
    "registry.registry": "Registry",
    "remote": "RemoteKafka",
    "seen_request": "SeenRequest",
    "shape": "Shape",
    "sim_clock": "SimClock",
    "sim_files": "SimFiles SimulatedCrash",
    "sim_scheduler": "SimScheduler",
    "simulated_runtime": "SimRuntime sim_runtime",
    "simulation": "SimulatedKafka simulate",
    "snapshots.snapshot": "Snapshot",
    "time.kafka_clock": "KafkaClock",
    "time.timers": "DueTimer",
    "timed_out": "WaitTimedOut",
    "timeline.event": "Event",
    "timeline.recording": "Recording",
    "topics.formats": "avro confluent protobuf",
    "topics.formats.basic": "Undecodable",
    "topics.matching": "any_ json_like rec",
    "topics.record": "LogRecord",
    "topics.topic": "Topic",
    "topics.transactions": "OpenTransaction",
    "toxics.toxic": "Toxic",
    "unfired": "UnfiredFault",
    "unittest_case": "KafkaTestCase",
    "waits.aio": "AioWaits",
    "waits.waits": "Waits",
}
"""The public names by the module that defines them. Type checkers read the imports above. No module
may have the name of a public name, because its import would replace that name."""

_HOMES = {name: module for module, names in _PUBLIC.items() for name in names.split()}
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = __import__(f"{__name__}.{_HOMES[name]}", fromlist=(name,))
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
