"""The admin client's calls about the cluster and its brokers."""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.admin.part import AdminPart, in_turn
from embedlog.client.admin.results import (
    ClusterDescription,
    ItemResults,
    LogDirectory,
    ReplicaInLogDirectory,
)
from embedlog.client.metadata import Node
from embedlog.common import TopicPartition
from embedlog.errors import KafkaError, error_for
from embedlog.transport import ANY_NODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from wire.schemas.describe_log_dirs import DescribeLogDirsResult


class ClusterAdmin(AdminPart):
    """Describes the cluster and its brokers' directories."""

    @in_turn
    def describe_cluster(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        """Its id, its controller, its brokers."""
        from wire.schemas.describe_cluster import DescribeClusterRequest

        response = self._calls.call(ANY_NODE, DescribeClusterRequest(), timeout_ms)
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        nodes = {
            each.broker_id: Node(each.broker_id, each.host, each.port, each.rack)
            for each in response.brokers
        }
        return ClusterDescription(response.cluster_id, response.controller_id, nodes)

    @in_turn
    def describe_log_dirs(
        self, node_ids: Iterable[int] | None = None, *, timeout_ms: int | None = None
    ) -> ItemResults[int, dict[str, LogDirectory]]:
        """The data directories of brokers (all of them by default), by node id and path."""
        from wire.schemas.describe_log_dirs import DescribeLogDirsRequest

        if node_ids is None:
            chosen = self._calls.node_ids(timeout_ms)
        else:
            chosen = arguments.names(
                node_ids, "describe_log_dirs", "node_ids", what="node ids", kinds=(int,)
            )
        results: ItemResults[int, dict[str, LogDirectory]] = ItemResults()
        for node_id in chosen:
            try:
                request = DescribeLogDirsRequest(topics=None)
                response = self._calls.call(node_id, request, timeout_ms)
            except KafkaError as error:
                results.failures[node_id] = error
                continue
            directories = {each.log_dir: _log_directory(each) for each in response.results}
            results.put(node_id, directories, response.error_code)
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
        described.log_dir, error, replicas, described.total_bytes, described.usable_bytes
    )
