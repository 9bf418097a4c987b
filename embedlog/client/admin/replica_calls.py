"""The implementation of `replicas.py`: elections, reassignments and log directories of replicas."""

from __future__ import annotations

from _operator import itemgetter

from embedlog import errors
from embedlog.client.admin.results import ItemResults
from embedlog.client.admin.value import AdminValue
from embedlog.common import TopicPartition
from embedlog.errors import KafkaError, error_for
from wire.error_codes import ErrorCode
from wire.schemas.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.schemas.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from wire.schemas.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from wire.schemas.elect_leaders import ElectLeadersRequest, TopicPartitions
from wire.schemas.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeVar

    from embedlog.client.admin.calls import AdminCalls
    from wire.schemas.describe_log_dirs import DescribeLogDirsResult

    K = TypeVar("K")
    V = TypeVar("V")

_SILENCE = "the response does not mention it"


REPLICA_SIZE = 3


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
        node_id = property(itemgetter(2), doc="The broker's node id.")

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


def elect_leaders(
    calls: AdminCalls,
    election_type: int,
    partitions: list[TopicPartition] | None,
    timeout_ms: int | None,
) -> ItemResults[TopicPartition, None]:
    """Elect leaders. Raises KafkaError if the controller refuses the whole request."""
    request = ElectLeadersRequest(
        election_type=election_type, timeout_ms=calls.timeout(timeout_ms), topic_partitions=None
    )
    if partitions is not None:
        request.topic_partitions = [
            TopicPartitions(topic=topic, partitions=numbers)
            for topic, numbers in _by_topic(partitions).items()
        ]
    response = calls.to_controller(request, timeout_ms)
    if response.error_code:
        raise error_for(response.error_code)
    results: ItemResults[TopicPartition, None] = ItemResults()
    for topic in response.replica_election_results:
        for each in topic.partition_result:
            key = TopicPartition(topic.topic, each.partition_id)
            results.put(key, None, each.error_code, each.error_message)
    _fail_silent(results, partitions or ())
    return results


def alter_partition_reassignments(
    calls: AdminCalls,
    wanted: Mapping[TopicPartition, list[int] | None],
    allow_replication_factor_change: bool,
    timeout_ms: int | None,
) -> ItemResults[TopicPartition, None]:
    """Begin or cancel moves. Raises KafkaError if the controller refuses the whole request."""
    topics: dict[str, ReassignableTopic] = {}
    for key, replicas in wanted.items():
        topic = topics.setdefault(key.topic, ReassignableTopic(name=key.topic))
        topic.partitions.append(
            ReassignablePartition(partition_index=key.partition, replicas=replicas)
        )
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=calls.timeout(timeout_ms),
        allow_replication_factor_change=allow_replication_factor_change,
        topics=list(topics.values()),
    )
    response = calls.to_controller(request, timeout_ms)
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    results: ItemResults[TopicPartition, None] = ItemResults()
    for answer in response.responses:
        for each in answer.partitions:
            key = TopicPartition(answer.name, each.partition_index)
            results.put(key, None, each.error_code, each.error_message)
    _fail_silent(results, wanted)
    return results


def list_partition_reassignments(
    calls: AdminCalls, partitions: list[TopicPartition] | None, timeout_ms: int | None
) -> dict[TopicPartition, PartitionReassignment]:
    """Return the running moves. Raises KafkaError if the controller refuses the request."""
    request = ListPartitionReassignmentsRequest(timeout_ms=calls.timeout(timeout_ms), topics=None)
    if partitions is not None:
        request.topics = [
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
            for topic, numbers in _by_topic(partitions).items()
        ]
    response = calls.to_controller(request, timeout_ms)
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    return {
        TopicPartition(topic.name, each.partition_index): PartitionReassignment(
            tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
        )
        for topic in response.topics
        for each in topic.partitions
    }


def alter_replica_log_dirs(
    calls: AdminCalls, paths: Mapping[TopicPartitionReplica, str], timeout_ms: int | None
) -> ItemResults[TopicPartitionReplica, None]:
    """Send each broker one request, for the replicas on that broker."""
    requests: dict[int, AlterReplicaLogDirsRequest] = {}
    for (topic, partition, node_id), path in paths.items():
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
    for node_id, outcome in calls.to_nodes(requests, timeout_ms).items():
        if isinstance(outcome, KafkaError):
            _fail(results, paths, node_id, outcome)
            continue
        for answer in outcome.results:
            for each in answer.partitions:
                replica = TopicPartitionReplica(answer.topic_name, each.partition_index, node_id)
                results.put(replica, None, each.error_code)
    _fail_silent(results, paths)
    return results


def describe_replica_log_dirs(
    calls: AdminCalls, replicas: list[TopicPartitionReplica], timeout_ms: int | None
) -> ItemResults[TopicPartitionReplica, ReplicaLogDirectories]:
    """Ask each broker about its own replicas. A failed directory reports no replicas."""
    by_node: dict[int, list[TopicPartition]] = {}
    for topic, partition, node_id in dict.fromkeys(replicas):
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
    for node_id, outcome in calls.to_nodes(requests, timeout_ms).items():
        if isinstance(outcome, KafkaError):
            _fail(results, replicas, node_id, outcome)
            continue
        found = _directories(outcome.results)
        for key in by_node[node_id]:
            place = found.get(key) or ReplicaLogDirectories()
            results.put(TopicPartitionReplica(*key, node_id), place, outcome.error_code)
    return results


def _directories(
    described: Iterable[DescribeLogDirsResult],
) -> dict[TopicPartition, ReplicaLogDirectories]:
    found: dict[TopicPartition, ReplicaLogDirectories] = {}
    for directory in described:
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
    """Store UnknownServerError for each of `asked` that the response does not mention."""
    for each in asked:
        if each not in results.values and each not in results.failures:
            results.failures[each] = errors.UnknownServerError(_SILENCE)
