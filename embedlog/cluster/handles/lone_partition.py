"""`LonePartition`: a test's handle of one partition of the only broker."""

from __future__ import annotations

from embedlog.cluster.handles.cluster_partition import ClusterPartition
from embedlog.errors import ConfigError, UnknownTopicOrPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.cluster.lone_member import LoneMember
    from embedlog.controller.metadata import PartitionImage
    from embedlog.replication.fetcher.fetchers import Fetchers


class LonePartition(ClusterPartition):
    """The partition has one replica, so it can move nowhere. It has no leader while that is down.

    >>> import embedlog
    >>> with embedlog.open() as cluster:
    ...     topic = cluster.create_topic("events", 1)
    ...     partition = cluster.partition("events", 0)
    ...     cluster.broker(1).kill()
    ...     down = partition.leader
    ...     cluster.broker(1).start()
    ...     down, partition.leader
    (-1, 1)
    """

    __slots__ = ("_member",)

    def __init__(self, member: LoneMember, topic: str, partition: int) -> None:
        super().__init__(member.controller, {member.node_id: member}, topic, partition)
        self._member = member

    @property
    def leader(self) -> int:
        """The number of the only broker; -1 while it is down."""
        return -1 if self._member.running is None else super().leader

    @property
    def _image(self) -> PartitionImage:
        image = self._member.newest.controller.image
        found = image.partition(*self.topic_partition)
        if found is None:
            raise UnknownTopicOrPartition(f"there is no partition {self.topic_partition}")
        return found

    def _follower(self, node_id: int) -> Fetchers:
        raise ConfigError(
            f"{self.topic_partition} has no follower: broker {self._member.node_id} is the only one"
        )
