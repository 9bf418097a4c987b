"""From what the controller decided to what this broker hosts: logs made, removed, reconfigured.

    a change of the metadata      acted on at once: `publish`, one change at a time
    a partition that was there    hosted when it is first asked for: `load`
    when the broker opened        (after an unclean stop all of them, at once)
    a coordinator's partition     has no log before it is first asked for: there are 50 of a topic,
                                  and few are ever used

In a cluster of several brokers every replica is hosted at once: followers have to follow.

Locks: controller, then this one, then partition. Nothing that waits is completed under them:
whoever is answered may ask for the controller lock, and a completing operation holds its own.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.config import topic_config
from embedlog.logs import Log as Logger
from embedlog.replication.partition_state import PartitionState
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.storage.log_config import LogConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.config import BrokerConfig
    from embedlog.controller.metadata import MetadataDelta, MetadataImage, TopicImage
    from embedlog.replication.partition import Partition
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.storage.data_directories import DataDirectories
    from embedlog.storage.log import Log


_log = Logger("broker")


class MetadataPublisher:
    """Keeps the replica manager and the logs in step with the controller's image.

    `bump_leader_epochs` is the controller's: a log that lost records in a crash has begun an
    epoch of its own, which the image then has to follow.
    """

    def __init__(
        self,
        config: BrokerConfig,
        log_manager: DataDirectories,
        replica_manager: ReplicaManager,
        bump_leader_epochs: Callable[[Iterable[TopicPartition], int], None],
        *,
        is_member: bool,
    ) -> None:
        """`is_member`: there are other brokers, which lead and follow."""
        self._is_member = is_member
        self._config = config
        self._log_manager = log_manager
        self._replica_manager = replica_manager
        self._bump_leader_epochs = bump_leader_epochs
        self._lock = ranked_rlock(Rank.PUBLISHER)
        self._image: MetadataImage | None = None

    def open(self, image: MetadataImage) -> None:
        """Begin with the image of a broker that opens. Partitions wait until they are asked for."""
        self._image = image
        for name in image.topics_by_name:
            self._log_manager.configure(name, self._log_config(image, name))

    def _throttle(self, image: MetadataImage, topics: Iterable[str]) -> None:
        """Let the replicas that topics name be slowed down (KIP-73)."""
        joined = self._replica_manager.joined
        if joined is None:
            return
        for name in topics:
            texts = image.topic_configs.get(name, {})
            leader, follower = (
                topic_config.effective(
                    f"{kind}.replication.throttled.replicas", texts, self._config
                )
                for kind in ("leader", "follower")
            )
            assert isinstance(leader, tuple), leader
            assert isinstance(follower, tuple), follower
            joined.throttles.configure(name, leader_replicas=leader, follower_replicas=follower)

    def host_all(self) -> None:
        """Host every replica that is this broker's; give up the logs of those that are not.

        What became of a replica while the broker was away is told by the image alone.
        """
        assert self._image is not None, "open comes first"
        with self._lock:
            image = self._image
            for topic_partition in self._log_manager.partitions():
                log = self._log_manager.get(topic_partition)
                if log is not None and not self._is_ours(image, topic_partition, log):
                    self._remove(topic_partition)
            self._throttle(image, image.topics_by_name)
            for topic in image.topics_by_name.values():
                self._create(image, topic, range(len(topic.partitions)), is_new=False)
        self._log_manager.report()

    def _is_ours(self, image: MetadataImage, topic_partition: TopicPartition, log: Log) -> bool:
        topic = image.topics_by_name.get(topic_partition.topic)
        state = image.partition(*topic_partition)
        return (
            topic is not None
            and state is not None
            and log.topic_id in (None, topic.topic_id)
            and self._replica_manager.node_id in state.replicas
        )

    def load_all(self) -> None:
        """Host every partition that belongs here, those of coordinators only if they have a log."""
        assert self._image is not None, "open comes first"
        present = set(self._log_manager.partitions())
        for topic in self._image.topics_by_name.values():
            for partition in topic.partitions:
                number = partition.partition
                if self._replica_manager.node_id in partition.replicas and (
                    not topic.is_internal or (topic.name, number) in present
                ):
                    try:
                        self.load(topic.name, number)
                    except errors.KafkaStorageError:
                        if not self._log_manager.offline:
                            raise  # else it lies where nobody can look

    def load(self, topic: str, number: int) -> Partition | None:
        """The partition, hosted from here on; None when there is none. Requires: no other lock.

        Raises:
            NotLeaderOrFollower: all of its replicas are other brokers'.
            KafkaStorageError: its log cannot be opened.
        """
        with self._lock:
            assert self._image is not None, "open comes first"
            image = self._image
            state = image.partition(topic, number)
            if state is None:
                return None
            if self._replica_manager.node_id not in state.replicas:
                raise errors.NotLeaderOrFollower()
            topic_partition = TopicPartition(topic, number)
            partition = self._replica_manager.partitions.get(topic_partition)
            if partition is None:
                log = self._log_manager.get_or_create(
                    topic_partition,
                    topic_id=image.topics_by_name[topic].topic_id,
                    directory_id=state.directories.get(self._replica_manager.node_id),
                )
                partition = self._host(image, topic_partition, log)
        self._log_manager.report()
        while partition.leader_epoch < (latest_epoch := partition.log.epochs.latest):
            self._bump_leader_epochs([topic_partition], latest_epoch)
        return partition

    def publish(self, delta: MetadataDelta) -> None:
        """Act on one change. They come in order, one at a time."""
        with self._lock:
            former, image = self._image, delta.image
            self._image = image
            for topic in delta.deleted:
                for partition in topic.partitions:
                    self._remove(TopicPartition(topic.name, partition.partition))
            added = [(topic, range(len(topic.partitions))) for topic in delta.created]
            # All of them before the first log is made: a disk that refuses one topic's log shall
            # not cost another its settings, nor the one its own when its log is made later.
            for topic, _ in added:
                self._log_manager.configure(topic.name, self._log_config(image, topic.name))
            self._throttle(image, (topic.name for topic, _ in added))
            for topic, numbers in (*added, *delta.partitions_added):
                self._create(image, topic, numbers)
            for topic_partition in delta.partitions_changed:
                self._update(former, image, topic_partition)
            if delta.broker_configs_changed:
                self._configure(image, image.topics_by_name)
                self._log_manager.tasks.reconfigured()
            else:
                self._configure(image, delta.changed_configs)
        self._log_manager.report()

    def _create(
        self,
        image: MetadataImage,
        topic: TopicImage,
        numbers: Iterable[int],
        *,
        is_new: bool = True,
    ) -> None:
        """Make the logs of new partitions; one that the disk refuses is made when asked for.

        They are there already if they are not `is_new`, unless their topics never had records.
        """
        if topic.is_internal and not self._is_member:
            return
        node_id = self._replica_manager.node_id
        for number in numbers:
            state = topic.partitions[number]
            if node_id not in state.replicas:
                continue
            topic_partition = TopicPartition(topic.name, number)
            try:
                log = self._make(
                    topic_partition,
                    topic.topic_id,
                    directory_id=state.directories.get(node_id),
                    is_new=is_new,
                )
                self._host(image, topic_partition, log)
            except errors.KafkaStorageError as error:
                # The topic is in the metadata by now, and the request has not failed.
                _log.warning("%s cannot be served yet: %s", topic_partition, error)

    def _make(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        *,
        directory_id: bytes | None,
        is_new: bool,
    ) -> Log:
        try:
            return self._log_manager.get_or_create(
                topic_partition, topic_id=topic_id, directory_id=directory_id, is_new=is_new
            )
        except errors.InconsistentTopicId:
            # A crash came between a topic's end in the metadata and that of its log.
            self._log_manager.delete(topic_partition)
            return self._log_manager.get_or_create(topic_partition, topic_id=topic_id)

    def _host(self, image: MetadataImage, topic_partition: TopicPartition, log: Log) -> Partition:
        partition = self._replica_manager.host(
            topic_partition,
            log,
            self._state(image, topic_partition),
            topic_id=image.topics_by_name[topic_partition.topic].topic_id,
        )
        if self._log_manager.is_offline(topic_partition):
            # Its directory has failed meanwhile, and whoever took it offline was here before.
            self._replica_manager.retire(topic_partition, errors.KafkaStorageError)
        return partition

    def _update(
        self, former: MetadataImage | None, image: MetadataImage, topic_partition: TopicPartition
    ) -> None:
        """Let a partition that changed lead, follow, begin or end here."""
        state = image.partition(*topic_partition)
        hosted = self._replica_manager.partitions.get(topic_partition)
        is_ours = state is not None and self._replica_manager.node_id in state.replicas
        if hosted is not None and is_ours:
            try:
                hosted.apply(self._state(image, topic_partition), self._replica_manager.node_id)
            except errors.KafkaStorageError as error:
                if hosted.log.failure is None:
                    raise
                # The others shall hear of the change all the same, and one of them lead.
                _log.warning("%s cannot be served any more: %s", topic_partition, error)
            self._replica_manager.changed(hosted)
        elif hosted is not None:
            self._remove(topic_partition)
        elif is_ours and self._is_member:
            topic = image.topics_by_name[topic_partition.topic]
            before = None if former is None else former.partition(*topic_partition)
            is_new = before is None or self._replica_manager.node_id not in before.replicas
            self._create(image, topic, (topic_partition.partition,), is_new=is_new)

    def _state(self, image: MetadataImage, topic_partition: TopicPartition) -> PartitionState:
        """What the controller decided about a partition that there is."""
        state = image.partition(*topic_partition)
        assert state is not None, topic_partition
        places = state.directories  # of few clusters there are any
        return PartitionState(
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            replicas=state.replicas,
            isr=state.isr,
            min_insync_replicas=self._min_insync_replicas(image, topic_partition.topic),
            is_recovering=state.is_recovering,
            lost=[each for each in places if image.is_lost(state, each)],
        )

    def _remove(self, topic_partition: TopicPartition) -> None:
        self._replica_manager.retire(topic_partition)
        try:
            self._log_manager.delete(topic_partition)
        except errors.KafkaStorageError as error:
            # The topic is gone from the metadata. Its log goes when the directory is next opened,
            # or when a topic of its name is made.
            _log.warning("the log of a deleted topic is still there: %s", error)

    def _configure(self, image: MetadataImage, topics: Iterable[str]) -> None:
        self._throttle(image, topics)
        for name in topics:
            self._log_manager.configure(name, self._log_config(image, name))
            min_insync_replicas = self._min_insync_replicas(image, name)
            for number in range(len(image.topics_by_name[name].partitions)):
                partition = self._replica_manager.partitions.get((name, number))
                if partition is not None:
                    partition.configure(min_insync_replicas=min_insync_replicas)
                    self._replica_manager.changed(partition)

    def _log_config(self, image: MetadataImage, topic: str) -> LogConfig:
        texts = image.topic_configs.get(topic, {})
        return LogConfig(**topic_config.log_settings(texts, self._config))

    def _min_insync_replicas(self, image: MetadataImage, topic: str) -> int:
        texts = image.topic_configs.get(topic, {})
        value = topic_config.effective("min.insync.replicas", texts, self._config)
        assert isinstance(value, int), value
        return value
