"""`RunningBrokers`: the running brokers of a cluster, their metadata and their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedlog.cluster.cluster import Cluster
from embedlog.common import TopicPartition
from embedlog.errors import (
    ClosedError,
    IllegalState,
    KafkaStorageError,
    UnknownTopicOrPartition,
)
from embedlog.testing.names import hint

if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.controller.metadata import MetadataImage
    from embedlog.replication.partition import Partition


class NoBrokerRuns(IllegalState):
    """Every broker of the cluster is down."""


class RunningBrokers:
    """The running brokers of one cluster. Every method may be called from any thread."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def running(self) -> list[Broker]:
        """Return the brokers that run.

        Raises:
            ClosedError: the cluster was closed.
        """
        if self.cluster._is_gone():
            raise ClosedError("the cluster was closed")
        found = []
        for node in self.cluster.brokers:
            try:
                found.append(node.core)
            except ClosedError:
                continue
        return found

    @property
    def image(self) -> MetadataImage:
        """The newest metadata that a running broker knows."""
        running = self.running()
        if not running:
            raise NoBrokerRuns("no broker runs")
        return max((core.image for core in running), key=lambda image: image.end_offset)

    # Partitions

    def check_topic(self, topic: str) -> int:
        """Return the number of a topic's partitions. Raise UnknownTopicOrPartition for no topic."""
        topics = self.image.topics_by_name
        if topic not in topics:
            raise UnknownTopicOrPartition(f"there is no topic {topic!r}; {hint(topic, topics)}")
        return len(topics[topic].partitions)

    def check_partition(self, topic: str, partition: int) -> TopicPartition:
        """Return the pair. Raise UnknownTopicOrPartition if there is no such partition."""
        count = self.check_topic(topic)
        if isinstance(partition, bool) or not isinstance(partition, int):
            raise UnknownTopicOrPartition(f"partition {partition!r} of topic {topic!r}: no number")
        if not 0 <= partition < count:
            raise UnknownTopicOrPartition(f"topic {topic!r} has {count} partitions, no {partition}")
        return TopicPartition(topic, partition)

    def replicas(self, topic: str, partition: int) -> dict[int, Partition]:
        """Return the replicas of a partition that run, by broker."""
        image = self.image.partition(topic, partition)
        found = {}
        for core in self.running():
            if image is not None and core.node_id in image.replicas:
                try:
                    found[core.node_id] = core.replica_manager.partition(topic, partition)
                except (UnknownTopicOrPartition, KafkaStorageError):
                    continue  # the broker does not know the partition yet, or its disk fails
        return found

    def leader(self, topic: str, partition: int) -> Partition | None:
        """Return the replica that leads; None if no running broker leads at this moment."""
        for found in self.replicas(topic, partition).values():
            if found.is_leader:
                return found
        return None
