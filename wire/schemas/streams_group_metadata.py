"""Records of __consumer_offsets (4): streams groups (KIP-1071).

The key of a record is its record type as an int16, then the key's message at version 0. The value
is its version as an int16, then the value's message. An empty value deletes the entry of the key.
"""

from __future__ import annotations

from wire.schema import array, int8, int16, int32, int64, message, string, struct, struct_, uint16


@message(kind="data", record_type=17, versions="0")
class StreamsGroupMetadataKey:
    group_id: str = string()


@struct
class LastAssignmentConfig:
    key: str = string()
    value: str = string()


@message(kind="data", record_type=17, versions="0", flexible="0+")
class StreamsGroupMetadataValue:
    epoch: int = int32()
    metadata_hash: int = int64()
    validated_topology_epoch: int = int32(default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = array(
        LastAssignmentConfig, nullable="0+", default=None, tag=1
    )
    stored_description_topology_epoch: int = int32(default=-1, tag=2)
    failed_description_topology_epoch: int = int32(default=-1, tag=3)


@message(kind="data", record_type=19, versions="0")
class StreamsGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@struct
class Endpoint:
    host: str = string()
    port: int = uint16()


@struct
class KeyValue:
    key: str = string()
    value: str = string()


@message(kind="data", record_type=19, versions="0", flexible="0+")
class StreamsGroupMemberMetadataValue:
    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout_ms: int = int32(default=-1)
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = struct_(Endpoint, nullable="0+", default=None)
    client_tags: list[KeyValue] = array(KeyValue)


@message(kind="data", record_type=20, versions="0")
class StreamsGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message(kind="data", record_type=20, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


@message(kind="data", record_type=21, versions="0")
class StreamsGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@struct
class TargetTaskIds:
    subtopology_id: str = string()
    partitions: list[int] = array(int32)


@message(kind="data", record_type=21, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMemberValue:
    active_tasks: list[TargetTaskIds] = array(TargetTaskIds)
    standby_tasks: list[TargetTaskIds] = array(TargetTaskIds)
    warmup_tasks: list[TargetTaskIds] = array(TargetTaskIds)


@message(kind="data", record_type=22, versions="0")
class StreamsGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@struct
class CurrentTaskIds:
    subtopology_id: str = string()
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(int32, nullable="0+", default=None, tag=0)


@message(kind="data", record_type=22, versions="0", flexible="0+")
class StreamsGroupCurrentMemberAssignmentValue:
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    active_tasks: list[CurrentTaskIds] = array(CurrentTaskIds)
    standby_tasks: list[CurrentTaskIds] = array(CurrentTaskIds)
    warmup_tasks: list[CurrentTaskIds] = array(CurrentTaskIds)
    active_tasks_pending_revocation: list[CurrentTaskIds] = array(CurrentTaskIds)
    standby_tasks_pending_revocation: list[CurrentTaskIds] = array(CurrentTaskIds)
    warmup_tasks_pending_revocation: list[CurrentTaskIds] = array(CurrentTaskIds)


@message(kind="data", record_type=23, versions="0")
class StreamsGroupTopologyKey:
    group_id: str = string()


@struct
class TopicConfig:
    key: str = string()
    value: str = string()


@struct
class TopicInfo:
    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[TopicConfig] = array(TopicConfig)


@struct
class CopartitionGroup:
    source_topics: list[int] = array(int16)
    source_topic_regex: list[int] = array(int16)
    repartition_source_topics: list[int] = array(int16)


@struct
class Subtopology:
    subtopology_id: str = string()
    source_topics: list[str] = array(string)
    source_topic_regex: list[str] = array(string)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_sink_topics: list[str] = array(string)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)


@message(kind="data", record_type=23, versions="0", flexible="0+")
class StreamsGroupTopologyValue:
    epoch: int = int32()
    subtopologies: list[Subtopology] = array(Subtopology)
