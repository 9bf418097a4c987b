"""The next target assignment of a share group: each member's partitions from an epoch on."""

from __future__ import annotations

from embedlog.coordinator.group.assignors import simple
from embedlog.coordinator.group.assignors.spec import MemberSpec
from embedlog.coordinator.group.share import member_records
from embedlog.coordinator.group.share.member import ShareMember
from embedlog.coordinator.group.target import TargetAssignment, changed_targets, ids_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.share.share_group import ShareGroup


def make_target_assignment(
    group: ShareGroup,
    updated: ShareMember,
    metadata: MetadataImage,
    *,
    epoch: int,
    now_ms: int,
) -> TargetAssignment:
    """Assign the initialised partitions, with `updated` in place of the member's present state.

    Only changed assignments become records.
    """
    members = {**group.members, updated.member_id: updated}
    topic_ids: dict[frozenset[str], frozenset[bytes]] = {}
    specs: dict[str, MemberSpec] = {}
    for member_id, member in members.items():
        ids = topic_ids.get(member.topics)
        if ids is None:
            ids = topic_ids[member.topics] = ids_of(member.topics, metadata)
        specs[member_id] = MemberSpec(ids, group.target_of(member_id))
    partitions = assignable(group, frozenset[str]().union(*topic_ids), metadata)
    found = simple.assign(specs, partitions)
    records = changed_targets(group, found, member_records.target_assignment)
    records.append(member_records.target_epoch(group.group_id, epoch, now_ms))
    return TargetAssignment(epoch, found, records)


def assignable(
    group: ShareGroup, topics: Iterable[str], metadata: MetadataImage
) -> dict[bytes, frozenset[int]]:
    """Return the initialised partitions of these topics, in the order of the topics' names."""
    by_name = metadata.topics_by_name
    found = {}
    for name in sorted(topics):
        topic = by_name.get(name)
        if topic is not None:
            numbers = group.state_topics.numbers_initialized(topic.topic_id)
            if numbers:
                found[topic.topic_id] = numbers
    return found
