"""Calls to several brokers: their requests, answers and retries."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import Admin, ElectionType, TopicPartition, TopicPartitionReplica, errors
from embedlog.errors import error_for
from tests.client.admin.test_coordinators import NEWEST, Nodes
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.schemas import (
    alter_partition_reassignments,
    alter_replica_log_dirs,
    describe_cluster,
    describe_log_dirs,
    describe_quorum,
    elect_leaders,
    list_partition_reassignments,
    metadata,
    unregister_broker,
)

SERVED = {
    **NEWEST,
    ApiKey.ELECT_LEADERS: (0, 2),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (0, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (0, 5),
    ApiKey.DESCRIBE_CLUSTER: (0, 2),
    ApiKey.DESCRIBE_QUORUM: (0, 2),
    ApiKey.UNREGISTER_BROKER: (0, 0),
}
HERE, THERE = TopicPartition("t", 0), TopicPartition("u", 3)


def directories(path: str, lag: int = 0, *, is_future: bool = False) -> Any:
    """A directory with partition 0 of "t"."""
    partition = describe_log_dirs.DescribeLogDirsPartition(
        partition_index=0, offset_lag=lag, is_future_key=is_future
    )
    topic = describe_log_dirs.DescribeLogDirsTopic(name="t", partitions=[partition])
    return describe_log_dirs.DescribeLogDirsResult(log_dir=path, topics=[topic], is_cordoned=True)


@pytest.fixture
def nodes() -> Nodes:
    return Nodes(SERVED)


def elected(code: int) -> Any:
    result = elect_leaders.PartitionResult(partition_id=0, error_code=code, error_message="words")
    topic = elect_leaders.ReplicaElectionResult(topic="t", partition_result=[result])
    return elect_leaders.ElectLeadersResponse(replica_election_results=[topic])


def test_a_partition_that_no_answer_names_has_an_error(nodes: Nodes) -> None:
    nodes.script(elect_leaders.ElectLeadersRequest, elected(84))
    with Admin(nodes) as admin:
        results = admin.elect_leaders(ElectionType.UNCLEAN, [HERE, ("t", 2), THERE])
    assert isinstance(results.errors[HERE], errors.ElectionNotNeeded)
    assert str(results.errors[HERE]) == "words"
    assert isinstance(results.errors[THERE], errors.UnknownServerError)
    ((_, request),) = nodes.of_kind(elect_leaders.ElectLeadersRequest)
    assert request.election_type == 1
    assert [(each.topic, each.partitions) for each in request.topic_partitions] == [
        ("t", [0, 2]),
        ("u", [3]),
    ]


def test_a_broker_that_is_no_controller_sends_to_the_one_that_is(nodes: Nodes) -> None:
    nodes.script(
        elect_leaders.ElectLeadersRequest,
        elect_leaders.ElectLeadersResponse(error_code=ErrorCode.NOT_CONTROLLER),
        elected(0),
    )
    with Admin(nodes) as admin:
        assert admin.elect_leaders(ElectionType.PREFERRED).check() == {HERE: None}
    (first, everything), (second, _) = nodes.of_kind(elect_leaders.ElectLeadersRequest)
    assert (first, second) == (-1, 1)
    assert everything.topic_partitions is None


@pytest.mark.parametrize(
    ("request_class", "response", "call"),
    [
        (
            elect_leaders.ElectLeadersRequest,
            elect_leaders.ElectLeadersResponse(error_code=31),
            lambda admin: admin.elect_leaders(0, [HERE]),
        ),
        (
            alter_partition_reassignments.AlterPartitionReassignmentsRequest,
            alter_partition_reassignments.AlterPartitionReassignmentsResponse(error_code=31),
            lambda admin: admin.alter_partition_reassignments({HERE: [1]}),
        ),
        (
            list_partition_reassignments.ListPartitionReassignmentsRequest,
            list_partition_reassignments.ListPartitionReassignmentsResponse(error_code=31),
            lambda admin: admin.list_partition_reassignments(),
        ),
        (
            describe_quorum.DescribeQuorumRequest,
            describe_quorum.DescribeQuorumResponse(error_code=31),
            lambda admin: admin.describe_quorum(),
        ),
        (
            unregister_broker.UnregisterBrokerRequest,
            unregister_broker.UnregisterBrokerResponse(error_code=31),
            lambda admin: admin.unregister_broker(3),
        ),
    ],
)
def test_what_is_refused_as_a_whole_raises(
    nodes: Nodes, request_class: type[Any], response: Any, call: Any
) -> None:
    nodes.script(request_class, response)
    with Admin(nodes) as admin, pytest.raises(errors.ClusterAuthorizationFailed):
        call(admin)


def test_moves_are_begun_cancelled_and_listed(nodes: Nodes) -> None:
    begun = alter_partition_reassignments.ReassignablePartitionResponse(partition_index=0)
    unknown = alter_partition_reassignments.ReassignablePartitionResponse(
        partition_index=3, error_code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    )
    topics = [
        alter_partition_reassignments.ReassignableTopicResponse(name="t", partitions=[begun]),
        alter_partition_reassignments.ReassignableTopicResponse(name="u", partitions=[unknown]),
    ]
    nodes.script(
        alter_partition_reassignments.AlterPartitionReassignmentsRequest,
        alter_partition_reassignments.AlterPartitionReassignmentsResponse(responses=topics),
    )
    ongoing = list_partition_reassignments.OngoingPartitionReassignment(
        partition_index=0, replicas=[1, 2], adding_replicas=[2], removing_replicas=[1]
    )
    nodes.script(
        list_partition_reassignments.ListPartitionReassignmentsRequest,
        list_partition_reassignments.ListPartitionReassignmentsResponse(
            topics=[
                list_partition_reassignments.OngoingTopicReassignment(
                    name="t", partitions=[ongoing]
                )
            ]
        ),
    )
    with Admin(nodes) as admin:
        results = admin.alter_partition_reassignments(
            {HERE: [2], THERE: None}, allow_replication_factor_change=False
        )
        assert results.values == {HERE: None}
        assert isinstance(results.errors[THERE], errors.NoReassignmentInProgress)
        moves = admin.list_partition_reassignments([HERE, THERE])
    assert moves[HERE].replicas == (1, 2)
    assert moves[HERE].adding_replicas == (2,)
    assert moves[HERE].removing_replicas == (1,)
    kind: Any = alter_partition_reassignments.AlterPartitionReassignmentsRequest
    ((_, request),) = nodes.of_kind(kind)
    assert not request.allow_replication_factor_change
    assert [[each.replicas for each in topic.partitions] for topic in request.topics] == [
        [[2]],
        [None],
    ]


def test_replicas_are_asked_of_their_brokers(nodes: Nodes) -> None:
    nodes.script(
        describe_log_dirs.DescribeLogDirsRequest,
        describe_log_dirs.DescribeLogDirsResponse(
            results=[directories("/a"), directories("/b", 7, is_future=True)]
        ),
        describe_log_dirs.DescribeLogDirsResponse(error_code=31),
    )
    first, second = TopicPartitionReplica("t", 0, 1), TopicPartitionReplica("t", 0, 2)
    absent = TopicPartitionReplica("u", 3, 1)
    with Admin(nodes) as admin:
        found = admin.describe_replica_log_dirs([first, second, absent, ("t", 0, 9)])
    place = found[first]
    assert (place.path, place.offset_lag) == ("/a", 0)
    assert (place.future_path, place.future_offset_lag) == ("/b", 7)
    assert (found[absent].path, found[absent].offset_lag) == (None, -1)
    assert isinstance(found.errors[second], errors.ClusterAuthorizationFailed)
    assert isinstance(found.errors[TopicPartitionReplica("t", 0, 9)], errors.BrokerNotAvailable)
    asked = nodes.of_kind(describe_log_dirs.DescribeLogDirsRequest)
    assert [node for node, _ in asked] == [1, 2]
    assert [each.topic for each in asked[0][1].topics] == ["t", "u"]


def test_replicas_are_moved_by_their_brokers(nodes: Nodes) -> None:
    def moved(request: Any) -> Any:
        results = [
            alter_replica_log_dirs.AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    alter_replica_log_dirs.AlterReplicaLogDirPartitionResult(
                        partition_index=number, error_code=57 if each.path == "/no" else 0
                    )
                    for number in topic.partitions
                ],
            )
            for each in request.dirs
            for topic in each.topics
        ]
        return alter_replica_log_dirs.AlterReplicaLogDirsResponse(results=results)

    nodes.script(alter_replica_log_dirs.AlterReplicaLogDirsRequest, moved)
    paths = {("t", 0, 1): "/a", ("t", 1, 1): "/a", ("t", 2, 1): "/no", ("t", 0, 2): "/a"}
    with Admin(nodes) as admin:
        results = admin.alter_replica_log_dirs(paths)
    assert list(results.values) == [("t", 0, 1), ("t", 1, 1), ("t", 0, 2)]
    (refused,) = results.errors.items()
    assert refused[0] == ("t", 2, 1)
    assert isinstance(refused[1], errors.LogDirNotFound)
    asked = nodes.of_kind(alter_replica_log_dirs.AlterReplicaLogDirsRequest)
    assert [node for node, _ in asked] == [1, 2]
    assert [each.path for each in asked[0][1].dirs] == ["/a", "/no"]


def test_a_broker_that_does_not_answer_takes_nothing_from_the_others(nodes: Nodes) -> None:
    there = describe_log_dirs.DescribeLogDirsResponse(results=[directories("/a")])
    nodes.script(describe_log_dirs.DescribeLogDirsRequest, None, there)
    with Admin(nodes) as admin:
        found = admin.describe_log_dirs([1, 2], timeout_ms=5_000)
        assert isinstance(found.errors[1], errors.RequestTimedOut)
        assert found[2]["/a"].is_cordoned
    assert nodes.runtime.clock.monotonic_ms() == 5_000


def test_a_broker_that_fails_is_asked_again_wherever_it_is(nodes: Nodes) -> None:
    there = describe_log_dirs.DescribeLogDirsResponse(results=[directories("/a")])
    lost = error_for(ErrorCode.NETWORK_EXCEPTION, "it broke")
    nodes.script(describe_log_dirs.DescribeLogDirsRequest, lost, there, lost, there)
    with Admin(nodes) as admin:
        assert list(admin.describe_log_dirs([1, 2]).check()) == [1, 2]
        asked = [node for node, _ in nodes.of_kind(describe_log_dirs.DescribeLogDirsRequest)]
        assert asked == [1, 2, 1, 1]
        # It is looked up between two attempts; the call does not wait for a broker that has left.
        nodes.script(describe_log_dirs.DescribeLogDirsRequest, lost)
        left = metadata.MetadataResponse(
            brokers=[metadata.MetadataResponseBroker(node_id=2, host="localhost", port=9093)]
        )
        nodes.script(metadata.MetadataRequest, left)
        found = admin.describe_log_dirs([1])
        assert isinstance(found.errors[1], errors.BrokerNotAvailable)


def test_fenced_brokers_are_described_if_they_are_asked_for(nodes: Nodes) -> None:
    def described(request: Any) -> Any:
        brokers = [
            describe_cluster.DescribeClusterBroker(broker_id=number, is_fenced=number == 2)
            for number in ((1, 2) if request.include_fenced_brokers else (1,))
        ]
        return describe_cluster.DescribeClusterResponse(cluster_id="c", brokers=brokers)

    nodes.script(describe_cluster.DescribeClusterRequest, described)
    with Admin(nodes) as admin:
        assert list(admin.describe_cluster().nodes) == [1]
        found = admin.describe_cluster(include_fenced_brokers=True).nodes
    assert {each.node_id: each.is_fenced for each in found.values()} == {1: False, 2: True}


def test_a_broker_is_unregistered_as_soon_as_the_controller_has_time(nodes: Nodes) -> None:
    late = unregister_broker.UnregisterBrokerResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
    done = unregister_broker.UnregisterBrokerResponse()
    nodes.script(unregister_broker.UnregisterBrokerRequest, late, late, done)
    with Admin(nodes) as admin:
        admin.unregister_broker(3)
        asked = nodes.of_kind(unregister_broker.UnregisterBrokerRequest)
        assert [request.broker_id for _, request in asked] == [3, 3, 3]
        nodes.script(unregister_broker.UnregisterBrokerRequest, late)
        with pytest.raises(errors.RequestTimedOut):
            admin.unregister_broker(3, timeout_ms=1_000)


def quorum(**fields: Any) -> Any:
    partition = describe_quorum.ResponsePartitionData(
        leader_id=1,
        leader_epoch=5,
        high_watermark=7,
        current_voters=[describe_quorum.ReplicaState(replica_id=1, log_end_offset=8)],
        observers=[describe_quorum.ReplicaState(replica_id=9, last_fetch_timestamp=1_000)],
        **fields,
    )
    topic = describe_quorum.ResponseTopicData(topic_name="x", partitions=[partition])
    listener = describe_quorum.Listener(name="CONTROLLER", host="localhost", port=9)
    node = describe_quorum.Node(node_id=1, listeners=[listener])
    return describe_quorum.DescribeQuorumResponse(topics=[topic], nodes=[node])


def test_the_quorum_is_described(nodes: Nodes) -> None:
    nodes.script(describe_quorum.DescribeQuorumRequest, quorum())
    with Admin(nodes) as admin:
        found = admin.describe_quorum()
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == (1, 5, 7)
    assert [(each.replica_id, each.log_end_offset) for each in found.voters] == [(1, 8)]
    assert [each.last_fetch_timestamp_ms for each in found.observers] == [1_000]
    assert found.observers[0].last_caught_up_timestamp_ms == -1
    assert found.nodes == {1: {"CONTROLLER": ("localhost", 9)}}
    ((_, request),) = nodes.of_kind(describe_quorum.DescribeQuorumRequest)
    assert [each.topic_name for each in request.topics] == ["__cluster_metadata"]


def test_a_quorum_that_nobody_describes_is_an_error(nodes: Nodes) -> None:
    nodes.script(
        describe_quorum.DescribeQuorumRequest,
        quorum(error_code=3, error_message="words"),
        describe_quorum.DescribeQuorumResponse(),
    )
    with Admin(nodes) as admin:
        with pytest.raises(errors.UnknownTopicOrPartition, match="words"):
            admin.describe_quorum()
        with pytest.raises(errors.UnknownServerError):
            admin.describe_quorum()


def test_a_replica_is_a_value() -> None:
    replica = TopicPartitionReplica("t", 0, 1)
    topic, partition, node_id = replica
    assert (replica.topic, replica.partition, replica.node_id) == (topic, partition, node_id)
    assert str(replica) == "t-0 on 1"
    assert repr(replica) == "TopicPartitionReplica('t', 0, 1)"
