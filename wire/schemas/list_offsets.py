"""ListOffsets (API key 2), versions 0-11, flexible from 6: the offset of a timestamp, of the start
or of the end.

v0 a list of offsets for each partition. v1 one offset with its timestamp. v2 isolation level,
throttle time. v4 leader epochs. v5 may answer OFFSET_NOT_AVAILABLE. v7-v9 and v11 only add special
timestamps (-3, -4, -5, -6). v10 timeout.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, int8, int16, int32, int64, message, string, struct


@struct
class ListOffsetsPartition:
    partition_index: int = int32()
    current_leader_epoch: int = int32("4+", default=-1, ignorable=True)
    timestamp: int = int64()
    max_num_offsets: int = int32("0", default=1)


@struct
class ListOffsetsTopic:
    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


@message(api=ApiKey.LIST_OFFSETS, kind="request", versions="0-11", flexible="6+")
class ListOffsetsRequest(Request["ListOffsetsResponse"]):
    replica_id: int = int32()
    isolation_level: int = int8("2+")
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32("10+", ignorable=True)


@struct
class ListOffsetsPartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    old_style_offsets: list[int] = array(int64, "0")
    timestamp: int = int64("1+", default=-1)
    offset: int = int64("1+", default=-1)
    leader_epoch: int = int32("4+", default=-1)


@struct
class ListOffsetsTopicResponse:
    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


@message(api=ApiKey.LIST_OFFSETS, kind="response", versions="0-11", flexible="6+")
class ListOffsetsResponse:
    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
