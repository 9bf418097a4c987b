"""Applying records of types 3-8 and 16 to the groups: after an append, and when a shard loads.

Compaction drops a record once a later record has the same key, so replay must be able to apply each
record without the records before it. Tombstones of unknown keys have no effect.
"""

from __future__ import annotations

from embedlog.coordinator.group.consumer import member_records
from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
from embedlog.coordinator.group.consumer.member import ConsumerMember
from embedlog.coordinator.group.member_replay import MemberReplay
from wire.schemas import consumer_group_metadata as schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.coordinator.group.group import Group

    Groups = dict[str, Group]


def replay(groups: Groups, key: Any, value: Any) -> None:
    """Apply one record to `groups`; a `value` of None is a tombstone."""
    apply = _BY_KEY[type(key)]
    if value is not None:
        apply(_group_of(groups, key.group_id), key, value)
        return
    group = groups.get(key.group_id)
    if isinstance(group, ConsumerGroup):
        if isinstance(key, schema.ConsumerGroupMetadataKey):
            del groups[key.group_id]
        else:
            apply(group, key, None)


def _group_of(groups: Groups, group_id: str) -> ConsumerGroup:
    """Return or create the group. It replaces a classic group, whose records are all earlier."""
    group = groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        group = groups[group_id] = ConsumerGroup(group_id)
    return group


def _group_epoch(group: ConsumerGroup, _key: Any, value: schema.ConsumerGroupMetadataValue) -> None:
    group.group_epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def _partition_metadata(_group: ConsumerGroup, _key: Any, _value: Any) -> None:
    """Ignore the record: the metadata hash has replaced it since Kafka 4.0."""


def _target_epoch(
    group: ConsumerGroup,
    _key: Any,
    value: schema.ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    if value is not None:
        group.target_epoch = value.assignment_epoch
        group.target_made_ms = value.assignment_timestamp


def _regex(
    group: ConsumerGroup,
    key: schema.ConsumerGroupRegularExpressionKey,
    value: schema.ConsumerGroupRegularExpressionValue | None,
) -> None:
    resolved = group.subscriptions.resolved
    if value is None:
        resolved.pop(key.regular_expression, None)
    else:
        resolved[key.regular_expression] = member_records.read_regex(value)


_MEMBERS = MemberReplay(
    ConsumerMember,
    with_metadata=member_records.with_metadata,
    with_assignment=member_records.with_assignment,
    read_target=member_records.read_target,
)

_BY_KEY: dict[type, Callable[[ConsumerGroup, Any, Any], None]] = {
    schema.ConsumerGroupMetadataKey: _group_epoch,
    schema.ConsumerGroupPartitionMetadataKey: _partition_metadata,
    schema.ConsumerGroupMemberMetadataKey: _MEMBERS.member,
    schema.ConsumerGroupTargetAssignmentMetadataKey: _target_epoch,
    schema.ConsumerGroupTargetAssignmentMemberKey: _MEMBERS.target,
    schema.ConsumerGroupCurrentMemberAssignmentKey: _MEMBERS.assignment,
    schema.ConsumerGroupRegularExpressionKey: _regex,
}
