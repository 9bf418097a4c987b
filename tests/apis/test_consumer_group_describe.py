"""ConsumerGroupDescribe: groups, their epochs and their members."""

from __future__ import annotations

import pytest

import wire
from embedlog.cluster.cluster import Cluster
from embedlog.testing import sim_runtime
from tests.apis import groups as classic
from tests.apis.conftest import Client, InProcess
from tests.apis.consumer_groups import GROUP, join, stay
from wire.error_codes import ErrorCode
from wire.schemas.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from wire.schemas.consumer_protocol import ConsumerProtocolSubscription
from wire.schemas.delete_topics import DeleteTopicsRequest
from wire.schemas.join_group import JoinGroupRequestProtocol

VERSIONS = (0, 1)
NOT_ASKED_FOR = -(2**31)
OPERATIONS = 3400


def describe(
    client: Client, *group_ids: str, version: int = 1, **how: bool
) -> list[DescribedGroup]:
    request = ConsumerGroupDescribeRequest(group_ids=list(group_ids), **how)
    response = client.call(request, version)
    # In process, objects may have values for fields that the version lacks.
    encoded = wire.encode(response, version)
    described: list[DescribedGroup] = wire.decode(
        ConsumerGroupDescribeResponse, version, encoded
    ).groups
    return described


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_there_is_to_say(client: Client, version: int) -> None:
    name, topic_id = client.make_topic(2)
    client.call(join("m1", name, instance_id="i", rack_id="r", server_assignor="range"), 1)
    client.call(join("m2", name, subscribed_topic_regex="none"), 1)
    [group] = describe(client, GROUP, version=version)
    everything = Assignment(
        topic_partitions=[TopicPartitions(topic_id=topic_id, topic_name=name, partitions=[0, 1])]
    )
    kind = 1 if version >= 1 else -1
    host = "/127.0.0.1"
    assert group == DescribedGroup(
        group_id=GROUP,
        group_state="Assigning",
        group_epoch=3,
        assignment_epoch=2,
        assignor_name="range",
        members=[
            Member(
                member_id="m1",
                instance_id="i",
                rack_id="r",
                member_epoch=2,
                client_id="test",
                client_host=host,
                subscribed_topic_names=[name],
                subscribed_topic_regex="",
                assignment=everything,
                target_assignment=everything,
                member_type=kind,
            ),
            Member(
                member_id="m2",
                member_epoch=2,
                client_id="test",
                client_host=host,
                subscribed_topic_names=[name],
                subscribed_topic_regex="none",
                member_type=kind,
            ),
        ],
        authorized_operations=NOT_ASKED_FOR,
    )


def test_what_is_asked_to_be_given_up_is_still_had(client: Client) -> None:
    client.cluster.config.set_static("group.consumer.assignment.interval.ms", "0")
    name, topic_id = client.make_topic(2)
    client.call(join("m1", name), 1)
    client.call(join("m2", name), 1)
    client.call(stay("m1", 2), 1)
    [group] = describe(client, GROUP)
    assert group.group_state == "Reconciling"
    had = [t.partitions for t in group.members[0].assignment.topic_partitions]
    shall = [t.partitions for t in group.members[0].target_assignment.topic_partitions]
    assert (had, shall) == ([[0, 1]], [[0]])


def test_an_empty_group(client: Client) -> None:
    name, _ = client.make_topic()
    client.call(join("m", name), 1)
    client.call(stay("m", -1), 1)
    [group] = describe(client, GROUP)
    assert (group.group_state, group.members, group.assignor_name) == ("Empty", [], "uniform")
    assert (group.group_epoch, group.assignment_epoch) == (3, 3)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_not_there_or_is_of_another_type(client: Client, version: int) -> None:
    classic.form_alone(client)
    nameless, unknown, other = describe(client, "none", "", classic.GROUP, version=version)
    assert (nameless.error_code, nameless.group_id) == (ErrorCode.INVALID_GROUP_ID, "")
    assert (unknown.error_code, unknown.group_id) == (ErrorCode.GROUP_ID_NOT_FOUND, "none")
    assert unknown.error_message == "Group none not found."
    assert (other.error_code, other.group_id) == (ErrorCode.GROUP_ID_NOT_FOUND, classic.GROUP)
    assert other.error_message == f"Group {classic.GROUP} is not a consumer group."
    assert describe(client, version=version) == []


def test_operations_are_in_the_answer_on_request(client: Client) -> None:
    name, _ = client.make_topic()
    client.call(join("m", name), 1)
    found, missing = describe(client, GROUP, "none", include_authorized_operations=True)
    assert found.authorized_operations == OPERATIONS
    assert missing.authorized_operations == NOT_ASKED_FOR


def test_a_group_asked_for_twice_is_described_twice(client: Client) -> None:
    name, _ = client.make_topic()
    client.call(join("m", name), 1)
    one, other = describe(client, GROUP, GROUP)
    assert one == other


def test_one_group_is_described_ten_times_at_most(client: Client) -> None:
    assert len(describe(client, *[GROUP] * 500)) == 10


def test_classic_members_are_told_apart(client: Client) -> None:
    name, _ = client.make_topic()
    client.call(join("m", name), 1)
    subscription = ConsumerProtocolSubscription(topics=[name])
    metadata = bytes(2) + wire.encode(subscription, 0)
    client.call(
        classic.join(
            "c",
            group_id=GROUP,
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        ),
        9,
    )
    [group] = describe(client, GROUP)
    assert [(member.member_id, member.member_type) for member in group.members] == [
        ("m", 1),
        ("c", 0),
    ]


def test_a_topic_that_is_gone_is_not_shown(client: Client) -> None:
    name, _ = client.make_topic()
    client.call(join("m", name), 1)
    client.call(DeleteTopicsRequest(topic_names=[name], timeout_ms=1000), 5)
    [group] = describe(client, GROUP)
    assert group.members[0].assignment.topic_partitions == []


def test_a_broker_may_not_serve_the_protocol() -> None:
    config = {"group.coordinator.rebalance.protocols": "classic"}
    with Cluster(config=config, runtime=sim_runtime()) as cluster:
        [group] = describe(InProcess(cluster), "g")
    assert (group.group_id, group.error_code) == ("g", ErrorCode.UNSUPPORTED_VERSION)
