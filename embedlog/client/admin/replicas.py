"""Admin calls about leaders of partitions, and about the brokers and directories of replicas.

This file has the public interface. The first call imports the implementation.
"""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.admin.part import AdminPart, in_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from embedlog.client.admin.replica_calls import (
        PartitionReassignment,
        ReplicaLogDirectories,
        TopicPartitionReplica,
    )
    from embedlog.client.admin.results import ItemResults
    from embedlog.common import TopicPartition

    Partitions = Iterable[TopicPartition | tuple[str, int]]
    Replica = TopicPartitionReplica | tuple[str, int, int]


class ReplicaAdmin(AdminPart):
    """Elects leaders, moves replicas between brokers and between the directories of a broker."""

    @in_turn
    def elect_leaders(
        self,
        election_type: int,
        partitions: Partitions | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> ItemResults[TopicPartition, None]:
        """Elect leaders of partitions, by default of all partitions.

        `election_type` is an `ElectionType`. If a partition already has the right leader, its error
        is ElectionNotNeeded. If `partitions` is None, the results leave out such partitions.
        """
        from embedlog.client.admin.replica_calls import elect_leaders

        call = "elect_leaders"
        arguments.number(election_type, call, "election_type", "an ElectionType", lowest=0)
        wanted = None if partitions is None else arguments.partitions(partitions, call)
        return elect_leaders(self._calls, election_type, wanted, timeout_ms)

    @in_turn
    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None]
        | Mapping[tuple[str, int], Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout_ms: int | None = None,
    ) -> ItemResults[TopicPartition, None]:
        """Begin to move partitions to brokers, {partition: node ids}, the preferred leader first.

        None instead of node ids cancels a running move. The call returns when the moves have begun;
        `list_partition_reassignments` lists the moves that have not ended. Without
        `allow_replication_factor_change`, the number of replicas must not change (KIP-860).
        """
        from embedlog.client.admin.replica_calls import alter_partition_reassignments

        call, argument = "alter_partition_reassignments", "reassignments"
        given = arguments.by_partition(reassignments, call, argument, "node ids, or None")
        wanted = {
            key: None
            if replicas is None
            else arguments.names(
                replicas, call, f"{argument}: {key}", what="node ids", kinds=(int,)
            )
            for key, replicas in given.items()
        }
        return alter_partition_reassignments(
            self._calls, wanted, allow_replication_factor_change, timeout_ms
        )

    @in_turn
    def list_partition_reassignments(
        self, partitions: Partitions | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Return the running moves of partitions, by default of all partitions."""
        from embedlog.client.admin.replica_calls import list_partition_reassignments

        call = "list_partition_reassignments"
        wanted = None if partitions is None else arguments.partitions(partitions, call)
        return list_partition_reassignments(self._calls, wanted, timeout_ms)

    @in_turn
    def alter_replica_log_dirs(
        self, paths: Mapping[Replica, str], *, timeout_ms: int | None = None
    ) -> ItemResults[TopicPartitionReplica, None]:
        """Begin to move replicas to other directories of their brokers, {replica: path}.

        If a broker does not have the replica yet, the result is the error ReplicaNotAvailable. The
        broker nevertheless remembers the path and will create the replica there.
        """
        from embedlog.client.admin.replica_calls import alter_replica_log_dirs

        call = "alter_replica_log_dirs"
        given = arguments.mapping(paths, call, "paths", "TopicPartitionReplica: path")
        wanted = {
            _replica(key, call, "paths: key"): arguments.name(
                path, call, f"paths: {key}", what="a directory's path"
            )
            for key, path in given.items()
        }
        return alter_replica_log_dirs(self._calls, wanted, timeout_ms)

    @in_turn
    def describe_replica_log_dirs(
        self, replicas: Iterable[Replica], *, timeout_ms: int | None = None
    ) -> ItemResults[TopicPartitionReplica, ReplicaLogDirectories]:
        """Return the directory of each replica, and the directory that it is being moved to."""
        from embedlog.client.admin.replica_calls import describe_replica_log_dirs

        call = "describe_replica_log_dirs"
        items = arguments.several(replicas, call, "replicas", "TopicPartitionReplica")
        wanted = [
            _replica(each, call, f"replicas[{position}]") for position, each in enumerate(items)
        ]
        return describe_replica_log_dirs(self._calls, wanted, timeout_ms)


def _replica(value: object, call: str, argument: str) -> TopicPartitionReplica:
    from embedlog.client.admin.replica_calls import REPLICA_SIZE, TopicPartitionReplica

    if not isinstance(value, tuple) or len(value) != REPLICA_SIZE:
        raise arguments.WrongType(
            f"{call}({argument}={arguments.shown(value)}): expected a TopicPartitionReplica or "
            f"(topic, partition, node id), got {type(value).__name__}"
        )
    topic, partition, node_id = value
    key = arguments.partition((topic, partition), call, argument)
    arguments.number(node_id, call, f"{argument}: node_id", "a node id", lowest=0)
    return TopicPartitionReplica(key.topic, key.partition, node_id)
