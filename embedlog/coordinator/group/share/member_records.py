"""A share group's state as records of `__consumer_offsets`, types 10-15.

10  group, member    client and subscription of the member
11  group            group epoch, metadata hash
12  group            target assignment epoch, time of the assignment
13  group, member    target assignment
14  group, member    member epochs and partitions
15  group            share partitions: initializing, initialized; deleting topics
"""

from __future__ import annotations

from embedlog.coordinator.group.share.member import ShareMember
from embedlog.coordinator.group.share.state_topics import Named, StateTopics
from embedlog.coordinator.result import CoordinatorRecord
from wire.schemas import share_group_metadata as schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.coordinator.group.assignors.spec import Partitions

_STABLE = 0


def member_metadata(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """Return the record of type 10: one member's client and subscription."""
    return CoordinatorRecord(
        schema.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        schema.ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topics),
        ),
    )


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Return the record of type 11: group epoch and metadata hash."""
    return CoordinatorRecord(
        schema.ShareGroupMetadataKey(group_id=group_id),
        schema.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Return the record of type 12. Timestamp 0 allows the next assignment at once."""
    return CoordinatorRecord(
        schema.ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        schema.ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=timestamp_ms
        ),
    )


def target_assignment(group_id: str, member_id: str, target: Partitions) -> CoordinatorRecord:
    """Return the record of type 13: the target of one member."""
    return CoordinatorRecord(
        schema.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        schema.ShareGroupTargetAssignmentMemberValue(
            topic_partitions=[
                schema.TopicPartition(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in target.items()
            ]
        ),
    )


def current_assignment(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """Return the record of type 14: one member's epochs and partitions."""
    return CoordinatorRecord(
        schema.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        schema.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=_STABLE,
            assigned_partitions=[
                schema.TopicPartitions(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in member.assigned.items()
            ],
        ),
    )


def state_topics(group_id: str, topics: StateTopics) -> CoordinatorRecord:
    """Return the record of type 15: the group's share partitions."""
    return CoordinatorRecord(
        schema.ShareGroupStatePartitionMetadataKey(group_id=group_id),
        schema.ShareGroupStatePartitionMetadataValue(
            initializing_topics=_infos(topics.initializing),
            initialized_topics=_infos(topics.initialized),
            deleting_topics=[
                schema.TopicInfo(topic_id=topic_id, topic_name=name)
                for topic_id, name in topics.deleting.items()
            ],
        ),
    )


def without_member(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the tombstones of one member: types 14, 13 and 10, in the order that replay needs."""
    keys = (
        schema.ShareGroupCurrentMemberAssignmentKey,
        schema.ShareGroupTargetAssignmentMemberKey,
        schema.ShareGroupMemberMetadataKey,
    )
    return [CoordinatorRecord(key(group_id=group_id, member_id=member_id)) for key in keys]


def without_group(group_id: str, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
    """Return the tombstones of a whole group."""
    members = [record for each in member_ids for record in without_member(group_id, each)]
    return [
        *members,
        CoordinatorRecord(schema.ShareGroupTargetAssignmentMetadataKey(group_id=group_id)),
        CoordinatorRecord(schema.ShareGroupStatePartitionMetadataKey(group_id=group_id)),
        CoordinatorRecord(schema.ShareGroupMetadataKey(group_id=group_id)),
    ]


def with_metadata(member: ShareMember, value: schema.ShareGroupMemberMetadataValue) -> ShareMember:
    """Return `member` with the metadata of a record of type 10."""
    return member.replace(
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
    )


def with_assignment(
    member: ShareMember, value: schema.ShareGroupCurrentMemberAssignmentValue | None
) -> ShareMember:
    """Return `member` with the assignment of a record of type 14; a tombstone resets it."""
    if value is None:
        value = schema.ShareGroupCurrentMemberAssignmentValue()
    return member.replace(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        assigned={each.topic_id: frozenset(each.partitions) for each in value.assigned_partitions},
    )


def read_target(value: schema.ShareGroupTargetAssignmentMemberValue) -> Partitions:
    """Return the target of a record of type 13."""
    return {each.topic_id: frozenset(each.partitions) for each in value.topic_partitions}


def read_state_topics(value: schema.ShareGroupStatePartitionMetadataValue) -> StateTopics:
    """Return the share partitions of a record of type 15."""
    return StateTopics(
        _read_infos(value.initializing_topics),
        _read_infos(value.initialized_topics),
        {each.topic_id: each.topic_name for each in value.deleting_topics},
    )


def _infos(named: Named) -> list[schema.TopicPartitionsInfo]:
    return [
        schema.TopicPartitionsInfo(topic_id=topic_id, topic_name=name, partitions=sorted(numbers))
        for topic_id, (name, numbers) in named.items()
    ]


def _read_infos(infos: Iterable[schema.TopicPartitionsInfo]) -> Named:
    return {each.topic_id: (each.topic_name, frozenset(each.partitions)) for each in infos}
