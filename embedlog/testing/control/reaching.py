"""Functions that reach the objects of the table from a `Kafka`, and verbs that are no methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from embedlog.testing.faults.hold import Hold

if TYPE_CHECKING:
    from embedlog.cluster.faults.network import ClusterNetwork
    from embedlog.cluster.handles.broker_disk import BrokerDisk
    from embedlog.cluster.handles.broker_node import BrokerNode
    from embedlog.cluster.handles.cluster_controller import ClusterController
    from embedlog.testing.faults.faults import Faults
    from embedlog.testing.faults.rule import FaultRule
    from embedlog.testing.inspection.partition import Partition
    from embedlog.testing.on_demand.group import Group
    from embedlog.testing.on_demand.transaction import Transaction
    from embedlog.testing.on_demand.transactions import Transactions
    from embedlog.testing.registry.registry import Registry
    from embedlog.testing.time.kafka_clock import KafkaClock
    from embedlog.testing.timeline.recording import Recording
    from embedlog.testing.topics.produced import NewRecords
    from embedlog.testing.topics.record import LogRecord
    from embedlog.testing.topics.topic import Topic
    from embedlog.testing.waits.waits import Waits

# Objects. The type of a `Kafka` is `Any`, because this package may not import it.


def kafka(kafka: Any) -> Any:
    """Return the `Kafka` itself."""
    return kafka


def broker(kafka: Any, node_id: int | None = None) -> BrokerNode:
    """Return a broker; without a number, the only one."""
    found: BrokerNode = kafka.broker(node_id)
    return found


def broker_key(broker: BrokerNode) -> Mapping[str, Any]:
    """Return the arguments of `broker`."""
    return {"node_id": broker.node_id}


def disk(kafka: Any, node_id: int | None = None) -> BrokerDisk:
    """Return a broker's disk."""
    return broker(kafka, node_id).disk


def partition(kafka: Any, topic: str, partition: int) -> Partition:
    """Return a partition."""
    found: Partition = kafka.partition(topic, partition)
    return found


def partition_key(partition: Partition) -> Mapping[str, Any]:
    """Return the arguments of `partition`."""
    topic, number = partition.topic_partition
    return {"topic": topic, "partition": number}


def network(kafka: Any) -> ClusterNetwork:
    """Return the links between brokers."""
    found: ClusterNetwork = kafka.network
    return found


def controller(kafka: Any) -> ClusterController:
    """Return the controller."""
    found: ClusterController = kafka.controller
    return found


def topic(
    kafka: Any, topic: str, *, key_format: str | None = None, value_format: str | None = None
) -> Topic:
    """Return a topic, with the formats of its keys and values."""
    found: Topic = kafka.topic(topic, key=key_format, value=value_format)
    return found


def faults(kafka: Any) -> Faults:
    """Return the rules of requests."""
    found: Faults = kafka.faults
    return found


def group(kafka: Any, group_id: str) -> Group:
    """Return a group."""
    found: Group = kafka.group(group_id)
    return found


def transaction(kafka: Any, transactional_id: str) -> Transaction:
    """Return a transactional id."""
    found: Transaction = kafka.transaction(transactional_id)
    return found


def transactions(kafka: Any) -> Transactions:
    """Return all transactional ids."""
    found: Transactions = kafka.transactions
    return found


def waits(kafka: Any) -> Waits:
    """Return the waits."""
    found: Waits = kafka.wait
    return found


def clock(kafka: Any) -> KafkaClock:
    """Return the clock."""
    found: KafkaClock = kafka.clock
    return found


def registry(kafka: Any) -> Registry:
    """Return the schema registry."""
    found: Registry = kafka.registry
    return found


# Verbs


def rules(kafka: Any) -> list[FaultRule]:
    """Return the rules in force, the oldest first. The control door and tests share them."""
    return list(kafka.faults)


def holds(kafka: Any) -> list[Hold]:
    """Return the holds in force, the oldest first."""
    return [each for each in kafka.faults if isinstance(each, Hold)]


def text(recording: Recording) -> str:
    """Return the events as text, one a line."""
    return str(recording)


def new_records(assertion: NewRecords) -> list[LogRecord]:
    """Return the new records so far, or after the end of the assertion all of them."""
    return list(assertion)


def end(made: Any, *, failed: bool = False) -> None:
    """End it as the end of its `with` does. `failed`: the test has failed for another reason."""
    made.__exit__(AssertionError if failed else None, None, None)


def end_assertion(assertion: NewRecords, *, failed: bool = False) -> list[LogRecord]:
    """Wait for the records, and return them. `failed`: the test has failed, so assert nothing.

    Raises:
        AssertionError: other records came, or too few or too many.
    """
    end(assertion, failed=failed)
    return list(assertion)
