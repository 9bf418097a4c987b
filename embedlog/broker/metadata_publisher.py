"""Apply the controller's decisions: host partitions, make, remove and configure their logs.

On the only broker of a cluster:

    a change of the metadata          is applied at once: `publish`, one change at a time
    a partition that exists when      is hosted when it is first used: `load`. After an unclean
    the broker opens                  stop all partitions are hosted at once
    a partition of an internal        gets its log when it is first used: an internal topic has 50,
    topic                             and few are ever used

One broker of several hosts every replica soon, because followers must follow: see `ReplicasToHost`.
If it has several log directories, it hosts new replicas at once, because the choice of a directory
for a log depends on the logs before it.

Locks are taken in this order: controller, publisher, partition. No waiting operation is completed
under these locks: an answered client may need the controller lock, and a completing operation holds
a lock of its own.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.hosting import Hosting
from embedlog.common import TopicPartition
from embedlog.config import BrokerConfig, topic_config
from embedlog.replication.partition import NO_LEADER, Partition
from embedlog.runtime.locks import Rank, ranked_rlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.broker.peers import Peers
    from embedlog.broker.replicas_to_host import ReplicasToHost
    from embedlog.controller.metadata import MetadataDelta, MetadataImage, TopicImage
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.storage.data_directories import DataDirectories


class MetadataPublisher:
    """Keeps the replica manager and the logs in step with the controller's image.

    `bump_leader_epochs` is a call of the controller. A log that lost records in a crash begins a
    new leader epoch, and the controller must record it.
    """

    def __init__(
        self,
        config: BrokerConfig,
        log_manager: DataDirectories,
        replica_manager: ReplicaManager,
        bump_leader_epochs: Callable[[Iterable[TopicPartition], int], None],
        peers: Peers | None,
    ) -> None:
        self._config = config
        self._log_manager = log_manager
        self._replica_manager = replica_manager
        self._bump_leader_epochs = bump_leader_epochs
        self._hosting = Hosting(config, log_manager, replica_manager)
        self._lock = ranked_rlock(Rank.PUBLISHER)
        self._image: MetadataImage | None = None
        self._peers = peers
        self._to_host: ReplicasToHost | None = None
        """None if the cluster has only this broker."""
        if peers is not None:
            from embedlog.broker.replicas_to_host import ReplicasToHost

            self._to_host = ReplicasToHost(replica_manager.runtime, self._host_waiting)

    def open(self, image: MetadataImage) -> None:
        """Begin with the image of an opening broker: configure logs, but host no partition yet."""
        self._image = image
        for name in image.topics_by_name:
            self._hosting.configure_logs(image, name)

    def _throttle(self, image: MetadataImage, topics: Iterable[str]) -> None:
        """Throttle the replicas that the settings of the topics name (KIP-73)."""
        replication = self._replica_manager.replication
        if replication is None:
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
            replication.throttles.configure(
                name, leader_replicas=leader, follower_replicas=follower
            )

    def host_all(self, *, at_once: bool) -> None:
        """Host every replica of this broker, soon or `at_once`. Delete all other logs.

        Changes of replicas that were made while the broker was stopped are only in the image.
        """
        assert self._image is not None, "open comes first"
        assert self._to_host is not None, "there are no other brokers"
        with self._lock:
            image = self._image
            for topic_partition in self._log_manager.partitions():
                if self._is_ours(image, topic_partition):
                    continue
                if self._log_manager.get(topic_partition) is not None:
                    self._hosting.remove(topic_partition)
            self._throttle(image, image.topics_by_name)
            for topic in image.topics_by_name.values():
                self._create(image, topic, range(len(topic.partitions)), is_new=False)
        if at_once:
            for topic_partition in self._to_host.all():
                self._host_waiting(topic_partition)
        self._log_manager.report()
        self._to_host.begin()

    def close(self, *, makes_logs: bool) -> None:
        """Stop hosting. With `makes_logs`, first make the missing logs of waiting replicas."""
        to_host = self._to_host
        if to_host is None:
            return
        if makes_logs:
            for topic_partition in to_host.all():
                if self._log_manager.holder(topic_partition) is None:
                    self._host_waiting(topic_partition)
        with self._lock:  # another thread may be hosting a replica
            to_host.close()

    def _host_waiting(self, topic_partition: TopicPartition) -> None:
        """Host a replica for `ReplicasToHost`, if it still waits. Requires: no lock."""
        assert self._image is not None, "open comes first"
        assert self._to_host is not None, "there are no other brokers"
        with self._lock:
            if topic_partition not in self._to_host:
                return
            try:
                if topic_partition not in self._replica_manager.partitions:
                    self._hosting.host_or_warn(self._image, topic_partition)
            except Exception:
                # After a bug with one replica, the duty must go on with the others.
                self._to_host.forget(topic_partition)
                raise
            self._to_host.forget(topic_partition)
        self._log_manager.report()

    def load_all(self) -> None:
        """Host every partition of this broker, except those of internal topics without a log."""
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
                    except (errors.KafkaStorageError, errors.NotLeaderOrFollower):
                        # Skip the partition of an offline directory, or with unreachable files.
                        if not self._log_manager.offline and not self._is_unreachable(
                            (topic.name, number)
                        ):
                            raise

    def _is_unreachable(self, topic_partition: tuple[str, int]) -> bool:
        managers = self._log_manager.managers
        return any(topic_partition in each.opener.unreachable for each in managers)

    def load(self, topic: str, number: int) -> Partition | None:
        """Return the partition, or None if it does not exist. Host it first if necessary.

        Requires: no lock.

        Raises:
            NotLeaderOrFollower: only other brokers have replicas, or the replica here was lost.
            KafkaStorageError: the log of the partition cannot be opened.
        """
        with self._lock:
            assert self._image is not None, "open comes first"
            image, to_host = self._image, self._to_host
            topic_partition = TopicPartition(topic, number)
            if image.partition(topic, number) is None:
                return None
            if not self._is_ours(image, topic_partition):
                raise errors.NotLeaderOrFollower()
            partition = self._replica_manager.partitions.get(topic_partition)
            if partition is None:
                try:
                    partition = self._hosting.host(
                        image, topic_partition, may_replace=to_host is not None
                    )
                except errors.KafkaStorageError:
                    if not self._was_lost(image, topic_partition):
                        raise
                    raise errors.NotLeaderOrFollower() from None
                if to_host is not None:
                    to_host.forget(topic_partition)
        if self._peers is not None:
            self._peers.let_follow(topic_partition, partition.replicas)
        self._log_manager.report()
        while partition.leader_epoch < (latest_epoch := partition.log.epochs.latest):
            self._bump_leader_epochs([topic_partition], latest_epoch)
        return partition

    def want(self, topic_partition: TopicPartition) -> None:
        """Host a waiting replica at once, because the partition is used on another broker."""
        if self._to_host is not None:
            self._to_host.want(topic_partition)

    def publish(self, delta: MetadataDelta) -> None:
        """Apply one change of the metadata. Requires: changes come in order, one at a time."""
        with self._lock:
            former = self._image
            self._image = delta.image
            try:
                self._apply(former, delta)
            except (KeyboardInterrupt, SystemExit):
                self._image = former  # the change is published again, and compared with `former`
                raise
        self._log_manager.report()

    def _apply(self, former: MetadataImage | None, delta: MetadataDelta) -> None:
        image = delta.image
        for topic in delta.deleted:
            for partition in topic.partitions:
                self._remove(TopicPartition(topic.name, partition.partition))
            self._log_manager.configure(topic.name, None)
        self._throttle(image, (topic.name for topic in delta.deleted))
        added = [(topic, range(len(topic.partitions))) for topic in delta.created]
        # Apply all settings before the first log is made: if the disk refuses a log, its topic
        # and the topics after it still have their settings when their logs are made later.
        for topic, _ in added:
            self._hosting.configure_logs(image, topic.name)
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

    def _create(
        self,
        image: MetadataImage,
        topic: TopicImage,
        numbers: Iterable[int],
        *,
        is_new: bool = True,
    ) -> None:
        """Host this broker's replicas of new partitions, or let `ReplicasToHost` host them later.

        If `is_new` is false, a log may exist already.
        """
        to_host = self._to_host
        if topic.is_internal and to_host is None:
            return
        for number in numbers:
            topic_partition = TopicPartition(topic.name, number)
            if not self._is_ours(image, topic_partition):
                continue
            if to_host is None or not self._log_manager.has_one:
                self._hosting.host_or_warn(image, topic_partition, is_new=is_new)
            else:
                to_host.add(topic_partition)

    def _update(
        self, former: MetadataImage | None, image: MetadataImage, topic_partition: TopicPartition
    ) -> None:
        """Apply a change of one partition: lead it, follow it, host it or remove it."""
        hosted = self._replica_manager.partitions.get(topic_partition)
        if not self._is_ours(image, topic_partition):
            if hosted is not None or self._waits(topic_partition):
                self._remove(topic_partition)
        elif hosted is not None:
            self._hosting.apply(image, hosted)
        elif self._to_host is not None:
            is_new = former is None or not self._is_ours(former, topic_partition)
            topic = image.topics_by_name[topic_partition.topic]
            self._create(image, topic, (topic_partition.partition,), is_new=is_new)
            self._to_host.want(topic_partition)

    def _remove(self, topic_partition: TopicPartition) -> None:
        if self._to_host is not None:
            self._to_host.forget(topic_partition)
        self._hosting.remove(topic_partition)

    def _configure(self, image: MetadataImage, topics: Iterable[str]) -> None:
        self._throttle(image, topics)
        for name in topics:
            self._hosting.configure(image, name)

    def _is_ours(self, image: MetadataImage, topic_partition: TopicPartition) -> bool:
        state = image.partition(*topic_partition)
        return state is not None and self._replica_manager.node_id in state.replicas

    def _was_lost(self, image: MetadataImage, topic_partition: TopicPartition) -> bool:
        """Return whether the replica's directory is missing and another broker leads."""
        directories = self._log_manager
        if not directories.offline or directories.is_offline(topic_partition):
            return False
        state = image.partition(*topic_partition)
        nobody_else = NO_LEADER, self._replica_manager.node_id
        return state is not None and state.leader not in nobody_else

    def _waits(self, topic_partition: TopicPartition) -> bool:
        return self._to_host is not None and topic_partition in self._to_host
