"""CreateTopics (API key 19), versions 0-7, flexible from 5: create topics.

v1 validate only, error message. v2 throttle time. v4 counts of -1 mean the defaults of the broker.
v5 partitions, replication factor and settings in the answer. v6 may answer
THROTTLING_QUOTA_EXCEEDED. v7 topic ids.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, boolean, int8, int16, int32, message, string, struct, uuid


@struct
class CreatableReplicaAssignment:
    partition_index: int = int32()
    broker_ids: list[int] = array(int32)


@struct
class CreatableTopicConfig:
    name: str = string()
    value: str | None = string(nullable="0+")


@struct
class CreatableTopic:
    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


@message(api=ApiKey.CREATE_TOPICS, kind="request", versions="0-7", flexible="5+")
class CreateTopicsRequest(Request["CreateTopicsResponse"]):
    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean("1+")


@struct
class CreatableTopicConfigs:
    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    config_source: int = int8(default=-1, ignorable=True)
    is_sensitive: bool = boolean()


@struct
class CreatableTopicResult:
    name: str = string()
    topic_id: bytes = uuid("7+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = int16("5+", tag=0, ignorable=True)
    num_partitions: int = int32("5+", default=-1, ignorable=True)
    replication_factor: int = int16("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, "5+", nullable="5+", ignorable=True
    )


@message(api=ApiKey.CREATE_TOPICS, kind="response", versions="0-7", flexible="5+")
class CreateTopicsResponse:
    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
