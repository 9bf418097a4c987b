"""The settings of topics that a broker creates by itself, above all of the internal topics."""

from __future__ import annotations

from embedlog.controller.controller import NewTopic
from embedlog.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.config import BrokerConfig
    from embedlog.controller.metadata import MetadataImage


def new_topic(name: str, image: MetadataImage, config: BrokerConfig) -> NewTopic:
    """Return the topic that a broker creates because a request needs it."""
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
    """Return (partitions, replicas, settings) of an internal topic, or None for another topic."""
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
