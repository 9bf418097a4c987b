"""The next target assignment of a group: each member's partitions from an epoch on."""

from __future__ import annotations

from embedlog.coordinator.group import assignors
from embedlog.coordinator.group.assignors.spec import MemberSpec
from embedlog.coordinator.group.consumer import member_records
from embedlog.coordinator.group.target import TargetAssignment, changed_targets, ids_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
    from embedlog.coordinator.group.consumer.member import ConsumerMember
    from embedlog.coordinator.shard_context import Pinned


def make_target_assignment(
    group: ConsumerGroup,
    updated: ConsumerMember,
    metadata: MetadataImage,
    *,
    assignor: str,
    epoch: int,
    now_ms: int,
    pinned: Pinned | None = None,
) -> TargetAssignment:
    """Assign all subscribed partitions, with `updated` in place of the member's present state.

    `pinned` replaces the assignor. Only changed assignments become records. O(members + partitions)
    for most assignors.
    """
    replaced = group.static_members.get(updated.instance_id or "")
    members = dict(group.members)
    if replaced is not None and replaced != updated.member_id:
        del members[replaced]
    members[updated.member_id] = updated
    topic_ids: dict[frozenset[str], frozenset[bytes]] = {}
    specs: dict[str, MemberSpec] = {}
    for member_id, member in members.items():
        topics = group.subscriptions.topics_of(member)
        ids = topic_ids.get(topics)
        if ids is None:
            ids = topic_ids[topics] = ids_of(topics, metadata)
        specs[member_id] = MemberSpec(ids, group.target_of(member), member.instance_id)
    subscribed = sorted(frozenset[str]().union(*topic_ids))
    known = [
        metadata.topics_by_name[name] for name in subscribed if name in metadata.topics_by_name
    ]
    counts = {topic.topic_id: len(topic.partitions) for topic in known}
    found = assignors.assignor(assignor)(specs, counts) if pinned is None else pinned(members)
    records = changed_targets(group, found, member_records.target_assignment)
    records.append(member_records.target_epoch(group.group_id, epoch, now_ms))
    return TargetAssignment(epoch, found, records)
