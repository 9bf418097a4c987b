"""DescribeQuorum: the controllers and their replicas of the metadata log (KRaft)."""

from __future__ import annotations

from embedlog import errors
from embedlog.client.admin.results import AdminValue
from embedlog.errors import error_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.schemas.describe_quorum import DescribeQuorumResponse, ReplicaState


class QuorumReplica(AdminValue):
    """A replica of the metadata log: a voting controller or an observer.

    The times (ms since 1970) are of its last fetch and of its last fetch that reached the end of
    the log; -1 if the leader does not know them. Brokers before 3.9 set `directory_id` to 16 zero
    bytes.
    """

    replica_id: int
    directory_id: bytes
    log_end_offset: int
    last_fetch_timestamp_ms: int
    last_caught_up_timestamp_ms: int


class QuorumInfo(AdminValue):
    """The controllers (voters) and the observers of the metadata log.

    `nodes` has the addresses of controllers, (host, port) by node id and listener name. Brokers
    before 3.9 leave it empty.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[QuorumReplica]
    observers: list[QuorumReplica]
    nodes: dict[int, dict[str, tuple[str, int]]]


def quorum_info(response: DescribeQuorumResponse) -> QuorumInfo:
    """Return the quorum from a response about the one partition of the metadata log.

    Raises:
        KafkaError: the controller refused the request.
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
