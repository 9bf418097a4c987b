"""The table of the control door: everything that a test in another language can call.

To offer a method, add its name to the line of its noun. A new kind of object is a new `Noun`, with
a function that reaches it from `Kafka`. Parameters, types, texts and the OpenAPI page follow from
the signature and the docstring of the method.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from embedlog.cluster.faults.network import ClusterNetwork
from embedlog.cluster.handles.broker_disk import BrokerDisk
from embedlog.cluster.handles.broker_node import BrokerNode
from embedlog.cluster.handles.cluster_controller import ClusterController
from embedlog.cluster.handles.cluster_partition import ClusterPartition
from embedlog.testing.control.verbs import Noun, Table
from embedlog.testing.registry.faults import RegistryFault
from embedlog.testing.registry.registry import Registry


def _kafka(kafka: Any) -> Any:
    return kafka


def _broker(kafka: Any, node_id: int | None = None) -> BrokerNode:
    found: BrokerNode = kafka.broker(node_id)
    return found


def _disk(kafka: Any, node_id: int | None = None) -> BrokerDisk:
    return _broker(kafka, node_id).disk


def _partition(kafka: Any, topic: str, partition: int) -> ClusterPartition:
    found: ClusterPartition = kafka.partition(topic, partition)
    return found


def _network(kafka: Any) -> ClusterNetwork:
    found: ClusterNetwork = kafka.network
    return found


def _controller(kafka: Any) -> ClusterController:
    found: ClusterController = kafka.controller
    return found


def _registry(kafka: Any) -> Registry:
    found: Registry = kafka.registry
    return found


def _broker_key(broker: BrokerNode) -> Mapping[str, Any]:
    return {"node_id": broker.node_id}


def _partition_key(partition: ClusterPartition) -> Mapping[str, Any]:
    topic, number = partition.topic_partition
    return {"topic": topic, "partition": number}


@cache
def table(root: Any) -> Table:
    """Return the table. `root` is the class `Kafka`, which this package may not import."""
    return Table(
        (
            Noun("", root, "bootstrap_servers create_topic brokers", _kafka),
            Noun(
                "broker",
                BrokerNode,
                "node_id rack is_running is_paused address start stop kill pause resume hide show"
                " hold_metadata release_metadata",
                _broker,
                _broker_key,
            ),
            Noun("broker disk", BrokerDisk, "directories fill free slow fail repair", _disk),
            Noun(
                "partition",
                ClusterPartition,
                "leader leader_epoch replicas isr end_offsets high_watermarks move_to reassign hold"
                " release",
                _partition,
                _partition_key,
            ),
            Noun("network", ClusterNetwork, "split cut delay freeze thaw heal is_cut", _network),
            Noun("controller", ClusterController, "is_running stop start", _controller),
            Noun(
                "registry",
                Registry,
                "url register subjects versions schema_by_id set_compatibility require_user"
                " client_config fault requests",
                _registry,
            ),
            Noun("registry_fault", RegistryFault, ".what hits seen requests wait remove check"),
        )
    )
