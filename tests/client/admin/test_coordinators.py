"""Requests about groups find coordinators that move, load or go away, in simulated time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import pytest

from embedlog import Admin, errors
from embedlog.errors import TimedOut
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from embedlog.transport import ANY_NODE, InProcessTransport
from tests.client.scripted_broker import Context
from wire.api_keys import ApiKey
from wire.schemas import (
    consumer_group_describe,
    delete_groups,
    describe_groups,
    find_coordinator,
    leave_group,
    list_groups,
    metadata,
    offset_commit,
    offset_fetch,
)

NEWEST = {
    ApiKey.METADATA: (0, 13),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.DELETE_GROUPS: (0, 3),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.OFFSET_FETCH: (0, 10),
    ApiKey.OFFSET_COMMIT: (0, 10),
}


class Nodes(InProcessTransport):
    """Nodes 1 and 2. `answers` are used in order for each request class; the last one stays.

    An answer is a response, an error for the request, a function of the request, or None for a
    request without an answer.
    """

    def __init__(self, versions: Mapping[int, tuple[int, int]] = NEWEST) -> None:
        super().__init__(self._answer, Context, versions, sim_runtime())
        self.sent: list[tuple[int, Any, int | None]] = []
        self.answers: dict[type[Any], deque[Any]] = {
            metadata.MetadataRequest: deque([self._metadata]),
            find_coordinator.FindCoordinatorRequest: deque([coordinated_by(1)]),
        }

    def script(self, kind: type[Any], *answers: Any) -> None:
        self.answers[kind] = deque(answers)

    def of_kind(self, kind: type[Any]) -> list[tuple[int, Any]]:
        return [(node, request) for node, request, _ in self.sent if isinstance(request, kind)]

    def send(
        self,
        node_id: int,
        request: Any,
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Pending[Any]:
        self.sent.append((node_id, request, version))
        answer = super().send(node_id, request, version=version, timeout_ms=timeout_ms)
        if answer.done() and isinstance(answer.result(), errors.KafkaError):
            failed: Pending[Any] = Pending()
            failed.fail(answer.result())
            return failed
        return answer

    def _answer(self, context: Any, request: Any) -> Any:
        answers = self.answers[type(request)]
        answer = answers.popleft() if len(answers) > 1 else answers[0]
        if answer is None:
            return Pending()
        return answer(request) if callable(answer) else answer

    def _metadata(self, request: Any) -> Any:
        nodes = [
            metadata.MetadataResponseBroker(node_id=number, host="localhost", port=9091 + number)
            for number in (1, 2)
        ]
        return metadata.MetadataResponse(brokers=nodes, controller_id=1)


def coordinated_by(node_id: int, code: int = 0, message: str | None = None) -> Any:
    """An answer to FindCoordinator: one node for all groups."""

    def answer(request: Any) -> Any:
        named = {"node_id": node_id, "host": "localhost", "port": 9091 + node_id}
        if not request.coordinator_keys:
            return find_coordinator.FindCoordinatorResponse(error_code=code, **named)
        return find_coordinator.FindCoordinatorResponse(
            coordinators=[
                find_coordinator.Coordinator(
                    key=key, error_code=code, error_message=message, **named
                )
                for key in request.coordinator_keys
            ]
        )

    return answer


def deleted(**codes: int) -> Any:
    return delete_groups.DeleteGroupsResponse(
        results=[
            delete_groups.DeletableGroupResult(group_id=group, error_code=code)
            for group, code in codes.items()
        ]
    )


Delete = delete_groups.DeleteGroupsRequest
Find = find_coordinator.FindCoordinatorRequest


def test_groups_of_one_coordinator_share_a_request() -> None:
    nodes = Nodes()
    nodes.script(Delete, deleted(one=0, two=68))
    with Admin(nodes) as admin:
        results = admin.delete_groups(["one", "two", "one"])
    assert results.values == {"one": None}
    assert isinstance(results.errors["two"], errors.NonEmptyGroup)
    assert [(node, found.coordinator_keys) for node, found in nodes.of_kind(Find)] == [
        (ANY_NODE, ["one", "two"])
    ]
    assert [(node, asked.groups_names) for node, asked in nodes.of_kind(Delete)] == [
        (1, ["one", "two"])
    ]


@pytest.mark.parametrize("code", [14, 15, 16], ids=["loads", "not available", "not coordinator"])
def test_a_coordinator_that_is_not_ready_is_asked_again(code: int) -> None:
    nodes = Nodes()
    nodes.script(Find, coordinated_by(1), coordinated_by(2))
    nodes.script(Delete, deleted(one=code, two=0), deleted(one=0))
    with Admin(nodes) as admin:
        assert sorted(admin.delete_groups(["one", "two"]).check()) == ["one", "two"]
    asked = [(node, each.groups_names) for node, each in nodes.of_kind(Delete)]
    # A loading coordinator stays; after the other errors it is looked up again.
    assert asked == [(1, ["one", "two"]), (1 if code == 14 else 2, ["one"])]
    assert len(nodes.of_kind(Find)) == (1 if code == 14 else 2)


def test_a_coordinator_that_went_away_is_looked_for_again() -> None:
    nodes = Nodes()
    nodes.script(Find, coordinated_by(1), coordinated_by(-1, 15), coordinated_by(2))
    nodes.script(Delete, errors.error_for(13), deleted(one=0))
    with Admin(nodes) as admin:
        admin.delete_groups(["one"]).check()
    assert [node for node, _ in nodes.of_kind(Delete)] == [1, 2]


def test_a_group_without_coordinator_has_that_error_when_the_time_is_over() -> None:
    nodes = Nodes()
    nodes.script(Find, coordinated_by(-1, 15, "not yet"))
    with Admin(nodes) as admin:
        before = nodes.runtime.clock.monotonic_ms()
        results = admin.delete_groups(["one"], timeout_ms=1_000)
        assert nodes.runtime.clock.monotonic_ms() - before == 1_000
    assert isinstance(results.errors["one"], errors.CoordinatorNotAvailable)
    assert str(results.errors["one"]) == "not yet"
    assert len(nodes.of_kind(Find)) == 11  # every retry.backoff.ms


def test_a_group_that_may_not_be_looked_up_has_that_error_at_once() -> None:
    nodes = Nodes()
    nodes.script(Find, coordinated_by(-1, 30, "no"))
    with Admin(nodes) as admin:
        results = admin.delete_groups(["one"])
    assert isinstance(results.errors["one"], errors.GroupAuthorizationFailed)
    assert len(nodes.of_kind(Find)) == 1


def test_silence_is_a_timeout() -> None:
    nodes = Nodes()
    nodes.script(Delete, errors.error_for(13, "the cable is cut"), None)
    with Admin(nodes) as admin, pytest.raises(TimedOut, match="DeleteGroups"):
        admin.delete_groups(["one"], timeout_ms=500)


def test_an_answer_that_leaves_a_group_out_is_an_error() -> None:
    nodes = Nodes()
    nodes.script(Delete, deleted(one=0))
    with Admin(nodes) as admin:
        results = admin.delete_groups(["one", "two"])
    assert isinstance(results.errors["two"], errors.UnknownServerError)


def test_every_broker_is_asked_for_its_groups() -> None:
    listed = list_groups.ListGroupsResponse(groups=[list_groups.ListedGroup(group_id="one")])
    nodes = Nodes()
    nodes.script(
        list_groups.ListGroupsRequest,
        list_groups.ListGroupsResponse(error_code=14),
        listed,
        errors.error_for(29, "not you"),
    )
    with Admin(nodes) as admin:
        results = admin.list_groups()
    asked = [node for node, _ in nodes.of_kind(list_groups.ListGroupsRequest)]
    assert asked == [1, 1, 2]
    assert list(results.values) == ["one"]
    assert isinstance(results.errors[2], errors.TopicAuthorizationFailed)


def test_an_old_broker_is_asked_about_one_group_at_a_time() -> None:
    old = {**NEWEST, ApiKey.FIND_COORDINATOR: (0, 3), ApiKey.OFFSET_FETCH: (0, 7)}
    nodes = Nodes(old)
    nodes.script(
        offset_fetch.OffsetFetchRequest,
        offset_fetch.OffsetFetchResponse(
            topics=[
                offset_fetch.OffsetFetchResponseTopic(
                    name="t",
                    partitions=[
                        offset_fetch.OffsetFetchResponsePartition(
                            partition_index=0, committed_offset=7, committed_leader_epoch=-1
                        )
                    ],
                )
            ]
        ),
        offset_fetch.OffsetFetchResponse(error_code=30),
    )
    with Admin(nodes) as admin:
        results = admin.list_group_offsets({"one": [("t", 0)], "two": None})
    assert [found.key for _, found in nodes.of_kind(Find)] == ["one", "two"]
    asked = [found for _, found in nodes.of_kind(offset_fetch.OffsetFetchRequest)]
    assert [(each.group_id, each.topics is None) for each in asked] == [
        ("one", False),
        ("two", True),
    ]
    (stored,) = results["one"].check().values()
    assert stored is not None
    assert stored.offset == 7
    assert isinstance(results.errors["two"], errors.GroupAuthorizationFailed)


def test_offsets_are_named_never_by_topic_id() -> None:
    nodes = Nodes()
    nodes.script(offset_fetch.OffsetFetchRequest, offset_fetch.OffsetFetchResponse())
    nodes.script(offset_commit.OffsetCommitRequest, offset_commit.OffsetCommitResponse())
    with Admin(nodes) as admin:
        admin.list_group_offsets(["one"])
        admin.alter_group_offsets("one", {("t", 0): 1})
    kinds = (offset_fetch.OffsetFetchRequest, offset_commit.OffsetCommitRequest)
    assert [version for _, request, version in nodes.sent if isinstance(request, kinds)] == [9, 9]


def test_an_error_of_every_partition_is_the_groups() -> None:
    def answer(code: int) -> Any:
        partition = offset_commit.OffsetCommitResponsePartition(partition_index=0, error_code=code)
        topic = offset_commit.OffsetCommitResponseTopic(name="t", partitions=[partition])
        return offset_commit.OffsetCommitResponse(topics=[topic])

    nodes = Nodes()
    nodes.script(offset_commit.OffsetCommitRequest, answer(14), answer(27), answer(30))
    with Admin(nodes) as admin, pytest.raises(errors.GroupAuthorizationFailed):
        admin.alter_group_offsets("one", {("t", 0): 1})
    assert len(nodes.of_kind(offset_commit.OffsetCommitRequest)) == 3


def test_an_old_broker_removes_members_one_by_one_and_no_static_ones() -> None:
    nodes = Nodes({**NEWEST, ApiKey.LEAVE_GROUP: (0, 2)})
    nodes.script(
        leave_group.LeaveGroupRequest,
        leave_group.LeaveGroupResponse(),
        leave_group.LeaveGroupResponse(error_code=25),
    )
    with Admin(nodes) as admin:
        results = admin.remove_members("one", member_ids=["a", "b"], instance_ids=["c"])
    assert results.values == {"a": None}
    assert isinstance(results.errors["b"], errors.UnknownMemberId)
    assert isinstance(results.errors["c"], errors.UnsupportedVersion)
    asked = [each for _, each in nodes.of_kind(leave_group.LeaveGroupRequest)]
    assert [each.member_id for each in asked] == ["a", "b"]


def test_a_call_is_retried_as_often_as_the_settings_allow() -> None:
    nodes = Nodes()
    nodes.script(list_groups.ListGroupsRequest, errors.Network("gone"))
    with Admin(nodes, retries=2) as admin:
        found = admin.list_groups()
    assert {type(each) for each in found.errors.values()} == {errors.Network}
    asked = [node for node, _ in nodes.of_kind(list_groups.ListGroupsRequest)]
    assert asked == [1] * 3 + [2] * 3


def test_a_group_that_a_broker_calls_dead_is_unknown() -> None:
    nodes = Nodes(
        {**NEWEST, ApiKey.DESCRIBE_GROUPS: (0, 5), ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1)}
    )
    unknown = consumer_group_describe.DescribedGroup(group_id="g", error_code=69)
    dead = describe_groups.DescribedGroup(group_id="g", group_state="Dead")
    nodes.script(
        consumer_group_describe.ConsumerGroupDescribeRequest,
        consumer_group_describe.ConsumerGroupDescribeResponse(groups=[unknown]),
    )
    nodes.script(
        describe_groups.DescribeGroupsRequest,
        describe_groups.DescribeGroupsResponse(groups=[dead]),
    )
    with Admin(nodes) as admin:
        found = admin.describe_groups(["g"])
    assert isinstance(found.errors["g"], errors.GroupIdNotFound)
