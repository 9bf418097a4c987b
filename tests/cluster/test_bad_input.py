"""Requests that three brokers refuse: Kafka's error codes, and nothing changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog.cluster.cluster import Cluster
from tests.cluster.conftest import until
from wire.error_codes import ErrorCode as E
from wire.records import build_batch
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
    CreateTopicsRequest,
)
from wire.schemas.elect_leaders import ElectLeadersRequest, TopicPartitions
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from wire.schemas.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.schemas.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.schemas.unregister_broker import UnregisterBrokerRequest

TOPIC = "events"
EPOCH = 1
"""The leader epoch of the topic's partition after its one move."""
NO_EPOCH = -1


@pytest.fixture
def moved(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster with a topic whose only partition has moved to broker 2 and holds a record."""
    transport = cluster.connect()
    transport.send(1, created([1, 2, 3], name=TOPIC), version=7).result()
    partition = cluster.partition(TOPIC, 0)
    partition.move_to(2)
    assert (partition.leader, partition.leader_epoch) == (2, EPOCH)
    with cluster.producer(acks="all") as producer:
        producer.send(TOPIC, b"a").result()
    until(cluster, lambda: set(partition.high_watermarks.values()) == {1})
    yield cluster


def state_of(cluster: Cluster) -> Any:
    """Return everything that a refused request must leave unchanged."""
    partition = cluster.partition(TOPIC, 0)
    controller = cluster.controller.core
    assert controller is not None
    return controller.image.end_offset, sorted(cluster.topics), partition.end_offsets


def created(*assignment: list[int], factor: int = -1, name: str = "new") -> CreateTopicsRequest:
    """Create a topic, with or without a manual assignment."""
    topic = CreatableTopic(
        name=name,
        num_partitions=-1 if assignment else 1,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
            for index, ids in enumerate(assignment)
        ],
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000)


def grown(*assignment: list[int], count: int = 2) -> CreatePartitionsRequest:
    """Add partitions."""
    made = [CreatePartitionsAssignment(broker_ids=ids) for ids in assignment]
    topic = CreatePartitionsTopic(name=TOPIC, count=count, assignments=made)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=1000)


def reassigned(
    *replicas: int, topic: str = TOPIC, index: int = 0
) -> AlterPartitionReassignmentsRequest:
    """Assign other replicas."""
    partition = ReassignablePartition(partition_index=index, replicas=list(replicas))
    return AlterPartitionReassignmentsRequest(
        timeout_ms=1000, topics=[ReassignableTopic(name=topic, partitions=[partition])]
    )


def elected(topic: str, index: int, kind: int = 0) -> ElectLeadersRequest:
    """Elect another leader."""
    partitions = [TopicPartitions(topic=topic, partitions=[index])]
    return ElectLeadersRequest(election_type=kind, topic_partitions=partitions, timeout_ms=1000)


def produced() -> ProduceRequest:
    """Produce one record with acks=all."""
    data = PartitionProduceData(index=0, records=build_batch([b"b"], timestamps=0))
    topics = [TopicProduceData(name=TOPIC, partition_data=[data])]
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)


def fetched(epoch: int = NO_EPOCH, replica: tuple[int, int] | None = None) -> FetchRequest:
    """Fetch from offset 0."""
    partition = FetchPartition(
        partition=0, current_leader_epoch=epoch, fetch_offset=0, partition_max_bytes=1000
    )
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=TOPIC, partitions=[partition])]
    )
    if replica is not None:
        request.replica_id = replica[0]
        request.replica_state = ReplicaState(replica_id=replica[0], replica_epoch=replica[1])
    return request


def listed(epoch: int = NO_EPOCH) -> ListOffsetsRequest:
    """Ask for the latest offset."""
    partition = ListOffsetsPartition(partition_index=0, current_leader_epoch=epoch, timestamp=-1)
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=[partition])]
    )


def ended(epoch: int = NO_EPOCH) -> OffsetForLeaderEpochRequest:
    """Ask for the end offset of epoch 0."""
    partition = OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=0)
    return OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=[partition])]
    )


LEADER, FOLLOWER = "leader", "follower"
BAD = [
    ("more replicas than brokers", LEADER, created(factor=4), 7, E.INVALID_REPLICATION_FACTOR),
    ("no replica", LEADER, created(factor=0), 7, E.INVALID_REPLICATION_FACTOR),
    ("replicas on an unknown broker", LEADER, created([1, 9]), 7, E.INVALID_REPLICA_ASSIGNMENT),
    ("a replica twice", LEADER, created([1, 1]), 7, E.INVALID_REPLICA_ASSIGNMENT),
    ("partitions of several sizes", LEADER, created([1, 2], [3]), 7, E.INVALID_REPLICA_ASSIGNMENT),
    ("an empty assignment", LEADER, created([]), 7, E.INVALID_REPLICA_ASSIGNMENT),
    (
        "a new partition on an unknown broker",
        LEADER,
        grown([1, 2, 9]),
        3,
        E.INVALID_REPLICA_ASSIGNMENT,
    ),
    (
        "a new partition twice on one broker",
        LEADER,
        grown([1, 1, 2]),
        3,
        E.INVALID_REPLICA_ASSIGNMENT,
    ),
    ("a new partition of another size", LEADER, grown([1, 2]), 3, E.INVALID_REPLICA_ASSIGNMENT),
    (
        "more assignments than partitions",
        LEADER,
        grown([1, 2, 3], [1, 2, 3]),
        3,
        E.INVALID_REPLICA_ASSIGNMENT,
    ),
    ("fewer partitions", LEADER, grown(count=1), 3, E.INVALID_PARTITIONS),
    ("a move to an unknown broker", LEADER, reassigned(1, 2, 9), 0, E.INVALID_REPLICA_ASSIGNMENT),
    ("a move twice to one broker", LEADER, reassigned(1, 1), 0, E.INVALID_REPLICA_ASSIGNMENT),
    ("a move to nowhere", LEADER, reassigned(), 0, E.INVALID_REPLICA_ASSIGNMENT),
    (
        "a move of an unknown topic",
        LEADER,
        reassigned(1, topic="other"),
        0,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    (
        "a move of an unknown partition",
        LEADER,
        reassigned(1, index=7),
        0,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    (
        "an election of an unknown partition",
        LEADER,
        elected(TOPIC, 7),
        2,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    (
        "an election of an unknown topic",
        LEADER,
        elected("other", 0),
        2,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    ("an election that is not needed", LEADER, elected(TOPIC, 0, kind=1), 2, E.ELECTION_NOT_NEEDED),
    (
        "an unknown broker unregistered",
        LEADER,
        UnregisterBrokerRequest(broker_id=9),
        0,
        E.BROKER_ID_NOT_REGISTERED,
    ),
    ("records for a follower", FOLLOWER, produced(), 9, E.NOT_LEADER_OR_FOLLOWER),
    ("an older consumer at a follower", FOLLOWER, fetched(), 10, E.NOT_LEADER_OR_FOLLOWER),
    ("the latest offset of a follower", FOLLOWER, listed(), 6, E.NOT_LEADER_OR_FOLLOWER),
    ("an epoch's end of a follower", FOLLOWER, ended(), 3, E.NOT_LEADER_OR_FOLLOWER),
    ("a fetch of an earlier epoch", LEADER, fetched(EPOCH - 1), 12, E.FENCED_LEADER_EPOCH),
    ("a fetch of a later epoch", LEADER, fetched(EPOCH + 9), 12, E.UNKNOWN_LEADER_EPOCH),
    ("offsets of an earlier epoch", LEADER, listed(EPOCH - 1), 6, E.FENCED_LEADER_EPOCH),
    ("offsets of a later epoch", LEADER, listed(EPOCH + 9), 6, E.UNKNOWN_LEADER_EPOCH),
    ("an epoch's end of an earlier epoch", LEADER, ended(EPOCH - 1), 3, E.FENCED_LEADER_EPOCH),
    ("an epoch's end of a later epoch", LEADER, ended(EPOCH + 9), 3, E.UNKNOWN_LEADER_EPOCH),
    ("a fetch of an earlier life", LEADER, fetched(replica=(1, 0)), 12, E.NOT_LEADER_OR_FOLLOWER),
    (
        "a fetch of a replica that is none",
        LEADER,
        fetched(replica=(9, 0)),
        12,
        E.NOT_LEADER_OR_FOLLOWER,
    ),
]


@pytest.mark.parametrize(
    ("where", "request_", "version", "code"), [each[1:] for each in BAD], ids=[b[0] for b in BAD]
)
def test_a_refused_request_changes_nothing(
    moved: Cluster, where: str, request_: Any, version: int, code: int
) -> None:
    leader = moved.partition(TOPIC, 0).leader
    node = leader if where == LEADER else next(each for each in (1, 2, 3) if each != leader)
    before = state_of(moved)
    answer = moved.broker(node).connect().send(node, request_, version=version).result()
    assert error_in(answer) == code, answer
    moved.runtime.scheduler.run_for(1_000)  # type: ignore[attr-defined]
    assert state_of(moved) == before


def error_in(message: Any) -> int:
    """Return the first error code in an answer, 0 if there is none."""
    for field in type(message).__fields__:
        value = getattr(message, field.name)
        if field.name.endswith("error_code") and value:
            return int(value)
        for each in value if isinstance(value, list) else ():
            if code := error_in(each):
                return code
    return 0
