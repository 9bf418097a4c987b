"""Classic groups as records of `__consumer_offsets`, and back (record type 2)."""

from __future__ import annotations

from embedlog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from embedlog.coordinator.group.classic.classic_member import ClassicMember
from embedlog.coordinator.result import CoordinatorRecord
from wire.schemas.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VALUE_VERSION = 3
"""Value version of the records that this file makes: it has instance ids and is not yet flexible.
All versions from 0 can be read."""


def group_record(
    group: ClassicGroup,
    assignments: Mapping[str, bytes] | None = None,
    *,
    departed_leader_id: str | None = None,
) -> CoordinatorRecord:
    """Return the record of the present generation; `assignments` by member id replace the members'
    own.

    If the group lost a member and has not reassigned its partitions, the record's leader is not a
    member, and loading rebalances the group.
    """
    name = group.protocol_name
    members = []
    for member in group.members.by_id.values():
        assert name is not None, group.group_id
        assignment = member.assignment if assignments is None else assignments[member.member_id]
        members.append(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(name),
                assignment=assignment,
            )
        )
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation_id,
        protocol=name,
        leader=departed_leader_id or group.members.leader_id,
        current_state_timestamp=group.state_timestamp_ms,
        members=members,
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value, VALUE_VERSION)


def new_group_record(group: ClassicGroup) -> CoordinatorRecord:
    """Return the record of a new group, which has no generation yet; members may be joining it."""
    value = GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=group.state_timestamp_ms,
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value, VALUE_VERSION)


def group_from(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Return the stored group: stable with its members, or empty. None of its timers runs yet."""
    group = ClassicGroup(
        group_id,
        state=GroupState.STABLE if value.members else GroupState.EMPTY,
        generation_id=value.generation,
        protocol_type=value.protocol_type,
        protocol_name=value.protocol,
        leader_id=value.leader,
        state_timestamp_ms=value.current_state_timestamp,
    )
    for stored in value.members:
        group.add(_member_from(stored, value.protocol or ""), value.protocol_type)
    group.note_subscriptions()
    return group


def _member_from(stored: MemberMetadata, protocol_name: str) -> ClassicMember:
    rebalance_timeout_ms = stored.rebalance_timeout
    return ClassicMember(
        stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        # Records of version 0 have no rebalance time-out: their members used JoinGroup version 0.
        rebalance_timeout_ms=(
            stored.session_timeout if rebalance_timeout_ms == -1 else rebalance_timeout_ms
        ),
        session_timeout_ms=stored.session_timeout,
        protocols=((protocol_name, bytes(stored.subscription)),),
        assignment=bytes(stored.assignment),
    )
