"""ShareGroupDescribe of one group."""

from __future__ import annotations

from embedlog.coordinator.group.assignors import simple
from wire.schemas.share_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.share.share_group import ShareGroup


def described(group: ShareGroup, metadata: MetadataImage) -> DescribedGroup:
    """Describe a group and its members, in the order of joining. O(members + partitions)."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.group_epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=simple.NAME,
        members=[
            Member(
                member_id=member.member_id,
                rack_id=member.rack_id,
                member_epoch=member.epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=sorted(member.topics),
                assignment=Assignment(
                    topic_partitions=[
                        TopicPartitions(
                            topic_id=topic_id,
                            topic_name=metadata.topics_by_id[topic_id].name,
                            partitions=sorted(numbers),
                        )
                        for topic_id, numbers in member.assigned.items()
                        if topic_id in metadata.topics_by_id
                    ]
                ),
            )
            for member in group.members.values()
        ],
    )
