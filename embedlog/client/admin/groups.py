"""Admin calls about groups and their members. The first use of a call imports its requests."""

from __future__ import annotations

from embedlog import errors
from embedlog.client import arguments
from embedlog.client.admin.part import AdminPart, in_turn
from embedlog.client.admin.results import AdminValue, ItemResults, results_of
from embedlog.common import TopicPartition
from embedlog.errors import KafkaError
from wire.error_codes import ErrorCode
from wire.errors import MalformedMessage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from embedlog.client.admin.coordinators import Answer, CoordinatorCalls
    from embedlog.client.cluster_nodes import Node
    from wire.schemas.consumer_group_describe import Assignment, ConsumerGroupDescribeResponse
    from wire.schemas.consumer_group_describe import DescribedGroup as ConsumerGroup
    from wire.schemas.delete_groups import DeleteGroupsResponse
    from wire.schemas.describe_groups import DescribedGroup as ClassicGroup
    from wire.schemas.describe_groups import DescribedGroupMember, DescribeGroupsResponse
    from wire.schemas.leave_group import MemberIdentity

_NOT_OF_THE_CONSUMER_PROTOCOL = frozenset(
    (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
)
_CONSUMER = "consumer"
"""The protocol type of consumers, in both group types."""
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

    `group_type` is "classic", "consumer" or "share". The epochs are -1 in a classic group.
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


class GroupAdmin(AdminPart):
    """Lists, describes and deletes groups, and removes their members."""

    @in_turn
    def list_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout_ms: int | None = None,
    ) -> ItemResults[str | int, GroupListing]:
        """Return the groups of all brokers by group id; `errors` has failed brokers by node id.

        `states` ("Stable", "Empty", ...) and `types` ("classic", "consumer", ...) are filters that
        ignore case. A broker that is too old for a filter answers UnsupportedVersion.
        """
        from embedlog.client.admin.coordinators import ask_all_coordinators
        from wire.schemas.list_groups import ListGroupsRequest

        states = arguments.names(states, "list_groups", "states", what="states of groups")
        types = arguments.names(types, "list_groups", "types", what="types of groups")
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        results: ItemResults[str | int, GroupListing] = ItemResults()
        for response in ask_all_coordinators(self._calls, request, results.failures, timeout_ms):
            for each in response.groups:
                results.values[each.group_id] = GroupListing(
                    each.group_id, each.protocol_type, each.group_state, each.group_type
                )
        return results

    @in_turn
    def describe_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[str, GroupDescription]:
        """Return state, members and assignments of consumer and classic groups."""
        wanted = arguments.names(group_ids, "describe_groups", "group_ids", what="group ids")
        return self._describe(wanted, include_authorized_operations, timeout_ms)

    def _describe(
        self, wanted: list[str], include_authorized_operations: bool, timeout_ms: int | None
    ) -> ItemResults[str, GroupDescription]:
        from embedlog.client.admin.coordinators import CoordinatorCalls
        from wire.schemas.consumer_group_describe import ConsumerGroupDescribeRequest
        from wire.schemas.describe_groups import DescribedGroup as ClassicGroup
        from wire.schemas.describe_groups import DescribeGroupsRequest

        coordinators = CoordinatorCalls(self._calls, timeout_ms)
        # Request all as consumer groups first, then the others as classic groups.
        outcomes = coordinators.ask(
            wanted,
            ConsumerGroupDescribeRequest,
            lambda groups, _version: ConsumerGroupDescribeRequest(
                group_ids=groups, include_authorized_operations=include_authorized_operations
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
                groups=groups, include_authorized_operations=include_authorized_operations
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

    @in_turn
    def delete_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> ItemResults[str, None]:
        """Delete groups without members, with their offsets."""
        from embedlog.client.admin.coordinators import CoordinatorCalls
        from wire.schemas.delete_groups import DeleteGroupsRequest

        wanted = arguments.names(group_ids, "delete_groups", "group_ids", what="group ids")

        def take(response: DeleteGroupsResponse, _groups: list[str]) -> dict[str, Answer[None]]:
            return {
                each.group_id: (each.error_code, each.error_message, None)
                for each in response.results
            }

        outcomes = CoordinatorCalls(self._calls, timeout_ms).ask(
            wanted,
            DeleteGroupsRequest,
            lambda groups, _version: DeleteGroupsRequest(groups_names=groups),
            take,
        )
        return results_of(outcomes)

    @in_turn
    def remove_members(
        self,
        group_id: str,
        *,
        member_ids: Iterable[str] | None = None,
        instance_ids: Iterable[str] | None = None,
        reason: str | None = None,
        timeout_ms: int | None = None,
    ) -> ItemResults[str, None]:
        """Remove members from a group, by member id or, if static, by instance id.

        Without ids, all members are removed. The keys of the results are the given ids; without
        ids, a static member's key is its instance id, the key of any other member is its member id.
        A running member learns of its removal with the next heartbeat: it loses its partitions and
        joins again.

        Raises:
            KafkaError: the group or its coordinator has an error; no member was removed.
        """
        from embedlog.client.admin.coordinators import CoordinatorCalls
        from wire.schemas.leave_group import LeaveGroupRequest, MemberIdentity

        call = "remove_members"
        arguments.name(group_id, call, "group_id", what="a group's id")
        if member_ids is not None:
            member_ids = arguments.names(member_ids, call, "member_ids", what="member ids")
        if instance_ids is not None:
            instance_ids = arguments.names(instance_ids, call, "instance_ids", what="instance ids")
        deadline = self._calls.deadline(timeout_ms)
        if member_ids is None and instance_ids is None:
            described = self._describe([group_id], False, timeout_ms)[group_id]
            instance_ids = [each.instance_id for each in described.members if each.instance_id]
            member_ids = [each.member_id for each in described.members if not each.instance_id]
        leaving = [
            *(MemberIdentity(member_id=each, reason=reason) for each in member_ids or ()),
            *(MemberIdentity(group_instance_id=each, reason=reason) for each in instance_ids or ()),
        ]
        results: ItemResults[str, None] = ItemResults()
        if not leaving:
            return results
        coordinators = CoordinatorCalls(self._calls, self._calls.left_ms(deadline))
        newest = self._calls.newest_version(LeaveGroupRequest, self._calls.left_ms(deadline))
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
    from wire.schemas.leave_group import LeaveGroupRequest

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
        protocol_type=_CONSUMER,
        assignor=described.assignor_name,
        coordinator=coordinator,
        members=members,
        group_epoch=described.group_epoch,
        target_assignment_epoch=described.assignment_epoch,
        authorized_operations=operations(described.authorized_operations),
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
        authorized_operations=operations(described.authorized_operations),
    )


def _classic_member(described: DescribedGroupMember, protocol_type: str) -> MemberDescription:
    """Return a member; decode its subscription and assignment if the type is "consumer"."""
    from embedlog.client.consumer.group.embedded_protocol import (
        decode_assignment,
        decode_subscription,
    )

    metadata, assigned = bytes(described.member_metadata), bytes(described.member_assignment)
    assignment: list[TopicPartition] = []
    topics: list[str] = []
    if protocol_type == _CONSUMER:
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


def operations(bits: int) -> frozenset[int] | None:
    """Return the numbers of the operations that a group's description allows; None if unasked."""
    if bits == _NO_OPERATIONS:
        return None
    return frozenset(number for number in range(32) if bits >> number & 1)
