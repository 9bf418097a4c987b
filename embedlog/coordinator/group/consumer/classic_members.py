"""Members of the classic protocol in a consumer group (KIP-848, migration).

    JoinGroup    like a heartbeat with a full subscription; the generation is the member epoch
    SyncGroup    answers the present assignment; it is never parked, and no member leads
    Heartbeat    REBALANCE_IN_PROGRESS if the member must join again to make progress
    LeaveGroup   like leaving by a heartbeat

The member's next assignment omits partitions that it must give up; it has given them up when it
joins again without owning them.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import uuid_to_text
from embedlog.coordinator.group.classic.classic_member import join_refused, protocols_of
from embedlog.coordinator.group.classic.leave import leave_response, leaving_members
from embedlog.coordinator.group.consumer import member as states
from embedlog.coordinator.group.consumer import protocol_bytes
from embedlog.coordinator.group.consumer.consumer_group import PROTOCOL_TYPE, ConsumerGroup
from embedlog.coordinator.group.consumer.member import ClassicFacts, ConsumerMember
from embedlog.coordinator.group.consumer.member_timers import JOIN, SYNC
from embedlog.coordinator.group.consumer.update import MemberUpdate
from embedlog.coordinator.result import CoordinatorRecord, Result
from embedlog.errors import KafkaError
from wire.error_codes import ErrorCode
from wire.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse
from wire.schemas.join_group import JoinGroupRequest, JoinGroupResponse
from wire.schemas.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from wire.schemas.sync_group import SyncGroupRequest, SyncGroupResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.consumer.membership import Membership
    from embedlog.coordinator.group.consumer.migration import Migration
    from embedlog.coordinator.group.group import ClientIdentity

    JoinResult = Result[JoinGroupResponse]

_FIRST_WITH_REQUIRED_ID = 4


class ClassicMembers:
    """Answers classic members of one shard's consumer groups. Requires: the shard's lock."""

    def __init__(self, membership: Membership, migration: Migration) -> None:
        self._membership = membership
        self._context = membership.context
        self._migration = migration

    # JoinGroup

    def join(
        self,
        group: ConsumerGroup,
        client: ClientIdentity,
        request: JoinGroupRequest,
        version: int,
    ) -> JoinResult:
        """Let a classic member join, or join again to get its next step."""
        try:
            return self._join(group, client, request, version)
        except KafkaError as error:
            return Result((), join_refused(version, error.code))

    def _join(
        self,
        group: ConsumerGroup,
        client: ClientIdentity,
        request: JoinGroupRequest,
        version: int,
    ) -> JoinResult:
        is_unknown = not request.member_id
        member_id = request.member_id or uuid_to_text(self._context.random.uuid())
        instance_id = request.group_instance_id
        self._migration.check_classic_members_allowed()
        self._membership.check_room(group, member_id, instance_id)
        protocols = protocols_of(request.protocols)
        names = frozenset(name for name, _ in protocols)
        if not group.supports_protocols(request.protocol_type, names):
            raise errors.InconsistentGroupProtocol()
        if is_unknown and instance_id is None and version >= _FIRST_WITH_REQUIRED_ID:
            code = ErrorCode.MEMBER_ID_REQUIRED
            return Result((), join_refused(version, code, member_id))
        records: list[CoordinatorRecord] = []
        former = None if instance_id is None else group.static_member(instance_id)
        if instance_id is None:
            before = group.members.get(member_id) or ConsumerMember(member_id)
        elif is_unknown:
            before = self._membership.joining_static_member(
                group, instance_id, member_id, records, is_classic=True
            )
        else:
            before = group.identified(member_id, instance_id)
        subscription = protocol_bytes.subscription(protocols[0][1])
        after = before.replace(
            instance_id=instance_id or before.instance_id,
            rack_id=subscription.rack_id or before.rack_id,
            client_id=client.client_id,
            client_host=client.client_host,
            rebalance_timeout_ms=_rebalance_timeout_ms(request),
            topics=frozenset(subscription.topics),
            regex="",
            classic=ClassicFacts(request.session_timeout_ms, protocols),
        )
        owned = protocol_bytes.by_topic_id(subscription.owned_partitions, self._context.metadata())
        member = MemberUpdate(self._context, group, before, after, records).run(owned)
        response = JoinGroupResponse(
            member_id=member_id,
            generation_id=member.epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=protocols[0][0],
        )
        if former is not None and former.member_id != member_id:
            downgraded = self._migration.downgrade_replacing(group, former, member)
            if downgraded is not None:
                downgraded.response = response
                return downgraded
        return self._joined(group.group_id, member, records, response)

    def _joined(
        self,
        group_id: str,
        member: ConsumerMember,
        records: list[CoordinatorRecord],
        response: JoinGroupResponse,
    ) -> JoinResult:
        timers = self._membership.timers
        assert member.classic is not None, member
        session_ms = member.classic.session_timeout_ms

        def appended(error: KafkaError | None) -> None:
            if error is None:
                timers.cancel(JOIN, group_id, member.member_id)
                timers.start_session(group_id, member.member_id, session_ms)
                timers.start_sync(group_id, member.member_id, member.rebalance_timeout_ms)

        return Result(records, response, on_append=appended)

    # SyncGroup

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> Result[SyncGroupResponse]:
        """Answer the member's present assignment."""
        try:
            member = group.identified(request.member_id, request.group_instance_id)
            facts = _facts_of(member)
            _check_generation(member, request.generation_id)
            name, metadata = facts.protocols[0]
            if (
                request.protocol_type not in (None, PROTOCOL_TYPE)
                or request.protocol_name not in (None, name)
            ):  # fmt: skip
                raise errors.InconsistentGroupProtocol()
            if group.target_epoch > member.epoch and member.state != states.UNREVOKED_PARTITIONS:
                self._membership.timers.start_join(group.group_id, member)
                raise errors.RebalanceInProgress()
        except KafkaError as error:
            return Result((), SyncGroupResponse(error_code=error.code))
        self._membership.timers.cancel(SYNC, group.group_id, member.member_id)
        self._membership.timers.start_session(
            group.group_id, member.member_id, facts.session_timeout_ms
        )
        response = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=protocol_bytes.assignment_for(
                member.assigned, self._context.metadata(), subscription_metadata=metadata
            ),
        )
        return Result((), response)

    # Heartbeat

    def heartbeat(
        self, group: ConsumerGroup, request: HeartbeatRequest
    ) -> Result[HeartbeatResponse]:
        """Keep the session alive; tell the member if it must join again."""
        try:
            member = group.identified(request.member_id, request.group_instance_id)
            facts = _facts_of(member)
            _check_generation(member, request.generation_id)
        except KafkaError as error:
            return Result((), HeartbeatResponse(error_code=error.code))
        group_id = group.group_id
        self._membership.timers.start_session(group_id, member.member_id, facts.session_timeout_ms)
        may_go_on = (
            member.epoch < group.target_epoch
            or member.state == states.UNREVOKED_PARTITIONS
            or (
                member.state == states.UNRELEASED_PARTITIONS
                and not group.holders.hold_any(group.target_of(member), but_for=member.assigned)
            )
        )
        if not may_go_on:
            return Result((), HeartbeatResponse())
        self._membership.timers.start_join(group_id, member)
        return Result((), HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))

    # LeaveGroup

    def leave(
        self, group: ConsumerGroup, request: LeaveGroupRequest, version: int
    ) -> Result[LeaveGroupResponse]:
        """Remove members of either protocol, each with its own error code."""
        leaving: dict[str, ConsumerMember] = {}
        replies = []
        for identity in leaving_members(request, version):
            code = 0
            try:
                member = _leaving(group, identity)
                leaving[member.member_id] = member
            except KafkaError as error:
                code = error.code
            replies.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=code,
                )
            )
        response = leave_response(replies, version)
        if not leaving:
            return Result((), response)
        result = self._membership.remove(group, list(leaving.values()))
        result.response = response
        return result


def _facts_of(member: ConsumerMember) -> ClassicFacts:
    if member.classic is None:
        raise errors.UnknownMemberId(
            f"Member {member.member_id} does not use the classic protocol.",
        )
    return member.classic


def _check_generation(member: ConsumerMember, generation_id: int) -> None:
    if generation_id != member.epoch:
        raise errors.IllegalGeneration()


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """Return the rebalance time-out; version 0 has none and uses the session time-out."""
    if request.rebalance_timeout_ms == -1:
        return request.session_timeout_ms
    return request.rebalance_timeout_ms


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    instance_id = identity.group_instance_id
    if instance_id is None or identity.member_id:
        return group.identified(identity.member_id, instance_id)
    # Only an administrator may name a static member without its member id.
    found = group.static_member(instance_id)
    if found is None:
        raise errors.UnknownMemberId()
    return found
