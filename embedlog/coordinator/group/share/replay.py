"""Applying records of types 10-15 to the groups: after an append, and when a shard loads.

Compaction drops a record once a later record has the same key, so replay must be able to apply each
record without the records before it. Tombstones of unknown keys have no effect.
"""

from __future__ import annotations

from embedlog.coordinator.group.member_replay import MemberReplay
from embedlog.coordinator.group.share import member_records
from embedlog.coordinator.group.share.member import ShareMember
from embedlog.coordinator.group.share.share_group import ShareGroup
from embedlog.coordinator.group.share.state_topics import StateTopics
from wire.schemas import share_group_metadata as schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.coordinator.group.group import Group

    Groups = dict[str, Group]


def replay(groups: Groups, key: Any, value: Any, now_ms: int) -> None:
    """Apply one record to `groups`; a `value` of None is a tombstone. `now_ms` is monotonic."""
    apply = _BY_KEY[type(key)]
    group = groups.get(key.group_id)
    if value is not None:
        if not isinstance(group, ShareGroup):
            # It replaces a group of another type, whose records are all earlier.
            group = groups[key.group_id] = ShareGroup(key.group_id)
        apply(group, key, value)
        if type(key) is schema.ShareGroupStatePartitionMetadataKey:
            known, begun = group.begun_ms, group.state_topics.initializing
            group.begun_ms = {topic_id: known.get(topic_id, now_ms) for topic_id in begun}
    elif isinstance(group, ShareGroup):
        if type(key) is schema.ShareGroupMetadataKey:
            del groups[key.group_id]
        else:
            apply(group, key, None)


def _group_epoch(group: ShareGroup, _key: Any, value: schema.ShareGroupMetadataValue) -> None:
    group.group_epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def _state_topics(
    group: ShareGroup, _key: Any, value: schema.ShareGroupStatePartitionMetadataValue | None
) -> None:
    group.state_topics = StateTopics() if value is None else member_records.read_state_topics(value)


_MEMBERS = MemberReplay(
    ShareMember,
    with_metadata=member_records.with_metadata,
    with_assignment=member_records.with_assignment,
    read_target=member_records.read_target,
)

_BY_KEY: dict[type, Callable[[ShareGroup, Any, Any], None]] = {
    schema.ShareGroupMetadataKey: _group_epoch,
    schema.ShareGroupMemberMetadataKey: _MEMBERS.member,
    schema.ShareGroupTargetAssignmentMetadataKey: _MEMBERS.target_epoch,
    schema.ShareGroupTargetAssignmentMemberKey: _MEMBERS.target,
    schema.ShareGroupCurrentMemberAssignmentKey: _MEMBERS.assignment,
    schema.ShareGroupStatePartitionMetadataKey: _state_topics,
}
