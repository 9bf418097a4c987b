"""The implementation of `groups.py`, except offsets: the requests about groups and members."""

from __future__ import annotations

from embedlog import errors
from embedlog.client.admin.coordinators import CoordinatorCalls, ask_all_coordinators
from embedlog.client.admin.results import ItemResults, results_of
from embedlog.client.admin.value import AdminValue
from embedlog.client.consumer.group.embedded_protocol import (
    PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
)
from embedlog.common import TopicPartition
from embedlog.errors import KafkaError
from wire.error_codes import ErrorCode
from wire.errors import MalformedMessage
from wire.schemas.consumer_group_describe import ConsumerGroupDescribeRequest
from wire.schemas.delete_groups import DeleteGroupsRequest
from wire.schemas.describe_groups import DescribedGroup as ClassicGroup
from wire.schemas.describe_groups import DescribeGroupsRequest
from wire.schemas.leave_group import LeaveGroupRequest, MemberIdentity
from wire.schemas.list_groups import ListGroupsRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.admin.calls import AdminCalls
    from embedlog.client.admin.coordinators import Answer
    from embedlog.client.cluster_nodes import Node
    from wire.schemas.consumer_group_describe import Assignment, ConsumerGroupDescribeResponse
    from wire.schemas.consumer_group_describe import DescribedGroup as ConsumerGroup
    from wire.schemas.delete_groups import DeleteGroupsResponse
    from wire.schemas.describe_groups import DescribedGroupMember, DescribeGroupsResponse

_NOT_OF_THE_CONSUMER_PROTOCOL = frozenset(
    (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
)
_SEVERAL_MEMBERS_SINCE = 3
_NO_OPERATIONS = -(2**31)
_DEAD = "Dead"


class GroupListing(AdminValue):
    """A group in a listing.

    Brokers before 2.6 leave `state` empty; brokers before 3.8 leave `group_type` ("classic",
    "consumer", ...) empty.
    """

    group_id: str
    protocol_type: str
    state: str
    group_type: str


class MemberDescription(AdminValue):
    """A member of a group.

    `assignment` has the member's present partitions, `target_assignment` the partitions that it
    shall have (None in a classic group, because there both are equal). `member_epoch` is -1 in a
    classic group.
    `uses_consumer_protocol` is None if the broker does not report it. `metadata` and
    `assignment_data` are the bytes that members of a classic group exchange; `assignment` is
    decoded from them if the group's protocol type is "consumer".
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: list[TopicPartition]
    subscribed_topics: list[str]
    target_assignment: list[TopicPartition] | None = None
    rack: str | None = None
    member_epoch: int = -1
    subscribed_pattern: str | None = None
    uses_consumer_protocol: bool | None = False
    metadata: bytes = b""
    assignment_data: bytes = b""


class GroupDescription(AdminValue):
    """A group and its members.

    `group_type` is "classic" or "consumer". The epochs are -1 in a classic group.
    `authorized_operations` are numbers of Kafka's AclOperation; None unless the call requested it.
    """

    group_id: str
    group_type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: Node
    members: list[MemberDescription]
    group_epoch: int = -1
    target_assignment_epoch: int = -1
    authorized_operations: frozenset[int] | None = None


def list_groups(
    calls: AdminCalls, states: list[str], types: list[str], timeout_ms: int | None
) -> ItemResults[str | int, GroupListing]:
    """List the groups of all brokers; each broker lists the groups that it coordinates."""
    results: ItemResults[str | int, GroupListing] = ItemResults()
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    for response in ask_all_coordinators(calls, request, results.failures, timeout_ms):
        for each in response.groups:
            results.values[each.group_id] = GroupListing(
                each.group_id, each.protocol_type, each.group_state, each.group_type
            )
    return results


def describe_groups(
    calls: AdminCalls, group_ids: list[str], with_operations: bool, timeout_ms: int | None
) -> ItemResults[str, GroupDescription]:
    """Describe the groups: first request all as consumer groups, then the others as classic."""
    coordinators = CoordinatorCalls(calls, timeout_ms)
    outcomes = coordinators.ask(
        group_ids,
        ConsumerGroupDescribeRequest,
        lambda groups, _version: ConsumerGroupDescribeRequest(
            group_ids=groups, include_authorized_operations=with_operations
        ),
        _described,
    )
    others = [
        group
        for group, outcome in outcomes.items()
        if isinstance(outcome, KafkaError) and outcome.code in _NOT_OF_THE_CONSUMER_PROTOCOL
    ]
    classic = coordinators.ask(
        others,
        DescribeGroupsRequest,
        lambda groups, _version: DescribeGroupsRequest(
            groups=groups, include_authorized_operations=with_operations
        ),
        _described,
    )
    results: ItemResults[str, GroupDescription] = ItemResults()
    for group in outcomes:
        found = classic.get(group, outcomes[group])
        if isinstance(found, KafkaError):
            results.failures[group] = found
        elif found.group_state == _DEAD:
            # Before version 6, brokers describe an unknown group as dead.
            results.failures[group] = errors.GroupIdNotFound(f"group {group!r}")
        elif isinstance(found, ClassicGroup):
            results.values[group] = _classic_group(found, coordinators.coordinators[group])
        else:
            results.values[group] = _consumer_group(found, coordinators.coordinators[group])
    return results


def delete_groups(
    calls: AdminCalls, group_ids: list[str], timeout_ms: int | None
) -> ItemResults[str, None]:
    """Delete groups without members."""

    def take(response: DeleteGroupsResponse, _groups: list[str]) -> dict[str, Answer[None]]:
        return {
            each.group_id: (each.error_code, each.error_message, None) for each in response.results
        }

    outcomes = CoordinatorCalls(calls, timeout_ms).ask(
        group_ids,
        DeleteGroupsRequest,
        lambda groups, _version: DeleteGroupsRequest(groups_names=groups),
        take,
    )
    return results_of(outcomes)


def remove_members(
    calls: AdminCalls,
    group_id: str,
    member_ids: list[str] | None,
    instance_ids: list[str] | None,
    *,
    reason: str | None,
    timeout_ms: int | None,
) -> ItemResults[str, None]:
    """Remove members from a group; all members if both lists are None."""
    deadline = calls.deadline(timeout_ms)
    if member_ids is None and instance_ids is None:
        described = describe_groups(calls, [group_id], False, timeout_ms)[group_id]
        instance_ids = [each.instance_id for each in described.members if each.instance_id]
        member_ids = [each.member_id for each in described.members if not each.instance_id]
    leaving = [
        *(MemberIdentity(member_id=each, reason=reason) for each in member_ids or ()),
        *(MemberIdentity(group_instance_id=each, reason=reason) for each in instance_ids or ()),
    ]
    results: ItemResults[str, None] = ItemResults()
    if not leaving:
        return results
    coordinators = CoordinatorCalls(calls, calls.left_ms(deadline))
    newest = calls.newest_version(LeaveGroupRequest, calls.left_ms(deadline))
    if newest < _SEVERAL_MEMBERS_SINCE:
        for each in leaving:
            _remove_one(coordinators, group_id, each, results)
        return results
    response = coordinators.ask_one(
        group_id,
        LeaveGroupRequest,
        lambda _version: LeaveGroupRequest(group_id=group_id, members=leaving),
        lambda response: (response.error_code, None, response),
    )
    for left in response.members:
        name = left.member_id if left.group_instance_id is None else left.group_instance_id
        results.put(name, None, left.error_code)
    return results


def _remove_one(
    coordinators: CoordinatorCalls,
    group_id: str,
    leaving: MemberIdentity,
    results: ItemResults[str, None],
) -> None:
    """Remove a member at an old broker, which accepts one member id for each request."""
    instance_id = leaving.group_instance_id
    if instance_id is not None:
        too_old = f"the broker cannot remove the static member {instance_id!r}"
        results.failures[instance_id] = errors.UnsupportedVersion(too_old)
        return
    try:
        coordinators.ask_one(
            group_id,
            LeaveGroupRequest,
            lambda _version: LeaveGroupRequest(group_id=group_id, member_id=leaving.member_id),
            lambda response: (response.error_code, None, None),
        )
        results.values[leaving.member_id] = None
    except KafkaError as error:
        results.failures[leaving.member_id] = error


def _described(
    response: ConsumerGroupDescribeResponse | DescribeGroupsResponse, _groups: list[str]
) -> dict[str, Answer[Any]]:
    return {each.group_id: (each.error_code, each.error_message, each) for each in response.groups}


def _consumer_group(described: ConsumerGroup, coordinator: Node) -> GroupDescription:
    members = [
        MemberDescription(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            assignment=_partitions(each.assignment),
            target_assignment=_partitions(each.target_assignment),
            rack=each.rack_id,
            member_epoch=each.member_epoch,
            subscribed_topics=list(each.subscribed_topic_names),
            subscribed_pattern=each.subscribed_topic_regex or None,
            uses_consumer_protocol=None if each.member_type < 0 else each.member_type == 1,
        )
        for each in described.members
    ]
    return GroupDescription(
        described.group_id,
        "consumer",
        described.group_state,
        protocol_type=PROTOCOL_TYPE,
        assignor=described.assignor_name,
        coordinator=coordinator,
        members=members,
        group_epoch=described.group_epoch,
        target_assignment_epoch=described.assignment_epoch,
        authorized_operations=_operations(described.authorized_operations),
    )


def _classic_group(described: ClassicGroup, coordinator: Node) -> GroupDescription:
    members = [_classic_member(each, described.protocol_type) for each in described.members]
    return GroupDescription(
        described.group_id,
        "classic",
        described.group_state,
        protocol_type=described.protocol_type,
        assignor=described.protocol_data,
        coordinator=coordinator,
        members=members,
        authorized_operations=_operations(described.authorized_operations),
    )


def _classic_member(described: DescribedGroupMember, protocol_type: str) -> MemberDescription:
    """Return a member; decode its subscription and assignment if the type is "consumer"."""
    metadata, assigned = bytes(described.member_metadata), bytes(described.member_assignment)
    assignment: list[TopicPartition] = []
    topics: list[str] = []
    if protocol_type == PROTOCOL_TYPE:
        try:
            assignment = sorted(decode_assignment(assigned).partitions)
            topics = sorted(decode_subscription(metadata).topics) if metadata else []
        except MalformedMessage:
            pass  # members may use a format of their own; the result has the bytes
    return MemberDescription(
        described.member_id,
        described.group_instance_id,
        described.client_id,
        described.client_host,
        assignment=assignment,
        subscribed_topics=topics,
        metadata=metadata,
        assignment_data=assigned,
    )


def _partitions(assignment: Assignment) -> list[TopicPartition]:
    return sorted(
        TopicPartition(topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )


def _operations(bits: int) -> frozenset[int] | None:
    if bits == _NO_OPERATIONS:
        return None
    return frozenset(number for number in range(32) if bits >> number & 1)
