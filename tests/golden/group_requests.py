"""Short forms of the requests about groups."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import wire
from tests.golden.requests import Topic
from wire.schemas.consumer_group_describe import ConsumerGroupDescribeRequest
from wire.schemas.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from wire.schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from wire.schemas.delete_groups import DeleteGroupsRequest
from wire.schemas.describe_groups import DescribeGroupsRequest
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.heartbeat import HeartbeatRequest
from wire.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.schemas.leave_group import LeaveGroupRequest, MemberIdentity
from wire.schemas.list_groups import ListGroupsRequest
from wire.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from wire.schemas.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from wire.schemas.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from wire.schemas.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

COMMIT_BY_ID = 10
FETCH_GROUPS = 8
LEAVE_SEVERAL = 3
SESSION_MS = 30_000
OK, MEMBER_ID_REQUIRED = 0, 79

Protocols = Sequence[tuple[str, bytes]]


def subscription(*topics: str, version: int = 0, **fields: Any) -> bytes:
    """Return the subscription that a member of protocol type "consumer" sends to its leader."""
    message = ConsumerProtocolSubscription(topics=list(topics), **fields)
    return struct.pack(">h", version) + wire.encode(message, version)


def owned(topic: str, *partitions: int) -> TopicPartition:
    """Return partitions as they stand in a subscription or an assignment."""
    return TopicPartition(topic=topic, partitions=list(partitions))


def assignment(*rows: TopicPartition) -> bytes:
    """Return the assignment that the leader gives a member of protocol type "consumer"."""
    message = ConsumerProtocolAssignment(assigned_partitions=list(rows))
    return struct.pack(">h", 0) + wire.encode(message, 0)


def join(
    group: str,
    member: str = "",
    *,
    protocols: Protocols = (("range", b"r"),),
    kind: str = "consumer",
    session_ms: int = SESSION_MS,
    rebalance_ms: int = SESSION_MS,
    instance: str | None = None,
    reason: str | None = None,
) -> JoinGroupRequest:
    """JoinGroup."""
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member,
        group_instance_id=instance,
        protocol_type=kind,
        protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in protocols],
        reason=reason,
    )


def sync(
    group: str,
    member: str,
    generation: int,
    assignments: dict[str, bytes] | None = None,
    *,
    instance: str | None = None,
    kind: str | None = "consumer",
    protocol: str | None = "range",
) -> SyncGroupRequest:
    """SyncGroup."""
    rows = [
        SyncGroupRequestAssignment(member_id=name, assignment=data)
        for name, data in (assignments or {}).items()
    ]
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        protocol_type=kind,
        protocol_name=protocol,
        assignments=rows,
    )


def heartbeat(
    group: str, member: str, generation: int, *, instance: str | None = None
) -> HeartbeatRequest:
    """Heartbeat."""
    return HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member, group_instance_id=instance
    )


def leave(
    group: str, *members: str | tuple[str, str | None], version: int = 5, reason: str | None = None
) -> LeaveGroupRequest:
    """LeaveGroup of member ids, or of (member id, instance id)."""
    pairs = [(row, None) if isinstance(row, str) else row for row in members]
    if version < LEAVE_SEVERAL:
        ((member, _),) = pairs
        return LeaveGroupRequest(group_id=group, member_id=member)
    rows = [
        MemberIdentity(member_id=member, group_instance_id=instance, reason=reason)
        for member, instance in pairs
    ]
    return LeaveGroupRequest(group_id=group, members=rows)


Offset = tuple[int, int] | tuple[int, int, str | None]


def commit(
    group: str,
    topic: Topic | str,
    *offsets: Offset,
    version: int = 9,
    member: str = "",
    generation: int = -1,
    instance: str | None = None,
    leader_epoch: int = -1,
    **fields: Any,
) -> OffsetCommitRequest:
    """OffsetCommit of (partition, offset) or (partition, offset, metadata) of one topic."""
    name, topic_id = (topic, bytes(16)) if isinstance(topic, str) else topic
    rows = [
        OffsetCommitRequestPartition(
            partition_index=row[0],
            committed_offset=row[1],
            committed_metadata=row[2] if len(row) > 2 else "",
            committed_leader_epoch=leader_epoch,
        )
        for row in offsets
    ]
    where: dict[str, Any] = {"topic_id": topic_id} if version >= COMMIT_BY_ID else {"name": name}
    if instance is not None:
        fields["group_instance_id"] = instance
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[OffsetCommitRequestTopic(partitions=rows, **where)],
        **fields,
    )


Wanted = tuple[Topic | str, Sequence[int]]


def fetch_offsets(
    group: str,
    *wanted: Wanted,
    version: int = 9,
    everything: bool = False,
    member: str | None = None,
    epoch: int = -1,
    **fields: Any,
) -> OffsetFetchRequest:
    """OffsetFetch for one group; `everything` sends null for the topics."""
    if version >= FETCH_GROUPS:
        row = fetched_group(
            group, *wanted, version=version, everything=everything, member=member, epoch=epoch
        )
        return OffsetFetchRequest(groups=[row], **fields)
    topics = [
        OffsetFetchRequestTopic(name=_name(topic), partition_indexes=list(partitions))
        for topic, partitions in wanted
    ]
    return OffsetFetchRequest(group_id=group, topics=None if everything else topics, **fields)


def fetched_group(
    group: str,
    *wanted: Wanted,
    version: int = 9,
    everything: bool = False,
    member: str | None = None,
    epoch: int = -1,
) -> OffsetFetchRequestGroup:
    """One of several groups of an OffsetFetch."""
    rows = []
    for topic, partitions in wanted:
        where: dict[str, Any] = {"name": _name(topic)}
        if version >= COMMIT_BY_ID:
            where = {"topic_id": bytes(16) if isinstance(topic, str) else topic[1]}
        rows.append(OffsetFetchRequestTopics(partition_indexes=list(partitions), **where))
    return OffsetFetchRequestGroup(
        group_id=group,
        topics=None if everything else rows,
        member_id=member,
        member_epoch=epoch,
    )


def _name(topic: Topic | str) -> str:
    return topic if isinstance(topic, str) else topic[0]


def delete_offsets(group: str, *wanted: tuple[str, Sequence[int]]) -> OffsetDeleteRequest:
    """OffsetDelete."""
    topics = [
        OffsetDeleteRequestTopic(
            name=topic,
            partitions=[OffsetDeleteRequestPartition(partition_index=p) for p in partitions],
        )
        for topic, partitions in wanted
    ]
    return OffsetDeleteRequest(group_id=group, topics=topics)


def describe(*groups: str, operations: bool = False) -> DescribeGroupsRequest:
    """DescribeGroups."""
    return DescribeGroupsRequest(groups=list(groups), include_authorized_operations=operations)


def list_groups(*, states: Sequence[str] = (), types: Sequence[str] = ()) -> ListGroupsRequest:
    """ListGroups."""
    return ListGroupsRequest(states_filter=list(states), types_filter=list(types))


def delete_groups(*groups: str) -> DeleteGroupsRequest:
    """DeleteGroups."""
    return DeleteGroupsRequest(groups_names=list(groups))


def find(*groups: str, key_type: int = 0) -> FindCoordinatorRequest:
    """FindCoordinator, version 4 or later."""
    return FindCoordinatorRequest(coordinator_keys=list(groups), key_type=key_type)


Owned = Sequence[tuple[Topic, Sequence[int]]]


def beat(
    group: str,
    member: str,
    epoch: int,
    *,
    topics: Sequence[str] | None = None,
    owns: Owned | None = None,
    rebalance_ms: int = -1,
    instance: str | None = None,
    rack: str | None = None,
    regex: str | None = None,
    assignor: str | None = None,
) -> ConsumerGroupHeartbeatRequest:
    """ConsumerGroupHeartbeat; fields that are not given are sent as unchanged."""
    rows = None
    if owns is not None:
        rows = [TopicPartitions(topic_id=t[1], partitions=list(p)) for t, p in owns]
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        instance_id=instance,
        rack_id=rack,
        rebalance_timeout_ms=rebalance_ms,
        subscribed_topic_names=None if topics is None else list(topics),
        subscribed_topic_regex=regex,
        server_assignor=assignor,
        topic_partitions=rows,
    )


def first_beat(
    group: str, member: str, *topics: str, rebalance_ms: int = SESSION_MS, **fields: Any
) -> ConsumerGroupHeartbeatRequest:
    """The heartbeat of a joining member, with all fields that it must send."""
    return beat(
        group, member, fields.pop("epoch", 0), topics=fields.pop("topics", list(topics)),
        owns=fields.pop("owns", []), rebalance_ms=rebalance_ms, **fields,
    )  # fmt: skip


def describe_consumers(*groups: str, operations: bool = False) -> ConsumerGroupDescribeRequest:
    """ConsumerGroupDescribe."""
    return ConsumerGroupDescribeRequest(
        group_ids=list(groups), include_authorized_operations=operations
    )
