"""ConsumerGroupDescribe of one group."""

from __future__ import annotations

from wire.schemas.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup

_CLASSIC = 0
_CONSUMER = 1


def described(
    group: ConsumerGroup, metadata: MetadataImage, default_assignor: str
) -> DescribedGroup:
    """Describe a group and its members, in the order of joining. O(members + partitions)."""
    members = []
    for member in group.members.values():
        shown = Member(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            member_epoch=member.epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topics),
            subscribed_topic_regex=member.regex,
            # The member still owns the partitions that it is giving up.
            assignment=_shown([member.assigned, member.revoking], metadata),
            target_assignment=_shown([group.target_of(member)], metadata),
            member_type=_CONSUMER if member.classic is None else _CLASSIC,
        )
        members.append(shown)
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.group_epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor_votes.preferred(default_assignor),
        members=members,
    )


def _shown(held: Iterable[Mapping[bytes, Iterable[int]]], metadata: MetadataImage) -> Assignment:
    numbers: dict[bytes, set[int]] = {}
    for partitions in held:
        for topic_id, some in partitions.items():
            numbers.setdefault(topic_id, set()).update(some)
    return Assignment(
        topic_partitions=[
            TopicPartitions(
                topic_id=topic_id,
                topic_name=metadata.topics_by_id[topic_id].name,
                partitions=sorted(some),
            )
            for topic_id, some in numbers.items()
            if topic_id in metadata.topics_by_id
        ]
    )
