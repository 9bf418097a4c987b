"""Applying records of types 17-23 to the groups: after an append, and when a shard loads.

Compaction drops a record once a later record has the same key, so replay must be able to apply each
record without the records before it. Tombstones of unknown keys have no effect.
"""

from __future__ import annotations

from embedlog.coordinator.group.member_replay import MemberReplay
from embedlog.coordinator.group.streams import member_records, topology_records
from embedlog.coordinator.group.streams.member import StreamsMember
from embedlog.coordinator.group.streams.streams_group import StreamsGroup
from wire.schemas import streams_group_metadata as schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.group import Group

    Groups = dict[str, Group]


def replay(groups: Groups, key: Any, value: Any, metadata: Callable[[], MetadataImage]) -> None:
    """Apply one record to `groups`; a `value` of None is a tombstone."""
    apply = _BY_KEY[type(key)]
    group = groups.get(key.group_id)
    if value is not None:
        if not isinstance(group, StreamsGroup):
            # It replaces a group of another type, whose records are all earlier.
            group = groups[key.group_id] = StreamsGroup(key.group_id, metadata)
        apply(group, key, value)
    elif isinstance(group, StreamsGroup):
        if type(key) is schema.StreamsGroupMetadataKey:
            del groups[key.group_id]
        else:
            apply(group, key, None)


def _facts(group: StreamsGroup, _key: Any, value: schema.StreamsGroupMetadataValue) -> None:
    facts = member_records.read_facts(value)
    group.group_epoch = facts.epoch
    group.metadata_hash = facts.metadata_hash
    group.validated_topology_epoch = facts.validated_topology_epoch
    group.assignment_configs = facts.assignment_configs
    group.stored_description_epoch = facts.stored_description_epoch
    group.failed_description_epoch = facts.failed_description_epoch


def _topology(
    group: StreamsGroup, _key: Any, value: schema.StreamsGroupTopologyValue | None
) -> None:
    group.topology = None if value is None else topology_records.read_topology(value)


_MEMBERS = MemberReplay(
    StreamsMember,
    with_metadata=member_records.with_metadata,
    with_assignment=member_records.with_assignment,
    read_target=member_records.read_target,
)

_BY_KEY: dict[type, Callable[[StreamsGroup, Any, Any], None]] = {
    schema.StreamsGroupMetadataKey: _facts,
    schema.StreamsGroupTopologyKey: _topology,
    schema.StreamsGroupMemberMetadataKey: _MEMBERS.member,
    schema.StreamsGroupTargetAssignmentMetadataKey: _MEMBERS.target_epoch,
    schema.StreamsGroupTargetAssignmentMemberKey: _MEMBERS.target,
    schema.StreamsGroupCurrentMemberAssignmentKey: _MEMBERS.assignment,
}
