"""The test kit: a Kafka for tests, and simulated twins of clock, files, scheduler and randomness.

with Kafka(brokers=3, topics={"orders": 6}) as kafka:       the fixture `kafka` of pytest is one
    my_service(kafka.bootstrap_servers)

runtime = sim_runtime(seed=7)        time stands still, the disk crashes on demand, no threads
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedlog.testing.kafka import Kafka
from embedlog.testing.shape import Shape
from embedlog.testing.sim_clock import SimClock
from embedlog.testing.sim_files import SimFiles, SimulatedCrash
from embedlog.testing.sim_runtime import SimRuntime, sim_runtime
from embedlog.testing.sim_scheduler import SimScheduler
from embedlog.testing.timed_out import WaitTimedOut

if TYPE_CHECKING:
    from embedlog.testing.inspection.connections import ConnectionValue
    from embedlog.testing.inspection.group_values import GroupMember, GroupValue
    from embedlog.testing.inspection.partition import EpochValue, Partition, ProducerValue
    from embedlog.testing.inspection.transactions import TransactionValue
    from embedlog.testing.on_demand.group import Group
    from embedlog.testing.on_demand.transaction import Transaction
    from embedlog.testing.on_demand.transactions import HeldTransaction, Transactions
    from embedlog.testing.waits.aio import AioWaits
    from embedlog.testing.waits.requests import SeenRequest
    from embedlog.testing.waits.waits import Waits

__all__ = [
    "AioWaits",
    "ConnectionValue",
    "EpochValue",
    "Group",
    "GroupMember",
    "GroupValue",
    "HeldTransaction",
    "Kafka",
    "Partition",
    "ProducerValue",
    "SeenRequest",
    "Shape",
    "SimClock",
    "SimFiles",
    "SimRuntime",
    "SimScheduler",
    "SimulatedCrash",
    "Transaction",
    "TransactionValue",
    "Transactions",
    "WaitTimedOut",
    "Waits",
    "sim_runtime",
]

_HOMES = {
    "AioWaits": "waits.aio",
    "ConnectionValue": "inspection.connections",
    "EpochValue": "inspection.partition",
    "Group": "on_demand.group",
    "GroupMember": "inspection.group_values",
    "GroupValue": "inspection.group_values",
    "HeldTransaction": "on_demand.transactions",
    "Partition": "inspection.partition",
    "ProducerValue": "inspection.partition",
    "SeenRequest": "waits.requests",
    "Transaction": "on_demand.transaction",
    "TransactionValue": "inspection.transactions",
    "Transactions": "on_demand.transactions",
    "Waits": "waits.waits",
}
"""The modules of the names that load when a test first uses them."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = __import__(f"{__name__}.{_HOMES[name]}", fromlist=(name,))
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
