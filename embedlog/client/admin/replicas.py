"""Admin calls about leaders of partitions, and about the brokers and directories of replicas.

The first use of a call imports its requests.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client import arguments
from embedlog.client.admin.part import AdminPart, in_turn
from embedlog.client.admin.results import AdminValue, ItemResults
from embedlog.common import TopicPartition, item
from embedlog.errors import KafkaError, error_for
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Final, TypeAlias, TypeVar

    from wire.schemas.describe_log_dirs import DescribeLogDirsResult

    K = TypeVar("K")
    V = TypeVar("V")

    Partitions = Iterable[TopicPartition | tuple[str, int]]
    Replica: TypeAlias = "TopicPartitionReplica | tuple[str, int, int]"

_SILENCE = "the response does not mention it"
_REPLICA_SIZE = 3


class ElectionType:
    """The kind of leader election."""

    PREFERRED = 0
    """Elect the first of the partition's replicas, if it is in sync."""
    UNCLEAN = 1
    """If a partition has no leader, elect any running replica. Records that it lacks are lost."""


class TopicPartitionReplica(tuple[str, int, int]):
    """A partition's replica on one broker; it unpacks as `topic, partition, node_id`."""

    __slots__ = ()

    def __new__(cls, topic: str, partition: int, node_id: int) -> TopicPartitionReplica:
        return tuple.__new__(cls, (topic, partition, node_id))

    def __getnewargs__(self) -> tuple[str, int, int]:
        return self[0], self[1], self[2]

    topic: Final[str] = item(0, "The topic's name.")
    partition: Final[int] = item(1, "The partition's number, from 0.")
    node_id: Final[int] = item(2, "The broker's node id.")

    def __str__(self) -> str:
        return f"{self[0]}-{self[1]} on {self[2]}"

    def __repr__(self) -> str:
        return f"TopicPartitionReplica({self[0]!r}, {self[1]}, {self[2]})"


class PartitionReassignment(AdminValue):
    """A partition that is being moved to other brokers; the fields have node ids.

    `replicas` includes the replicas that are being added or removed.
    """

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class ReplicaLogDirectories(AdminValue):
    """The directory of a replica, and the directory that it is being moved to, if any.

    `path` is None if the broker has no such replica. `offset_lag` is the replica's lag behind the
    high watermark. `future_offset_lag` is the lag of the new copy behind the replica; -1 without a
    move.
    """

    path: str | None = None
    offset_lag: int = -1
    future_path: str | None = None
    future_offset_lag: int = -1


class ReplicaAdmin(AdminPart):
    """Elects leaders, moves replicas between brokers and between the directories of a broker.

    A call raises KafkaError if the controller refuses its whole request.
    """

    @in_turn
    def elect_leaders(
        self,
        election_type: int,
        partitions: Partitions | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> ItemResults[TopicPartition, None]:
        """Elect leaders of partitions, by default of all partitions.

        `election_type` is an `ElectionType`. A partition that already has the right
        leader gets the error ElectionNotNeeded; if `partitions` is None, the results leave it out.
        """
        from wire.schemas.elect_leaders import ElectLeadersRequest, TopicPartitions

        call = "elect_leaders"
        arguments.number(election_type, call, "election_type", "an ElectionType", lowest=0)
        wanted = None if partitions is None else arguments.partitions(partitions, call)
        request = ElectLeadersRequest(
            election_type=election_type,
            timeout_ms=self._calls.timeout(timeout_ms),
            topic_partitions=None,
        )
        if wanted is not None:
            request.topic_partitions = [
                TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in _by_topic(wanted).items()
            ]
        response = self._calls.to_controller(request, timeout_ms)
        if response.error_code:
            raise error_for(response.error_code)
        results: ItemResults[TopicPartition, None] = ItemResults()
        for topic in response.replica_election_results:
            for each in topic.partition_result:
                key = TopicPartition(topic.topic, each.partition_id)
                results.put(key, None, each.error_code, each.error_message)
        _fail_silent(results, wanted or ())
        return results

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

        The value None cancels a running move. The call returns when the moves have begun;
        `list_partition_reassignments` lists the moves that have not ended. Without
        `allow_replication_factor_change`, the number of replicas must not change (KIP-860).
        """
        from wire.schemas.alter_partition_reassignments import (
            AlterPartitionReassignmentsRequest,
            ReassignablePartition,
            ReassignableTopic,
        )

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
        topics: dict[str, ReassignableTopic] = {}
        for key, replicas in wanted.items():
            topic = topics.setdefault(key.topic, ReassignableTopic(name=key.topic))
            topic.partitions.append(
                ReassignablePartition(partition_index=key.partition, replicas=replicas)
            )
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self._calls.timeout(timeout_ms),
            allow_replication_factor_change=allow_replication_factor_change,
            topics=list(topics.values()),
        )
        response = self._calls.to_controller(request, timeout_ms)
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        results: ItemResults[TopicPartition, None] = ItemResults()
        for answer in response.responses:
            for each in answer.partitions:
                key = TopicPartition(answer.name, each.partition_index)
                results.put(key, None, each.error_code, each.error_message)
        _fail_silent(results, wanted)
        return results

    @in_turn
    def list_partition_reassignments(
        self, partitions: Partitions | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Return the running moves of partitions, by default of all partitions."""
        from wire.schemas.list_partition_reassignments import (
            ListPartitionReassignmentsRequest,
            ListPartitionReassignmentsTopics,
        )

        call = "list_partition_reassignments"
        wanted = None if partitions is None else arguments.partitions(partitions, call)
        request = ListPartitionReassignmentsRequest(
            timeout_ms=self._calls.timeout(timeout_ms), topics=None
        )
        if wanted is not None:
            request.topics = [
                ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in _by_topic(wanted).items()
            ]
        response = self._calls.to_controller(request, timeout_ms)
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, each.partition_index): PartitionReassignment(
                tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
            )
            for topic in response.topics
            for each in topic.partitions
        }

    @in_turn
    def alter_replica_log_dirs(
        self, paths: Mapping[Replica, str], *, timeout_ms: int | None = None
    ) -> ItemResults[TopicPartitionReplica, None]:
        """Begin to move replicas to other directories of their brokers, {replica: path}.

        If a broker does not have the replica yet, the result is the error ReplicaNotAvailable. The
        broker nevertheless remembers the path and will create the replica there.
        """
        from wire.schemas.alter_replica_log_dirs import (
            AlterReplicaLogDir,
            AlterReplicaLogDirsRequest,
            AlterReplicaLogDirTopic,
        )

        call = "alter_replica_log_dirs"
        given = arguments.mapping(paths, call, "paths", "TopicPartitionReplica: path")
        wanted = {
            _replica(key, call, "paths: key"): arguments.name(
                path, call, f"paths: {key}", what="a directory's path"
            )
            for key, path in given.items()
        }
        requests: dict[int, AlterReplicaLogDirsRequest] = {}
        for (topic, partition, node_id), path in wanted.items():
            request = requests.setdefault(node_id, AlterReplicaLogDirsRequest())
            directory = next((each for each in request.dirs if each.path == path), None)
            if directory is None:
                directory = AlterReplicaLogDir(path=path)
                request.dirs.append(directory)
            named = next((each for each in directory.topics if each.name == topic), None)
            if named is None:
                named = AlterReplicaLogDirTopic(name=topic)
                directory.topics.append(named)
            named.partitions.append(partition)
        results: ItemResults[TopicPartitionReplica, None] = ItemResults()
        for node_id, outcome in self._calls.to_nodes(requests, timeout_ms).items():
            if isinstance(outcome, KafkaError):
                _fail(results, wanted, node_id, outcome)
                continue
            for answer in outcome.results:
                for each in answer.partitions:
                    replica = TopicPartitionReplica(
                        answer.topic_name, each.partition_index, node_id
                    )
                    results.put(replica, None, each.error_code)
        _fail_silent(results, wanted)
        return results

    @in_turn
    def describe_replica_log_dirs(
        self, replicas: Iterable[Replica], *, timeout_ms: int | None = None
    ) -> ItemResults[TopicPartitionReplica, ReplicaLogDirectories]:
        """Return the directory of each replica, and the directory that it is being moved to."""
        from wire.schemas.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

        call = "describe_replica_log_dirs"
        items = arguments.several(replicas, call, "replicas", "TopicPartitionReplica")
        wanted = [
            _replica(each, call, f"replicas[{position}]") for position, each in enumerate(items)
        ]
        by_node: dict[int, list[TopicPartition]] = {}
        for topic, partition, node_id in dict.fromkeys(wanted):
            by_node.setdefault(node_id, []).append(TopicPartition(topic, partition))
        requests = {
            node_id: DescribeLogDirsRequest(
                topics=[
                    DescribableLogDirTopic(topic=topic, partitions=numbers)
                    for topic, numbers in _by_topic(keys).items()
                ]
            )
            for node_id, keys in by_node.items()
        }
        results: ItemResults[TopicPartitionReplica, ReplicaLogDirectories] = ItemResults()
        for node_id, outcome in self._calls.to_nodes(requests, timeout_ms).items():
            if isinstance(outcome, KafkaError):
                _fail(results, wanted, node_id, outcome)
                continue
            found = _directories(outcome.results)
            for key in by_node[node_id]:
                place = found.get(key) or ReplicaLogDirectories()
                results.put(TopicPartitionReplica(*key, node_id), place, outcome.error_code)
        return results


def _replica(value: object, call: str, argument: str) -> TopicPartitionReplica:
    if not isinstance(value, tuple) or len(value) != _REPLICA_SIZE:
        raise arguments.WrongType(
            f"{call}({argument}={arguments.shown(value)}): expected a TopicPartitionReplica or "
            f"(topic, partition, node id), got {type(value).__name__}"
        )
    topic, partition, node_id = value
    key = arguments.partition((topic, partition), call, argument)
    arguments.number(node_id, call, f"{argument}: node_id", "a node id", lowest=0)
    return TopicPartitionReplica(key.topic, key.partition, node_id)


def _directories(
    described: Iterable[DescribeLogDirsResult],
) -> dict[TopicPartition, ReplicaLogDirectories]:
    found: dict[TopicPartition, ReplicaLogDirectories] = {}
    for directory in described:
        # A failed directory (KAFKA_STORAGE_ERROR) has no replicas, which is no error of the call.
        if directory.error_code not in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR):
            raise error_for(directory.error_code, directory.log_dir)
        for topic in directory.topics:
            for each in topic.partitions:
                key = TopicPartition(topic.name, each.partition_index)
                place = found.get(key, ReplicaLogDirectories())
                path, lag = directory.log_dir, each.offset_lag
                if each.is_future_key:
                    found[key] = place.replace(future_path=path, future_offset_lag=lag)
                else:
                    found[key] = place.replace(path=path, offset_lag=lag)
    return found


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return topics


def _fail(
    results: ItemResults[TopicPartitionReplica, V],
    replicas: Iterable[TopicPartitionReplica],
    node_id: int,
    error: KafkaError,
) -> None:
    results.failures.update((each, error) for each in replicas if each.node_id == node_id)


def _fail_silent(results: ItemResults[K, None], asked: Iterable[K]) -> None:
    """Store UnknownServerError for each item of `asked` that the response does not mention."""
    for each in asked:
        if each not in results.values and each not in results.failures:
            results.failures[each] = errors.UnknownServerError(_SILENCE)
