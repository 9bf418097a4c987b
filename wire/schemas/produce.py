"""Produce (API key 0), versions 0-13, flexible from 9: append record batches to partitions.

v1 throttle time. v2 log append time. v3 transactional id, record batches of magic 2 only. v5 log
start offset. v7 zstd allowed. v8 record errors and a message. v10 the current leader and its
endpoint (tagged, KIP-951). v11 may answer TRANSACTION_ABORTABLE. v12 adds partitions to the
transaction implicitly (KIP-890). v13 topic ids in place of names. acks=0 gets no answer.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import (
    Payload,
    Request,
    array,
    int16,
    int32,
    int64,
    message,
    records_,
    string,
    struct,
    struct_,
    uuid,
)


@struct
class PartitionProduceData:
    index: int = int32()
    records: Payload | None = records_(nullable="0+")


@struct
class TopicProduceData:
    name: str = string("0-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


@message(api=ApiKey.PRODUCE, kind="request", versions="0-13", flexible="9+")
class ProduceRequest(Request["ProduceResponse | None"]):
    transactional_id: str | None = string("3+", nullable="3+", default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


@struct
class BatchIndexAndErrorMessage:
    batch_index: int = int32()
    batch_index_error_message: str | None = string(nullable="0+", default=None)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


@struct
class PartitionProduceResponse:
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64("2+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(
        BatchIndexAndErrorMessage, "8+", ignorable=True
    )
    error_message: str | None = string("8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = struct_(LeaderIdAndEpoch, "10+", tag=0)


@struct
class TopicProduceResponse:
    name: str = string("0-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


@message(api=ApiKey.PRODUCE, kind="response", versions="0-13", flexible="9+")
class ProduceResponse:
    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32("1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0)
