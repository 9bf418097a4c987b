"""ConsumerGroupHeartbeat over every transport; its rules are in `tests/coordinator/consumer`."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.testing import sim_runtime
from tests.apis.conftest import Client, InProcess
from tests.apis.consumer_groups import GROUP, assigned, join, owned, stay
from wire.error_codes import ErrorCode
from wire.schemas.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.schemas.list_groups import ListGroupsRequest
from wire.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

VERSIONS = (0, 1)
RESOURCE_GROUP = 32


def assign_at_once(client: Client) -> None:
    """Allow assignments without a pause in between."""
    config = AlterableConfig(name="consumer.assignment.interval.ms", value="0")
    resource = AlterConfigsResource(
        resource_type=RESOURCE_GROUP, resource_name=GROUP, configs=[config]
    )
    response = client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert response.responses[0].error_code == 0, response


@pytest.mark.parametrize("version", VERSIONS)
def test_a_member_joins_stays_and_leaves(client: Client, version: int) -> None:
    name, topic_id = client.make_topic(3)
    response = client.call(join("m", name), version)
    assert (response.member_id, response.member_epoch) == ("m", 2)
    assert (response.heartbeat_interval_ms, response.throttle_time_ms) == (5000, 0)
    assert assigned(response) == {topic_id: [0, 1, 2]}
    response = client.call(stay("m", 2, topic_partitions=owned(topic_id, 0, 1, 2)), version)
    assert assigned(response) is None
    response = client.call(stay("m", -1), version)
    assert (response.error_code, response.member_id, response.member_epoch) == (0, "m", -1)
    assert (response.heartbeat_interval_ms, response.assignment) == (0, None)


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_move_from_one_to_the_other(client: Client, version: int) -> None:
    assign_at_once(client)
    name, topic_id = client.make_topic(2)
    client.call(join("m1", name), version)
    other = client.another()
    assert assigned(other.call(join("m2", name), version)) == {}
    assert assigned(client.call(stay("m1", 2), version)) == {topic_id: [0]}
    assert assigned(other.call(stay("m2", 3), version)) is None
    given_up = stay("m1", 2, topic_partitions=owned(topic_id, 0))
    assert client.call(given_up, version).member_epoch == 3
    assert assigned(other.call(stay("m2", 3), version)) == {topic_id: [1]}
    other.close()


def test_a_member_without_an_id_gets_one_before_version_1(client: Client) -> None:
    name, _ = client.make_topic()
    member_id = client.call(join("", name), 0).member_id
    assert client.call(stay(member_id, 2), 0).error_code == 0
    assert client.call(join("", name), 1).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"group_id": ""}, 42, "GroupId can't be empty."),
        ({"rebalance_timeout_ms": -1}, 42, "RebalanceTimeoutMs must be provided in first request."),
        ({"member_epoch": -2}, 42, "InstanceId can't be null."),
        ({"member_epoch": 1}, 69, "Consumer group consumers not found."),
        ({"member_epoch": -1}, 69, "Group consumers not found."),
        (
            {"server_assignor": "x"},
            112,
            "ServerAssignor x is not supported. Supported assignors: uniform, range.",
        ),
    ],
)
def test_errors_have_a_message_and_nothing_else(
    client: Client, fields: dict[str, Any], code: int, message: str
) -> None:
    for version in VERSIONS:
        response = client.call(join("m", "t", **fields), version)
        assert (response.error_code, response.error_message) == (code, message)
        assert (response.member_id, response.member_epoch) == (None, 0)
        assert response.assignment is None


def test_subscribing_by_a_pattern(client: Client) -> None:
    name, topic_id = client.make_topic()
    client.make_topic()
    response = client.call(join("m", subscribed_topic_regex=f"{name[:-1]}[0-0]"), 1)
    assert (response.member_epoch, assigned(response)) == (1, {})
    assert assigned(client.call(stay("m", 1), 1)) == {topic_id: [0]}
    response = client.call(stay("m", 2, subscribed_topic_regex="("), 1)
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert response.error_message == (
        "SubscribedTopicRegex `(` is not a valid regular expression: missing closing )."
    )


def test_static_members_come_back_under_another_id(client: Client) -> None:
    name, topic_id = client.make_topic()
    client.call(join("m", name, instance_id="i"), 1)
    code = client.call(join("n", name, instance_id="i"), 1).error_code
    assert code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert client.call(stay("m", -2, instance_id="i"), 1).member_epoch == -2
    assert assigned(client.call(join("n", name, instance_id="i"), 1)) == {topic_id: [0]}
    code = client.call(stay("m", 2, instance_id="i"), 1).error_code
    assert code == ErrorCode.FENCED_INSTANCE_ID


def test_the_group_is_listed_as_what_it_is(client: Client) -> None:
    name, _ = client.make_topic()
    client.call(join("m", name), 1)
    for types, count in (([], 1), (["Consumer"], 1), (["classic"], 0)):
        groups = client.call(ListGroupsRequest(types_filter=types), 5).groups
        assert [(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in groups] == [
            (GROUP, "consumer", "Stable", "consumer")
        ] * count
    [stable] = client.call(ListGroupsRequest(states_filter=["STABLE"]), 5).groups
    assert stable.group_id == GROUP
    assert client.call(ListGroupsRequest(states_filter=["Empty"]), 5).groups == []


def test_a_member_commits_at_the_epochs_it_has_had_its_partitions(client: Client) -> None:
    assign_at_once(client)
    name, topic_id = client.make_topic(2)
    client.call(join("m1", name), 1)
    client.call(join("m2", name), 1)
    client.call(stay("m1", 2), 1)
    client.call(stay("m1", 2, topic_partitions=owned(topic_id, 0)), 1)

    def code(epoch: int, partition: int) -> int:
        topic = OffsetCommitRequestTopic(
            name=name,
            partitions=[
                OffsetCommitRequestPartition(partition_index=partition, committed_offset=1)
            ],
        )
        request = OffsetCommitRequest(
            group_id=GROUP, member_id="m1", generation_id_or_member_epoch=epoch, topics=[topic]
        )
        found: int = client.call(request, 9).topics[0].partitions[0].error_code
        return found

    assert [code(3, 0), code(2, 0), code(3, 1)] == [0, 0, 0]
    assert [code(1, 0), code(2, 1), code(4, 0)] == [ErrorCode.STALE_MEMBER_EPOCH] * 3


def test_a_broker_may_not_serve_the_protocol() -> None:
    with Cluster(
        config={"group.coordinator.rebalance.protocols": "classic"}, runtime=sim_runtime()
    ) as cluster:
        response = InProcess(cluster).call(join("m", "t"), 1)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_members_outlive_the_broker() -> None:
    runtime = sim_runtime()
    with Cluster("data", runtime=runtime) as first:
        topic = first.create_topic("t", 2)
        client = InProcess(first)
        assert assigned(client.call(join("m", "t"), 1)) == {topic.topic_id: [0, 1]}
    mine = owned(topic.topic_id, 0, 1)
    with Cluster("data", runtime=runtime) as second:
        client = InProcess(second)
        response = client.call(stay("m", 2, topic_partitions=mine), 1)
        assert (response.error_code, response.member_epoch) == (0, 2)
        full = {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["t"]}
        response = client.call(stay("m", 2, topic_partitions=mine, **full), 1)
        assert assigned(response) == {topic.topic_id: [0, 1]}
        runtime.scheduler.run_for(45_000)
        assert client.call(stay("m", 2), 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
