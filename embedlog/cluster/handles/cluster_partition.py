"""`ClusterPartition`: one partition of a cluster of several in the hand of a test."""

from __future__ import annotations

from embedlog.common import TopicPartition
from embedlog.errors import ConfigError, KafkaError, UnknownTopicOrPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Protocol

    from embedlog.cluster.member import Member
    from embedlog.controller.controller import Controller
    from embedlog.controller.metadata import PartitionImage
    from embedlog.replication.fetcher.fetchers import Fetchers
    from embedlog.replication.partition import Partition

    class Brokers(Protocol):
        """All brokers of the cluster, as this file knows them."""

        @property
        def members(self) -> Mapping[int, Member]: ...
        def running_controller(self) -> Controller:
            """Raises NotController while it does not run."""


class ClusterPartition:
    """Where a partition is, who leads it, and how to change that. `Cluster.partition` gives one.

    >>> import embedlog
    >>> with embedlog.open(brokers=3) as cluster:
    ...     topic = cluster.create_topic("events", 1, replication_factor=3)
    ...     partition = cluster.partition("events", 0)
    ...     partition.move_to(2)
    ...     partition.leader
    2
    """

    __slots__ = ("_brokers", "topic_partition")

    def __init__(self, brokers: Brokers, topic: str, partition: int) -> None:
        self._brokers = brokers
        self.topic_partition = TopicPartition(topic, partition)

    @property
    def leader(self) -> int:
        """Who leads it; -1 for nobody."""
        return self._image.leader

    @property
    def leader_epoch(self) -> int:
        """How often its leader has changed."""
        return self._image.leader_epoch

    @property
    def replicas(self) -> tuple[int, ...]:
        """The brokers that hold it, the preferred leader first."""
        return self._image.replicas

    @property
    def isr(self) -> tuple[int, ...]:
        """Those that are in sync with the leader, itself included."""
        return self._image.isr

    @property
    def end_offsets(self) -> dict[int, int]:
        """The log end offset at each replica that runs."""
        return {node: found.log.log_end_offset for node, found in self._hosted().items()}

    @property
    def high_watermarks(self) -> dict[int, int]:
        """The high watermark at each replica that runs."""
        return {node: found.log.offsets.high_watermark for node, found in self._hosted().items()}

    def move_to(self, node_id: int) -> None:
        """Let a broker be the preferred leader, and lead as soon as it is in sync.

        One that holds no replica gets one, in place of the last.

        Raises:
            KafkaError: there is no such broker, or the controller does not run.
        """
        controller = self._brokers.running_controller()
        present = self._image.replicas
        others = [each for each in present if each != node_id]
        wanted = [node_id, *others][: len(present)]
        controller.partitions.reassign(*self.topic_partition, wanted)
        controller.partitions.elect_leaders(0, [self.topic_partition])

    def reassign(self, replicas: Collection[int]) -> None:
        """Give the partition other replicas; it is over when all of them are in sync.

        Raises:
            KafkaError: there is no such broker, or the controller does not run.
        """
        controller = self._brokers.running_controller()
        controller.partitions.reassign(*self.topic_partition, list(replicas))

    def hold(self, node_id: int) -> None:
        """Keep a follower behind: it fetches no more of this partition until `release`."""
        self._follower(node_id).hold(self.topic_partition)

    def release(self, node_id: int) -> None:
        """End `hold`."""
        self._follower(node_id).release(self.topic_partition)

    @property
    def _image(self) -> PartitionImage:
        found = self._brokers.running_controller().image.partition(*self.topic_partition)
        if found is None:
            raise UnknownTopicOrPartition(f"there is no partition {self.topic_partition}")
        return found

    def _follower(self, node_id: int) -> Fetchers:
        """What a broker follows others with, one that holds the partition.

        Raises:
            ConfigError: it does not, or it does not run.
        """
        member = self._brokers.members.get(node_id)
        if member is None or member.node is None or node_id not in self.replicas:
            raise ConfigError(f"broker {node_id} has no running replica of {self.topic_partition}")
        return member.node.core.replica_manager.fetchers

    def _hosted(self) -> dict[int, Partition]:
        found = {}
        for node_id in self.replicas:
            member = self._brokers.members.get(node_id)
            if member is not None and member.node is not None:
                manager = member.node.core.replica_manager
                try:
                    found[node_id] = manager.partition(*self.topic_partition)
                except KafkaError:
                    continue  # it does not know of it yet, or its disk refuses
        return found

    def __repr__(self) -> str:
        image = self._image
        return f"<ClusterPartition {self.topic_partition}, leader {image.leader}, isr {image.isr}>"
