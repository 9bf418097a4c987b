"""DescribeQuorum: the controllers, as they replicate the metadata log among themselves (KRaft)."""

from __future__ import annotations

from embedlog import errors
from embedlog.client.admin.value import Value
from embedlog.errors import error_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.schemas.describe_quorum import DescribeQuorumResponse, ReplicaState


class QuorumReplica(Value):
    """One that has the metadata log: a controller that votes, or who only reads it.

    The times (ms since 1970) are those of its last fetch, and of the last that reached the end of
    the log; -1 where the leader does not know. `directory_id` is 16 zeros where a broker older than
    3.9 does not tell it.
    """

    __slots__ = (
        "directory_id",
        "last_caught_up_timestamp_ms",
        "last_fetch_timestamp_ms",
        "log_end_offset",
        "replica_id",
    )

    def __init__(
        self,
        replica_id: int,
        *,
        directory_id: bytes,
        log_end_offset: int,
        last_fetch_timestamp_ms: int,
        last_caught_up_timestamp_ms: int,
    ) -> None:
        self.replica_id = replica_id
        self.directory_id = directory_id
        self.log_end_offset = log_end_offset
        self.last_fetch_timestamp_ms = last_fetch_timestamp_ms
        self.last_caught_up_timestamp_ms = last_caught_up_timestamp_ms


class QuorumInfo(Value):
    """The controllers and who follows them.

    `nodes` are where controllers listen, (host, port) by node id and listener's name; empty where a
    broker older than 3.9 does not tell it.
    """

    __slots__ = ("high_watermark", "leader_epoch", "leader_id", "nodes", "observers", "voters")

    def __init__(
        self,
        leader_id: int,
        leader_epoch: int,
        high_watermark: int,
        *,
        voters: list[QuorumReplica],
        observers: list[QuorumReplica],
        nodes: dict[int, dict[str, tuple[str, int]]],
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        self.voters = voters
        self.observers = observers
        self.nodes = nodes


def quorum_info(response: DescribeQuorumResponse) -> QuorumInfo:
    """What a response tells of the one partition that the metadata log has.

    Raises:
        KafkaError: it is refused.
    """
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    partitions = [each for topic in response.topics for each in topic.partitions]
    if len(partitions) != 1:
        raise errors.UnknownServerError(f"{len(partitions)} partitions of the metadata log")
    (found,) = partitions
    if found.error_code:
        raise error_for(found.error_code, found.error_message)
    return QuorumInfo(
        found.leader_id,
        found.leader_epoch,
        found.high_watermark,
        voters=[_replica(each) for each in found.current_voters],
        observers=[_replica(each) for each in found.observers],
        nodes={
            node.node_id: {each.name: (each.host, each.port) for each in node.listeners}
            for node in response.nodes
        },
    )


def _replica(state: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        directory_id=state.replica_directory_id,
        log_end_offset=state.log_end_offset,
        last_fetch_timestamp_ms=state.last_fetch_timestamp,
        last_caught_up_timestamp_ms=state.last_caught_up_timestamp,
    )
