"""Short forms of the requests about replicas, each right for its version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.golden.requests import Topic
from wire.schemas.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.schemas.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from wire.schemas.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.schemas.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from wire.schemas.elect_leaders import ElectLeadersRequest, TopicPartitions
from wire.schemas.fetch import ReplicaState
from wire.schemas.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic
from wire.schemas.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from wire.schemas.unregister_broker import UnregisterBrokerRequest

TIMEOUT_MS = 15_000
PREFERRED, UNCLEAN = 0, 1
BY_STATE = 15
"""The first version of Fetch in which a replica sends its id together with its epoch."""

Assignment = Sequence[int] | tuple[int, Sequence[int]]
"""The replicas of a partition, or its number and its replicas."""
Partition = tuple[Topic | str, int]


def name_of(topic: Topic | str) -> str:
    """Return the name of a topic that is given with or without its id."""
    return topic if isinstance(topic, str) else topic[0]


def assigned(
    name: str,
    *assignments: Assignment,
    configs: Mapping[str, str] | None = None,
    partitions: int = -1,
    replication: int = -1,
    **fields: Any,
) -> CreateTopicsRequest:
    """CreateTopics with a manual assignment."""
    rows = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
        for index, brokers in map(_numbered, range(len(assignments)), assignments)
    ]
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        assignments=rows,
        configs=[CreatableTopicConfig(name=k, value=v) for k, v in (configs or {}).items()],
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS, **fields)


def _numbered(index: int, assignment: Any) -> tuple[int, Sequence[int]]:
    return assignment if isinstance(assignment, tuple) else (index, assignment)


def grown(
    name: str, count: int, *assignments: Sequence[int], **fields: Any
) -> CreatePartitionsRequest:
    """CreatePartitions, with a manual assignment if replicas are given."""
    rows = [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assignments]
    topic = CreatePartitionsTopic(name=name, count=count, assignments=rows or None)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS, **fields)


def described(*names: str, **fields: Any) -> DescribeTopicPartitionsRequest:
    """DescribeTopicPartitions: everything about partitions."""
    topics = [TopicRequest(name=name) for name in names]
    return DescribeTopicPartitionsRequest(topics=topics, **fields)


def metadata(version: int, *topics: Topic | str) -> MetadataRequest:
    """Metadata of topics by name."""
    rows = [MetadataRequestTopic(name=name_of(topic)) for topic in topics]
    more = {"allow_auto_topic_creation": False} if version >= 4 else {}
    return MetadataRequest(topics=rows, **more)


def elect(kind: int, *partitions: Partition, everywhere: bool = False) -> ElectLeadersRequest:
    """ElectLeaders of some partitions, or of all."""
    rows = [
        TopicPartitions(topic=name, partitions=numbers)
        for name, numbers in by_topic(partitions).items()
    ]
    return ElectLeadersRequest(
        election_type=kind,
        topic_partitions=None if everywhere else rows,
        timeout_ms=TIMEOUT_MS,
    )


def by_topic(partitions: Sequence[Partition]) -> dict[str, list[int]]:
    """Return partition numbers by the names of their topics."""
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(name_of(topic), []).append(number)
    return found


def reassigned(
    *rows: tuple[Topic | str, int, Sequence[int] | None], **fields: Any
) -> AlterPartitionReassignmentsRequest:
    """AlterPartitionReassignments of (topic, partition, replicas); None cancels."""
    topics: dict[str, list[ReassignablePartition]] = {}
    for topic, number, replicas in rows:
        row = ReassignablePartition(
            partition_index=number, replicas=None if replicas is None else list(replicas)
        )
        topics.setdefault(name_of(topic), []).append(row)
    return AlterPartitionReassignmentsRequest(
        timeout_ms=TIMEOUT_MS,
        topics=[ReassignableTopic(name=name, partitions=found) for name, found in topics.items()],
        **fields,
    )


def reassignments(*partitions: Partition, all: bool = False) -> ListPartitionReassignmentsRequest:
    """ListPartitionReassignments of some partitions, or of all."""
    rows = [
        ListPartitionReassignmentsTopics(name=name, partition_indexes=numbers)
        for name, numbers in by_topic(partitions).items()
    ]
    return ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=None if all else rows)


def unregistered(broker_id: int) -> UnregisterBrokerRequest:
    """UnregisterBroker."""
    return UnregisterBrokerRequest(broker_id=broker_id)


def end_of_epoch(
    topic: Topic | str, *epochs: int, partition: int = 0, current: int = -1, **fields: Any
) -> OffsetForLeaderEpochRequest:
    """OffsetForLeaderEpoch of one partition, one entry for each epoch, by a consumer."""
    rows = [
        OffsetForLeaderPartition(
            partition=partition, leader_epoch=epoch, current_leader_epoch=current
        )
        for epoch in epochs
    ]
    topics = [OffsetForLeaderTopic(topic=name_of(topic), partitions=rows)]
    return OffsetForLeaderEpochRequest(topics=topics, **{"replica_id": -1, **fields})


def deleted_records(topic: Topic | str, offset: int, *, partition: int = 0) -> DeleteRecordsRequest:
    """DeleteRecords below an offset."""
    row = DeleteRecordsPartition(partition_index=partition, offset=offset)
    topics = [DeleteRecordsTopic(name=name_of(topic), partitions=[row])]
    return DeleteRecordsRequest(topics=topics, timeout_ms=5000)


def as_replica(version: int, node_id: int, epoch: int = -1) -> dict[str, Any]:
    """Return the fields of a Fetch that identify a replica."""
    if version < BY_STATE:
        return {"replica_id": node_id}
    return {"replica_state": ReplicaState(replica_id=node_id, replica_epoch=epoch)}
