"""Arguments and results of the calls about replicas."""

from __future__ import annotations

from _operator import itemgetter

from embedlog.client.admin.value import AdminValue

TYPE_CHECKING = False

REPLICA_SIZE = 3


class ElectionType:
    """The kind of leader election."""

    PREFERRED = 0
    """Elect the first replica, if it is in sync."""
    UNCLEAN = 1
    """Elect any running replica of a partition without a leader; records it lacks are lost."""


class TopicPartitionReplica(tuple[str, int, int]):
    """A partition's replica on one broker; it unpacks as `topic, partition, node_id`."""

    __slots__ = ()

    def __new__(cls, topic: str, partition: int, node_id: int) -> TopicPartitionReplica:
        return tuple.__new__(cls, (topic, partition, node_id))

    def __getnewargs__(self) -> tuple[str, int, int]:
        return self[0], self[1], self[2]

    if TYPE_CHECKING:

        @property
        def topic(self) -> str: ...

        @property
        def partition(self) -> int: ...

        @property
        def node_id(self) -> int: ...

    else:
        topic = property(itemgetter(0), doc="The topic's name.")
        partition = property(itemgetter(1), doc="The partition's number, from 0.")
        node_id = property(itemgetter(2), doc="The broker's.")

    def __str__(self) -> str:
        return f"{self[0]}-{self[1]} on {self[2]}"

    def __repr__(self) -> str:
        return f"TopicPartitionReplica({self[0]!r}, {self[1]}, {self[2]})"


class PartitionReassignment(AdminValue):
    """A running move. `replicas` includes the replicas that are being added or removed."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class ReplicaLogDirectories(AdminValue):
    """The directory of a replica, and the directory it is being moved to, if any.

    `path` is None if the broker has no such replica. `offset_lag` is the replica's lag behind the
    high watermark, `future_offset_lag` the lag of its copy behind the replica; -1 if there is none.
    """

    path: str | None = None
    offset_lag: int = -1
    future_path: str | None = None
    future_offset_lag: int = -1
