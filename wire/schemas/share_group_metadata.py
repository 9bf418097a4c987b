"""Records of __consumer_offsets (3): share groups (KIP-932).

The key of a record is its record type as an int16, then the key's message at version 0. The value
is its version as an int16, then the value's message. An empty value deletes the entry of the key.
"""

from __future__ import annotations

from wire.schema import array, int8, int32, int64, message, string, struct, uuid


@message(kind="data", record_type=10, versions="0")
class ShareGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@message(kind="data", record_type=10, versions="0", flexible="0+")
class ShareGroupMemberMetadataValue:
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)


@message(kind="data", record_type=11, versions="0")
class ShareGroupMetadataKey:
    group_id: str = string()


@message(kind="data", record_type=11, versions="0", flexible="0+")
class ShareGroupMetadataValue:
    epoch: int = int32()
    metadata_hash: int = int64()


@message(kind="data", record_type=12, versions="0")
class ShareGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message(kind="data", record_type=12, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


@message(kind="data", record_type=13, versions="0")
class ShareGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@struct
class TopicPartition:
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


@message(kind="data", record_type=13, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicPartition] = array(TopicPartition)


@message(kind="data", record_type=14, versions="0")
class ShareGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@struct
class TopicPartitions:
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


@message(kind="data", record_type=14, versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue:
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)


@message(kind="data", record_type=15, versions="0")
class ShareGroupStatePartitionMetadataKey:
    group_id: str = string()


@struct
class TopicPartitionsInfo:
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


@struct
class TopicInfo:
    topic_id: bytes = uuid()
    topic_name: str = string()


@message(kind="data", record_type=15, versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue:
    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    deleting_topics: list[TopicInfo] = array(TopicInfo)
