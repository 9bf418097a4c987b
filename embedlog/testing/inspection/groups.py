"""Reading groups out of their coordinators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from embedlog.common import TopicPartition
from embedlog.coordinator.group import assignors
from embedlog.coordinator.group.classic.subscription import read
from embedlog.testing.inspection.brokers import Brokers
from embedlog.testing.inspection.group_values import GroupMember, GroupValue
from embedlog.testing.inspection.lag import lags_of
from embedlog.testing.inspection.log_records import UNCOMMITTED
from wire.errors import MalformedMessage
from wire.schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

if TYPE_CHECKING:
    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.classic.classic_group import ClassicGroup
    from embedlog.coordinator.group.classic.classic_member import ClassicMember
    from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
    from embedlog.coordinator.group.group_shard import GroupShard
    from embedlog.coordinator.group.share.share_group import ShareGroup
    from embedlog.coordinator.group.streams.streams_group import StreamsGroup

_CLASSIC = "classic"
_SHARE = "share"
_STREAMS = "streams"


def read_group(
    brokers: Brokers,
    group_id: str,
    *,
    waits: bool = True,
    topics: Iterable[str] = (),
    isolation: str = UNCOMMITTED,
) -> GroupValue:
    """Return a group as it is now, also if it does not exist.

    The lags of all partitions of `topics` are included; `isolation` is the readers'. With `waits`
    the call waits for a coordinator that moves; otherwise it raises one of `brokers.MOVING`.
    """
    found = brokers.read_group(group_id, lambda shard: value_of(shard, group_id), waits=waits)
    if found is None:
        found = GroupValue(group_id)
    lags = lags_of(brokers, found, topics, isolation)
    return _with_lags(found, lags)


def read_groups(brokers: Brokers) -> list[GroupValue]:
    """Return all groups, sorted by name."""
    values = brokers.read_groups(
        lambda shard: [value_of(shard, group_id) for group_id in list(shard.groups)]
    )
    found = {each.group_id: each for some in values for each in some if each.exists}
    return [_with_lags(each, lags_of(brokers, each)) for _, each in sorted(found.items())]


def _with_lags(value: GroupValue, lags: Mapping[TopicPartition, int]) -> GroupValue:
    from dataclasses import replace

    return replace(value, lags=lags)


def value_of(shard: GroupShard, group_id: str) -> GroupValue:
    """Return a group without its lags. Requires: the shard's lock."""
    group: Any = shard.groups.get(group_id)
    if group is None:
        return GroupValue(group_id)
    committed = {
        TopicPartition(topic, number): stored.offset
        for topic, partitions in sorted(shard.offsets.of_group(group_id).items())
        for number, stored in sorted(partitions.items())
    }
    if group.GROUP_TYPE == _CLASSIC:
        return _classic(group, committed)
    if group.GROUP_TYPE == _SHARE:
        return _share(group, shard.context.metadata())
    if group.GROUP_TYPE == _STREAMS:
        return _streams(group, committed, shard.context.metadata())
    assignor = "pinned"
    if group_id not in shard.context.pinned:
        default = assignors.configured(shard.context.config.group_consumer_assignors)[0]
        assignor = group.assignor_votes.preferred(default)
    return _consumer(group, committed, shard.context.metadata(), assignor)


# Classic groups


def _classic(group: ClassicGroup, committed: Mapping[TopicPartition, int]) -> GroupValue:
    return GroupValue(
        group.group_id,
        group.state,
        _CLASSIC,
        assignor=group.protocol_name or "",
        epoch=group.generation_id,
        target_epoch=group.generation_id,
        members=tuple(_classic_member(group, each) for each in group.members.by_id.values()),
        committed=committed,
    )


def _classic_member(group: ClassicGroup, member: ClassicMember) -> GroupMember:
    topics: tuple[str, ...] = ()
    assigned: tuple[TopicPartition, ...] = ()
    if group.protocol_type == "consumer":
        topics = subscription_of(member.protocols)
        assigned = assignment_of(member.assignment)
    return GroupMember(
        member.member_id,
        member.client_id,
        member.client_host.removeprefix("/"),
        member.instance_id,
        assignment=assigned,
        subscription=topics,
        epoch=group.generation_id,
        target=assigned,
        is_leader=member.member_id == group.members.leader_id,
    )


def subscription_of(protocols: Iterable[tuple[str, bytes]]) -> tuple[str, ...]:
    """Return the topics of a member's subscriptions; none if they cannot be decoded."""
    topics: set[str] = set()
    for _, metadata in protocols:
        try:
            topics.update(read(ConsumerProtocolSubscription, metadata).topics)
        except MalformedMessage:
            continue
    return tuple(sorted(topics))


def assignment_of(encoded: bytes) -> tuple[TopicPartition, ...]:
    """Return the partitions of an encoded assignment; none if it cannot be decoded."""
    try:
        decoded = read(ConsumerProtocolAssignment, encoded)
    except MalformedMessage:
        return ()
    return _sorted(
        TopicPartition(each.topic, number)
        for each in decoded.assigned_partitions
        for number in each.partitions
    )


# Groups of KIP-848


def _consumer(
    group: ConsumerGroup,
    committed: Mapping[TopicPartition, int],
    metadata: MetadataImage,
    assignor: str,
) -> GroupValue:
    def named(held: Iterable[Mapping[bytes, Iterable[int]]]) -> tuple[TopicPartition, ...]:
        return _named(held, lambda topic_id: _name(metadata, topic_id))

    return GroupValue(
        group.group_id,
        group.state_name(),
        group.GROUP_TYPE,
        assignor=assignor,
        epoch=group.group_epoch,
        target_epoch=group.target_epoch,
        members=tuple(
            GroupMember(
                each.member_id,
                each.client_id,
                each.client_host.removeprefix("/"),
                each.instance_id,
                # As in Kafka's descriptions, the member still has the partitions that it gives up.
                assignment=named([each.assigned, each.revoking]),
                subscription=tuple(sorted(each.topics)),
                pattern=each.regex,
                epoch=each.epoch,
                target=named([group.target_of(each)]),
            )
            for each in group.members.values()
        ),
        committed=committed,
    )


def _share(group: ShareGroup, metadata: MetadataImage) -> GroupValue:
    def named(held: Mapping[bytes, Iterable[int]]) -> tuple[TopicPartition, ...]:
        return _named([held], lambda topic_id: _name(metadata, topic_id))

    return GroupValue(
        group.group_id,
        group.state_name(),
        group.GROUP_TYPE,
        assignor="simple",
        epoch=group.group_epoch,
        target_epoch=group.target_epoch,
        members=tuple(
            GroupMember(
                each.member_id,
                each.client_id,
                each.client_host.removeprefix("/"),
                assignment=named(each.assigned),
                subscription=tuple(sorted(each.topics)),
                epoch=each.epoch,
                target=named(group.target_of(each.member_id)),
            )
            for each in group.members.values()
        ),
    )


def _streams(
    group: StreamsGroup, committed: Mapping[TopicPartition, int], metadata: MetadataImage
) -> GroupValue:
    """Return a group with the input partitions of its members' active tasks."""
    inputs = {}
    if group.topology is not None:
        inputs = {each.subtopology_id: each.inputs() for each in group.topology.subtopologies}

    def named(held: Iterable[Mapping[str, Iterable[int]]]) -> tuple[TopicPartition, ...]:
        return _sorted(
            TopicPartition(topic, number)
            for tasks in held
            for subtopology, numbers in tasks.items()
            for topic in inputs.get(subtopology, ())
            for number in numbers
            if metadata.partition(topic, number) is not None
        )

    return GroupValue(
        group.group_id,
        group.state_name(),
        group.GROUP_TYPE,
        assignor="sticky",
        epoch=group.group_epoch,
        target_epoch=group.target_epoch,
        members=tuple(
            GroupMember(
                each.member_id,
                each.client_id,
                each.client_host.removeprefix("/"),
                each.instance_id,
                assignment=named([each.assigned.active, each.revoking.active]),
                subscription=tuple(sorted({name for names in inputs.values() for name in names})),
                epoch=each.epoch,
                target=named([group.target_of(each).active]),
            )
            for each in group.members.values()
        ),
        committed=committed,
    )


def _name(metadata: MetadataImage, topic_id: bytes) -> str | None:
    topic = metadata.topics_by_id.get(topic_id)
    return None if topic is None else topic.name


def _named(
    held: Iterable[Mapping[bytes, Iterable[int]]], name: Callable[[bytes], str | None]
) -> tuple[TopicPartition, ...]:
    return _sorted(
        TopicPartition(topic, number)
        for partitions in held
        for topic_id, numbers in partitions.items()
        if (topic := name(topic_id)) is not None
        for number in numbers
    )


def _sorted(places: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(set(places)))
