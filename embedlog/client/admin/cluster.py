"""Admin calls about the cluster and its brokers."""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.admin.part import AdminPart, in_turn
from embedlog.client.admin.results import (
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

    from embedlog.client.admin.quorum import QuorumInfo
    from wire.schemas.describe_log_dirs import DescribeLogDirsResult


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
        from embedlog.client.admin.quorum import quorum_info
        from wire.schemas.describe_quorum import (
            DescribeQuorumRequest,
            RequestPartitionData,
            RequestTopicData,
        )

        partitions = [RequestPartitionData(partition_index=0)]
        asked = RequestTopicData(topic_name="__cluster_metadata", partitions=partitions)
        request = DescribeQuorumRequest(topics=[asked])
        return quorum_info(self._calls.to_controller(request, timeout_ms))

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
