"""What several APIs must know of topics and nodes: addresses, automatic creation, operations."""

from __future__ import annotations

from embedlog.controller import topic_names
from embedlog.controller.controller import NewTopic
from embedlog.errors import KafkaError
from embedlog.topic_names import (
    INTERNAL_TOPICS,
    METADATA_TOPIC,
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.config import BrokerConfig
    from embedlog.controller.metadata import MetadataImage

OPERATIONS_NOT_ASKED_FOR = -(2**31)
TOPIC_OPERATIONS = 3576
"""Bits of every operation on a topic: without an authorizer all are allowed."""
CLUSTER_OPERATIONS = 8096
"""The same for the cluster."""
GROUP_OPERATIONS = 3400
"""The same for a group."""


class Node:
    """Where clients of the request's listener reach a broker."""

    __slots__ = ("host", "node_id", "port", "rack")

    def __init__(self, node_id: int, host: str, port: int, rack: str | None) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


def this_node(broker: Broker, context: RequestContext) -> Node:
    """This broker, at the address that the request's listener advertises."""
    rack = broker.controller.image.brokers[broker.node_id].rack
    return Node(broker.node_id, context.advertised_host, context.advertised_port, rack)


def create_missing(broker: Broker, names: Iterable[str]) -> None:
    """Make topics that somebody asked about. One that cannot be made is left out, silently."""
    existing = broker.controller.image.topics_by_name
    wanted = [
        _automatic(name, broker.controller.image, broker.config)
        for name in names
        if name not in existing and name != METADATA_TOPIC and topic_names.is_valid_name(name)
    ]
    if wanted:
        broker.controller.create_topics(wanted)


def ensure_internal_topic(broker: Broker, name: str) -> bool:
    """Make a coordinator's topic if it is missing; False when it cannot be made."""
    assert name in INTERNAL_TOPICS, name
    if name in broker.controller.image.topics_by_name:
        return True
    topic = _automatic(name, broker.controller.image, broker.config)
    made = broker.controller.create_topics([topic])[name]
    # Another thread may have been faster: then it exists.
    return not isinstance(made, KafkaError) or name in broker.controller.image.topics_by_name


def _automatic(name: str, image: MetadataImage, config: BrokerConfig) -> NewTopic:
    settings = _internal_settings(name, config)
    if settings is None:
        return NewTopic(name)
    partition_count, replication_factor, configs = settings
    return NewTopic(
        name,
        partition_count=partition_count,
        # Kafka's default of 3 would leave a single broker without its internal topics.
        replication_factor=min(replication_factor, len(image.brokers)),
        configs=configs,
    )


def _internal_settings(
    name: str, config: BrokerConfig
) -> tuple[int, int, dict[str, str | None]] | None:
    """Partitions, replicas and settings of an internal topic; None for any other."""
    if name == OFFSETS_TOPIC:
        return (
            config.offsets_topic_num_partitions,
            config.offsets_topic_replication_factor,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
        )
    if name == TRANSACTIONS_TOPIC:
        return (
            config.transaction_state_log_num_partitions,
            config.transaction_state_log_replication_factor,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(config.transaction_state_log_min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    if name == SHARE_STATE_TOPIC:
        return (
            config.share_coordinator_state_topic_num_partitions,
            config.share_coordinator_state_topic_replication_factor,
            {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": str(config.share_coordinator_state_topic_min_isr),
                "retention.ms": "-1",
                "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
            },
        )
    return None
