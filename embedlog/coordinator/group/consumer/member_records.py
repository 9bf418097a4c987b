"""A consumer group's state as records of `__consumer_offsets`, types 3-8 and 16.

3   group                   group epoch, metadata hash
4   group                   partition metadata: Kafka 4.0 and before; only deleted here
5   group, member           client and subscription of the member
6   group                   target assignment epoch, time of the assignment
7   group, member           target assignment
8   group, member           member epochs, state, partitions with their assignment epochs
16  group, pattern          the topics that a pattern matched
"""

from __future__ import annotations

from embedlog.coordinator.group.consumer import member as states
from embedlog.coordinator.group.consumer.member import ClassicFacts, ConsumerMember, Owned
from embedlog.coordinator.group.consumer.regexes import ResolvedRegex
from embedlog.coordinator.result import CoordinatorRecord
from wire.schemas import consumer_group_metadata as schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.assignors.spec import Partitions


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Return the record of type 3: group epoch and metadata hash."""
    return CoordinatorRecord(
        schema.ConsumerGroupMetadataKey(group_id=group_id),
        schema.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Return the record of type 6. Timestamp 0 allows the next assignment at once."""
    return CoordinatorRecord(
        schema.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        schema.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=timestamp_ms
        ),
    )


def target_assignment(group_id: str, member_id: str, target: Partitions) -> CoordinatorRecord:
    """Return the record of type 7: the target of one member."""
    return CoordinatorRecord(
        schema.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        schema.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                schema.TopicPartition(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in target.items()
            ]
        ),
    )


def member_metadata(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """Return the record of type 5: one member's client and subscription."""
    classic = None
    if member.classic is not None:
        classic = schema.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                schema.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in member.classic.protocols
            ],
        )
    return CoordinatorRecord(
        schema.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        schema.ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topics),
            subscribed_topic_regex=member.regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor,
            classic_member_metadata=classic,
        ),
    )


def current_assignment(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """Return the record of type 8: one member's epochs and partitions."""
    return CoordinatorRecord(
        schema.ConsumerGroupCurrentMemberAssignmentKey(
            group_id=group_id, member_id=member.member_id
        ),
        schema.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_with_epochs(member.assigned),
            partitions_pending_revocation=_with_epochs(member.revoking),
        ),
    )


def resolved_regex(group_id: str, regex: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    """Return the record of type 16: the topics of one pattern."""
    return CoordinatorRecord(
        schema.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        schema.ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics),
            version=resolved.version,
            timestamp=resolved.timestamp_ms,
        ),
    )


def without_regex(group_id: str, regex: str) -> CoordinatorRecord:
    """Return the tombstone of type 16."""
    return CoordinatorRecord(
        schema.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    )


def without_member(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the tombstones of one member: types 8, 7 and 5, in the order that replay needs."""
    keys = (
        schema.ConsumerGroupCurrentMemberAssignmentKey,
        schema.ConsumerGroupTargetAssignmentMemberKey,
        schema.ConsumerGroupMemberMetadataKey,
    )
    return [CoordinatorRecord(key(group_id=group_id, member_id=member_id)) for key in keys]


def without_group(
    group_id: str, member_ids: list[str], regexes: list[str]
) -> list[CoordinatorRecord]:
    """Return the tombstones of a whole group."""
    members = [without_member(group_id, member_id) for member_id in member_ids]
    return [
        *(current for current, _, _ in members),
        *(target for _, target, _ in members),
        CoordinatorRecord(schema.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(metadata for _, _, metadata in members),
        *(without_regex(group_id, regex) for regex in regexes),
        CoordinatorRecord(schema.ConsumerGroupPartitionMetadataKey(group_id=group_id)),
        CoordinatorRecord(schema.ConsumerGroupMetadataKey(group_id=group_id)),
    ]


def with_metadata(
    member: ConsumerMember, value: schema.ConsumerGroupMemberMetadataValue
) -> ConsumerMember:
    """Return `member` with the metadata of a record of type 5."""
    classic = None
    if value.classic_member_metadata is not None:
        classic = ClassicFacts(
            value.classic_member_metadata.session_timeout_ms,
            tuple(
                (protocol.name, bytes(protocol.metadata))
                for protocol in value.classic_member_metadata.supported_protocols
            ),
        )
    return member.replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        topics=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        classic=classic,
    )


def with_assignment(
    member: ConsumerMember, value: schema.ConsumerGroupCurrentMemberAssignmentValue | None
) -> ConsumerMember:
    """Return `member` with the assignment of a record of type 8; a tombstone resets it."""
    if value is None:
        value = schema.ConsumerGroupCurrentMemberAssignmentValue()
    epoch = value.member_epoch
    return member.replace(
        epoch=epoch,
        previous_epoch=value.previous_member_epoch,
        state=value.state if value.state in states.STATES else states.UNKNOWN,
        assigned=_read_epochs(value.assigned_partitions, epoch),
        revoking=_read_epochs(value.partitions_pending_revocation, epoch),
    )


def read_target(value: schema.ConsumerGroupTargetAssignmentMemberValue) -> Partitions:
    """Return the target of a record of type 7."""
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def read_regex(value: schema.ConsumerGroupRegularExpressionValue) -> ResolvedRegex:
    """Return the topics of a record of type 16."""
    return ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)


def _with_epochs(owned: Owned) -> list[schema.TopicPartitions]:
    found = []
    for topic_id, epochs in owned.items():
        numbers = sorted(epochs)
        found.append(
            schema.TopicPartitions(
                topic_id=topic_id,
                partitions=numbers,
                assignment_epochs=[epochs[number] for number in numbers],
            )
        )
    return found


def _read_epochs(topics: list[schema.TopicPartitions], member_epoch: int) -> Owned:
    found: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None:
            # Kafka before 4.3 wrote no assignment epochs: the present epoch is the safe assumption.
            epochs = [member_epoch] * len(topic.partitions)
        found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=False))
    return found
