"""Admin calls about the cluster and its brokers."""

from __future__ import annotations

from embedlog import errors
from embedlog.client import arguments
from embedlog.client.admin.part import AdminPart, in_turn
from embedlog.client.admin.results import (
    AdminValue,
    ClusterDescription,
    ItemResults,
    LogDirectory,
    ReplicaInLogDirectory,
)
from embedlog.client.cluster_nodes import Node
from embedlog.common import TopicPartition
from embedlog.errors import KafkaError, error_for
from embedlog.transport import ANY_NODE
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from wire.schemas.describe_log_dirs import DescribeLogDirsResult
    from wire.schemas.describe_quorum import ReplicaState


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


class ClusterAdmin(AdminPart):
    """Describes the cluster, its controllers and log directories; unregisters brokers."""

    @in_turn
    def describe_cluster(
        self, *, include_fenced_brokers: bool = False, timeout_ms: int | None = None
    ) -> ClusterDescription:
        """Return the cluster's id, controller and brokers.

        `include_fenced_brokers` adds the registered brokers that do not run (`Node.is_fenced`).
        Brokers before 4.0 cannot list them and answer UnsupportedVersion (KIP-1073).
        """
        from wire.schemas.describe_cluster import DescribeClusterRequest

        request = DescribeClusterRequest(include_fenced_brokers=include_fenced_brokers)
        response = self._calls.call(ANY_NODE, request, timeout_ms)
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        nodes = {
            each.broker_id: Node(
                each.broker_id, each.host, each.port, each.rack, is_fenced=each.is_fenced
            )
            for each in response.brokers
        }
        return ClusterDescription(response.cluster_id, response.controller_id, nodes)

    @in_turn
    def describe_quorum(self, *, timeout_ms: int | None = None) -> QuorumInfo:
        """Return the controllers, their leader, and how far each has read the metadata log."""
        from wire.schemas.describe_quorum import (
            DescribeQuorumRequest,
            RequestPartitionData,
            RequestTopicData,
        )

        asked = [RequestPartitionData(partition_index=0)]
        topic = RequestTopicData(topic_name="__cluster_metadata", partitions=asked)
        request = DescribeQuorumRequest(topics=[topic])
        response = self._calls.to_controller(request, timeout_ms)
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
            voters=[_quorum_replica(each) for each in found.current_voters],
            observers=[_quorum_replica(each) for each in found.observers],
            nodes={
                node.node_id: {each.name: (each.host, each.port) for each in node.listeners}
                for node in response.nodes
            },
        )

    @in_turn
    def unregister_broker(self, node_id: int, *, timeout_ms: int | None = None) -> None:
        """Unregister a broker that is gone for good. A running broker registers again at once.

        Raises:
            BrokerIdNotRegistered: no such broker is registered.
        """
        from wire.schemas.unregister_broker import UnregisterBrokerRequest

        arguments.number(node_id, "unregister_broker", "node_id", "a node id", lowest=0)
        deadline = self._calls.deadline(timeout_ms)
        request = UnregisterBrokerRequest(broker_id=node_id)
        while True:
            response = self._calls.to_controller(request, self._calls.left_ms(deadline))
            is_late = response.error_code == ErrorCode.REQUEST_TIMED_OUT
            if not is_late or not self._calls.left_ms(deadline):
                break
            self._calls.sleep(deadline)
        if response.error_code:
            raise error_for(response.error_code, response.error_message)

    @in_turn
    def describe_log_dirs(
        self, node_ids: Iterable[int] | None = None, *, timeout_ms: int | None = None
    ) -> ItemResults[int, dict[str, LogDirectory]]:
        """Return the data directories of brokers (by default of all), by node id and path."""
        from wire.schemas.describe_log_dirs import DescribeLogDirsRequest

        if node_ids is None:
            chosen = self._calls.node_ids(timeout_ms)
        else:
            chosen = arguments.names(
                node_ids, "describe_log_dirs", "node_ids", what="node ids", kinds=(int,)
            )
        results: ItemResults[int, dict[str, LogDirectory]] = ItemResults()
        requests = {node_id: DescribeLogDirsRequest(topics=None) for node_id in chosen}
        for node_id, outcome in self._calls.to_nodes(requests, timeout_ms).items():
            if isinstance(outcome, KafkaError):
                results.failures[node_id] = outcome
                continue
            directories = {each.log_dir: _log_directory(each) for each in outcome.results}
            results.put(node_id, directories, outcome.error_code)
        return results


def _log_directory(described: DescribeLogDirsResult) -> LogDirectory:
    replicas = {
        TopicPartition(topic.name, each.partition_index): ReplicaInLogDirectory(
            each.partition_size, each.offset_lag, each.is_future_key
        )
        for topic in described.topics
        for each in topic.partitions
    }
    error = error_for(described.error_code) if described.error_code else None
    return LogDirectory(
        described.log_dir,
        error,
        replicas,
        described.total_bytes,
        described.usable_bytes,
        is_cordoned=described.is_cordoned,
    )


def _quorum_replica(state: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        directory_id=state.replica_directory_id,
        log_end_offset=state.log_end_offset,
        last_fetch_timestamp_ms=state.last_fetch_timestamp,
        last_caught_up_timestamp_ms=state.last_caught_up_timestamp,
    )
