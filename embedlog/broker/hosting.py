"""`Hosting`: host partitions, change them or remove them, as an image of the metadata says.

Every method requires the lock of `MetadataPublisher` and the newest image that this broker knows.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.config import BrokerConfig, topic_config
from embedlog.logger import Logger
from embedlog.replication.leader_and_isr import LeaderAndIsr
from embedlog.storage.log_config import LogConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition
    from embedlog.controller.metadata import MetadataImage
    from embedlog.replication.partition import Partition
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.storage.data_directories import DataDirectories
    from embedlog.storage.log.log import Log

_log = Logger("broker")


class Hosting:
    """Adds partitions to the replica manager; the log manager makes and deletes their logs."""

    def __init__(
        self, config: BrokerConfig, log_manager: DataDirectories, replica_manager: ReplicaManager
    ) -> None:
        self._config = config
        self._log_manager = log_manager
        self._replica_manager = replica_manager

    def host(
        self,
        image: MetadataImage,
        topic_partition: TopicPartition,
        *,
        is_new: bool = True,
        may_replace: bool = False,
    ) -> Partition:
        """Host a partition, and make its log if there is none. Requires: it is not hosted.

        `is_new` is true if the log need not exist, see `DataDirectories.get_or_create`. With
        `may_replace`, delete the log of an earlier topic of the same name.

        Raises:
            InconsistentTopicId: the log of an earlier topic exists, and `may_replace` is false.
            KafkaStorageError: the disk refuses.
        """
        state = image.partition(*topic_partition)
        assert state is not None, topic_partition
        manager, topic_id = self._log_manager, image.topics_by_name[topic_partition.topic].topic_id
        try:
            log = manager.get_or_create(
                topic_partition,
                topic_id=topic_id,
                directory_id=state.directories.get(self._replica_manager.node_id),
                is_new=is_new,
            )
        except errors.InconsistentTopicId:
            if not may_replace:
                raise
            # An earlier topic was deleted in the metadata, but its log was not, because of a crash
            # or because the disk refused.
            manager.delete(topic_partition)
            log = manager.get_or_create(topic_partition, topic_id=topic_id)
        return self._serve(image, topic_partition, log, topic_id)

    def _serve(
        self, image: MetadataImage, topic_partition: TopicPartition, log: Log, topic_id: bytes
    ) -> Partition:
        partition = self._replica_manager.host(
            topic_partition, log, self._state(image, topic_partition), topic_id=topic_id
        )
        if self._log_manager.is_offline(topic_partition):
            # The directory has failed just now, and its partitions were retired before this
            # partition was hosted: retire it as well.
            self._replica_manager.retire(topic_partition, errors.KafkaStorageError)
        return partition

    def host_or_warn(
        self, image: MetadataImage, topic_partition: TopicPartition, *, is_new: bool = True
    ) -> None:
        """Host a partition after a change of the metadata.

        If the disk refuses, the change stays, and the first request for the partition hosts it.
        """
        try:
            self.host(image, topic_partition, is_new=is_new, may_replace=True)
        except errors.KafkaStorageError as error:
            _log.warning("%s cannot be served yet: %s", topic_partition, error)

    def apply(self, image: MetadataImage, hosted: Partition) -> None:
        """Let a hosted partition lead or follow as the image says.

        Raises:
            KafkaStorageError: the disk refuses for now.
        """
        topic_partition = hosted.topic_partition
        try:
            hosted.apply(self._state(image, topic_partition), self._replica_manager.node_id)
        except errors.KafkaStorageError as error:
            if hosted.log.failure is None:
                raise
            # Do not raise, so that the other brokers get the change and one of them leads.
            _log.warning("%s can no longer be served: %s", topic_partition, error)
        self._replica_manager.changed(hosted)

    def configure(self, image: MetadataImage, topic: str) -> None:
        """Apply the settings of a topic to its hosted partitions and to its logs."""
        self.configure_logs(image, topic)
        min_insync_replicas = self._min_insync_replicas(image, topic)
        for number in range(len(image.topics_by_name[topic].partitions)):
            partition = self._replica_manager.partitions.get((topic, number))
            if partition is not None:
                partition.configure(min_insync_replicas=min_insync_replicas)
                self._replica_manager.changed(partition)

    def configure_logs(self, image: MetadataImage, topic: str) -> None:
        """Apply the settings of a topic to its logs, also to logs that are made later."""
        texts = image.topic_configs.get(topic, {})
        log_config = LogConfig(**topic_config.log_settings(texts, self._config))
        self._log_manager.configure(topic, log_config)

    def remove(self, topic_partition: TopicPartition) -> None:
        """Delete a partition's log; stop serving the partition first if it is hosted."""
        self._replica_manager.retire(topic_partition)
        try:
            self._log_manager.delete(topic_partition)
        except errors.KafkaStorageError as error:
            # The metadata no longer has the replica. Its log is deleted when the directory is next
            # opened, or when a topic of the same name is created.
            _log.warning("the log of a deleted topic is still there: %s", error)

    def _state(self, image: MetadataImage, topic_partition: TopicPartition) -> LeaderAndIsr:
        state = image.partition(*topic_partition)
        assert state is not None, topic_partition
        places = state.directories  # by broker id; empty in most clusters
        return LeaderAndIsr(
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            replicas=state.replicas,
            isr=state.isr,
            min_insync_replicas=self._min_insync_replicas(image, topic_partition.topic),
            is_recovering=state.is_recovering,
            offline_replicas=tuple(each for each in places if image.is_lost(state, each)),
        )

    def _min_insync_replicas(self, image: MetadataImage, topic: str) -> int:
        texts = image.topic_configs.get(topic, {})
        value = topic_config.effective("min.insync.replicas", texts, self._config)
        assert isinstance(value, int), value
        return value
