"""OffsetCommit (API key 8), versions 0-10, flexible from 8: store the offsets of a group.

v1 member and generation, a timestamp for each partition. v2-v4 retention time. v3 throttle time. v6
leader epochs. v7 static members. v9 for groups of the consumer protocol (KIP-848). v10 topic ids in
place of names.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, int16, int32, int64, message, string, struct, uuid


@struct
class OffsetCommitRequestPartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("6+", default=-1, ignorable=True)
    commit_timestamp: int = int64("1", default=-1)
    committed_metadata: str | None = string(nullable="0+")


@struct
class OffsetCommitRequestTopic:
    name: str = string("0-9", ignorable=True)
    topic_id: bytes = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


@message(api=ApiKey.OFFSET_COMMIT, kind="request", versions="0-10", flexible="8+")
class OffsetCommitRequest(Request["OffsetCommitResponse"]):
    group_id: str = string()
    generation_id_or_member_epoch: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("1+", ignorable=True)
    group_instance_id: str | None = string("7+", nullable="7+", default=None)
    retention_time_ms: int = int64("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


@struct
class OffsetCommitResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetCommitResponseTopic:
    name: str = string("0-9", ignorable=True)
    topic_id: bytes = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


@message(api=ApiKey.OFFSET_COMMIT, kind="response", versions="0-10", flexible="8+")
class OffsetCommitResponse:
    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)
