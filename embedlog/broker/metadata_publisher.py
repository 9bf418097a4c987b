"""From what the controller decided to what this broker hosts: logs made, removed, reconfigured.

Called under the controller lock, in the order of the changes; takes partition locks below it.
"""

from __future__ import annotations

from embedlog.common import TopicPartition
from embedlog.config import topic_config
from embedlog.storage.log_config import LogConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.config import BrokerConfig
    from embedlog.controller.metadata import MetadataDelta, MetadataImage, TopicImage
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.storage.log_manager import LogManager


class MetadataPublisher:
    """Keeps the replica manager and the logs in step with the controller's image."""

    def __init__(
        self, config: BrokerConfig, log_manager: LogManager, replica_manager: ReplicaManager
    ) -> None:
        self._config = config
        self._log_manager = log_manager
        self._replica_manager = replica_manager

    def publish(self, delta: MetadataDelta) -> None:
        """Act on one change."""
        image = delta.image
        for topic in delta.deleted:
            for partition in topic.partitions:
                self._remove(TopicPartition(topic.name, partition.partition))
        for topic in delta.created:
            self._host(image, topic, range(len(topic.partitions)))
        for topic, numbers in delta.partitions_added:
            self._host(image, topic, numbers)
        for topic_partition in delta.epochs_changed:
            self._lead(image, topic_partition)
        if delta.broker_configs_changed:
            self._configure(image, image.topics_by_name)
        else:
            self._configure(image, delta.changed_configs)

    def _host(self, image: MetadataImage, topic: TopicImage, numbers: Iterable[int]) -> None:
        config = self._log_config(image, topic.name)
        for number in numbers:
            if self._replica_manager.node_id not in topic.partitions[number].replicas:
                continue
            topic_partition = TopicPartition(topic.name, number)
            log = self._log_manager.get_or_create(
                topic_partition, topic_id=topic.topic_id, config=config
            )
            self._replica_manager.host(topic_partition, log, topic_id=topic.topic_id)
            self._lead(image, topic_partition)

    def _lead(self, image: MetadataImage, topic_partition: TopicPartition) -> None:
        state = image.partition(*topic_partition)
        partition = self._replica_manager.partitions.get(topic_partition)
        if state is None or partition is None:
            return
        self._replica_manager.lead(
            partition,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            replicas=state.replicas,
            isr=state.isr,
            min_insync_replicas=self._min_insync_replicas(image, topic_partition.topic),
        )

    def _remove(self, topic_partition: TopicPartition) -> None:
        if self._replica_manager.retire(topic_partition) is not None:
            self._log_manager.delete(topic_partition)

    def _configure(self, image: MetadataImage, topics: Iterable[str]) -> None:
        for name in topics:
            topic = image.topics_by_name[name]
            config = self._log_config(image, name)
            min_insync_replicas = self._min_insync_replicas(image, name)
            for number in range(len(topic.partitions)):
                partition = self._replica_manager.partitions.get(TopicPartition(name, number))
                if partition is None:
                    continue
                self._replica_manager.configure(
                    partition, config, min_insync_replicas=min_insync_replicas
                )

    def _log_config(self, image: MetadataImage, topic: str) -> LogConfig:
        texts = image.topic_configs.get(topic, {})
        return LogConfig(**topic_config.log_settings(texts, self._config))

    def _min_insync_replicas(self, image: MetadataImage, topic: str) -> int:
        texts = image.topic_configs.get(topic, {})
        value = topic_config.effective("min.insync.replicas", texts, self._config)
        assert isinstance(value, int), value
        return value
