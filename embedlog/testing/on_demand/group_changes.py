"""Changes of one group, as operations on its shard. Requires for each: the shard's lock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from embedlog.coordinator.group import assignors
from embedlog.coordinator.group.classic.classic_group import ClassicGroup
from embedlog.coordinator.group.group import ClientIdentity
from embedlog.coordinator.group.offsets.store import offset_record
from embedlog.coordinator.result import Result
from embedlog.errors import GroupIdNotFound, IllegalState, error_for
from embedlog.testing.inspection.group_values import GroupMember
from wire.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from wire.schemas.group_metadata import OffsetCommitValue
from wire.schemas.leave_group import LeaveGroupRequest, MemberIdentity

if TYPE_CHECKING:
    from embedlog.common import TopicPartition
    from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
    from embedlog.coordinator.group.group_shard import GroupShard
    from embedlog.coordinator.group.streams.streams_group import StreamsGroup

_SHARE = "share"
_STREAMS = "streams"
_REASON = "a test asked for it"
_LEAVE_VERSION = 5
_HEARTBEAT_VERSION = 1
_AT_ONCE = 0
"""The time of a target assignment that lets the next one follow at once."""
_NO_EXPIRY = -1


def rebalance(shard: GroupShard, group_id: str) -> Result[int]:
    """Begin a rebalance; answer with the generation or epoch before it.

    Raises:
        GroupIdNotFound, IllegalState: there is no such group, or it has no members, or they share
            their partitions.
    """
    group = existing(shard, group_id)
    _refuse_share_group(group)
    if group.GROUP_TYPE == _STREAMS:
        return _next_epoch(group)
    if not isinstance(group, ClassicGroup):
        return _next_target(shard, group)
    before = group.generation_id
    if not group.members.by_id:
        raise no_members(group_id)
    result: Result[int] = Result()
    if group.can_rebalance:
        result = shard.classic.rebalances.prepare(group, _REASON)
    result.response = before
    return result


def _next_epoch(group: StreamsGroup) -> Result[int]:
    """Raise the epoch of a streams group; the next heartbeat assigns its tasks."""
    from embedlog.coordinator.group.streams import member_records

    if not group.members:
        raise no_members(group.group_id)
    before = group.group_epoch
    facts = group.facts().replace(epoch=before + 1)
    return Result([member_records.group_facts(group.group_id, facts)], before)


def _next_target(shard: GroupShard, group: ConsumerGroup) -> Result[int]:
    from embedlog.coordinator.group.consumer import member_records
    from embedlog.coordinator.group.consumer.target_assignment import make_target_assignment

    member = next(iter(group.members.values()), None)
    if member is None:
        raise no_members(group.group_id)
    before, context = group.group_epoch, shard.context
    default = assignors.configured(context.config.group_consumer_assignors)[0]
    made = make_target_assignment(
        group,
        member,
        context.metadata(),
        assignor=group.assignor_votes.preferred(default),
        epoch=before + 1,
        now_ms=_AT_ONCE,
        pinned=context.pinned.get(group.group_id),
    )
    epoch = member_records.group_epoch(group.group_id, before + 1, group.metadata_hash)
    return Result([epoch, *made.records], before)


def expel(shard: GroupShard, group_id: str, member: GroupMember) -> Result[Any]:
    """Remove a member, as the end of its session does."""
    group = existing(shard, group_id)
    nobody = ClientIdentity.of("", "")
    if group.GROUP_TYPE == _SHARE:
        from wire.schemas.share_group_heartbeat import ShareGroupHeartbeatRequest

        shared = ShareGroupHeartbeatRequest(
            group_id=group_id, member_id=member.member_id, member_epoch=-1
        )
        return shard.share_heartbeat(nobody, shared)
    if group.GROUP_TYPE == _STREAMS:
        from wire.schemas.streams_group_heartbeat import StreamsGroupHeartbeatRequest

        leaving_streams = StreamsGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member.member_id,
            member_epoch=-1,
            instance_id=member.instance_id,
        )
        return shard.streams_heartbeat(nobody, leaving_streams, _HEARTBEAT_VERSION)
    is_classic = isinstance(group, ClassicGroup)
    if not is_classic and group.member(member.member_id).classic is None:
        leaving = ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member.member_id,
            member_epoch=-1,
            instance_id=member.instance_id,
        )
        return shard.consumer_heartbeat(nobody, leaving, _HEARTBEAT_VERSION)
    identity = MemberIdentity(
        member_id=member.member_id, group_instance_id=member.instance_id, reason=_REASON
    )
    left = shard.leave(LeaveGroupRequest(group_id=group_id, members=[identity]), _LEAVE_VERSION)
    answer: Any = left.response
    for each in answer.members:
        if each.error_code:
            raise error_for(each.error_code)
    return left


def commit(shard: GroupShard, group_id: str, offsets: Mapping[TopicPartition, int]) -> Result[None]:
    """Commit offsets, also of a group that has members. Raise IllegalState for a share group."""
    _refuse_share_group(shard.groups.get(group_id))
    metadata = shard.context.metadata()
    now_ms = shard.context.wall_ms()
    return Result(
        [
            offset_record(
                group_id,
                place.topic,
                place.partition,
                OffsetCommitValue(
                    offset=offset,
                    leader_epoch=-1,
                    metadata="",
                    commit_timestamp=now_ms,
                    expire_timestamp=_NO_EXPIRY,
                    topic_id=metadata.topics_by_name[place.topic].topic_id,
                ),
            )
            for place, offset in offsets.items()
        ]
    )


def existing(shard: GroupShard, group_id: str) -> Any:
    """Return the group. Raise GroupIdNotFound if there is none."""
    found = shard.groups.get(group_id)
    if found is None:
        raise GroupIdNotFound(f"there is no group {group_id!r}")
    return found


def _refuse_share_group(group: Any) -> None:
    if group is not None and group.GROUP_TYPE == _SHARE:
        raise IllegalState(
            f"{group.group_id!r} is a share group: no rebalances, no committed offsets"
        )


def no_members(group_id: str) -> IllegalState:
    """Return the error for a group without members."""
    return IllegalState(f"group {group_id!r} has no members")
