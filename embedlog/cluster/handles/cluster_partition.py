"""`ClusterPartition`: a test's handle of one partition of several brokers."""

from __future__ import annotations

from embedlog.common import TopicPartition
from embedlog.errors import ConfigError, KafkaError, UnknownTopicOrPartition
from embedlog.runtime.outer_call import outer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from embedlog.cluster.controller_host import ControllerHost
    from embedlog.cluster.lone_controller import LoneController
    from embedlog.cluster.lone_member import LoneMember
    from embedlog.cluster.member import ClusterMember
    from embedlog.controller.metadata import PartitionImage
    from embedlog.replication.fetcher.fetchers import Fetchers
    from embedlog.replication.partition import Partition


class ClusterPartition:
    """Replicas and leader of a partition, and ways to change them. `Cluster.partition` returns one.

    >>> import embedlog
    >>> with embedlog.open(brokers=3) as cluster:
    ...     topic = cluster.create_topic("events", 1, replication_factor=3)
    ...     partition = cluster.partition("events", 0)
    ...     partition.move_to(2)
    ...     partition.leader
    2
    """

    __slots__ = ("_host", "_members", "topic_partition")

    def __init__(
        self,
        host: ControllerHost | LoneController,
        members: Mapping[int, ClusterMember] | Mapping[int, LoneMember],
        topic: str,
        partition: int,
    ) -> None:
        self._host = host
        self._members = members
        self.topic_partition = TopicPartition(topic, partition)

    @property
    def leader(self) -> int:
        """Number of the leading broker; -1 if there is no leader."""
        return self._image.leader

    @property
    def leader_epoch(self) -> int:
        """The leader epoch: it rises with each change of the leader."""
        return self._image.leader_epoch

    @property
    def replicas(self) -> tuple[int, ...]:
        """Brokers that hold a replica, the preferred leader first."""
        return self._image.replicas

    @property
    def isr(self) -> tuple[int, ...]:
        """Replicas in sync with the leader, including the leader."""
        return self._image.isr

    @property
    def end_offsets(self) -> dict[int, int]:
        """The log end offset at each replica that runs."""
        return {node_id: found.log.log_end_offset for node_id, found in self._hosted().items()}

    @property
    def high_watermarks(self) -> dict[int, int]:
        """The high watermark at each replica that runs."""
        return {node: found.log.offsets.high_watermark for node, found in self._hosted().items()}

    @outer
    def move_to(self, node_id: int) -> None:
        """Make a broker the preferred leader; it leads as soon as it is in sync.

        A broker without a replica gets one, in place of the last replica.

        Raises:
            KafkaError: there is no such broker, or the controller does not run.
        """
        controller = self._host.running()
        present = self._image.replicas
        others = [each for each in present if each != node_id]
        wanted = [node_id, *others][: len(present)]
        controller.partitions.reassign(*self.topic_partition, wanted)
        controller.partitions.elect_leaders(0, [self.topic_partition])

    @outer
    def reassign(self, replicas: Collection[int]) -> None:
        """Give the partition other replicas. The move ends when all of them are in sync.

        Raises:
            KafkaError: there is no such broker, or the controller does not run.
        """
        self._host.running().partitions.reassign(*self.topic_partition, list(replicas))

    @outer
    def hold(self, node_id: int) -> None:
        """Keep a follower behind: it fetches no more of this partition until `release`."""
        self._follower(node_id).hold(self.topic_partition)

    @outer
    def release(self, node_id: int) -> None:
        """End `hold`."""
        self._follower(node_id).release(self.topic_partition)

    @property
    def _image(self) -> PartitionImage:
        found = self._host.running().image.partition(*self.topic_partition)
        if found is None:
            raise UnknownTopicOrPartition(f"there is no partition {self.topic_partition}")
        return found

    def _follower(self, node_id: int) -> Fetchers:
        """Return the fetchers of a broker that holds the partition.

        Raises:
            ConfigError: the broker has no replica, or does not run.
        """
        member = self._members.get(node_id)
        if member is None or member.running is None or node_id not in self.replicas:
            raise ConfigError(f"broker {node_id} has no running replica of {self.topic_partition}")
        return member.running.core.replica_manager.fetchers

    def _hosted(self) -> dict[int, Partition]:
        found = {}
        for node_id in self.replicas:
            member = self._members.get(node_id)
            if member is not None and member.running is not None:
                manager = member.running.core.replica_manager
                try:
                    found[node_id] = manager.partition(*self.topic_partition)
                except KafkaError:
                    continue  # the broker does not know the partition yet, or its disk fails
        return found

    def __repr__(self) -> str:
        image = self._image
        return f"<ClusterPartition {self.topic_partition}, leader {image.leader}, isr {image.isr}>"
