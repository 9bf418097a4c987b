"""Records of __transaction_state: the transactions of one transactional id.

The key of a record is its record type as an int16, then the key's message at version 0. The value
is its version as an int16, then the value's message. An empty value deletes the entry of the key.
"""

from __future__ import annotations

from wire.schema import array, int8, int16, int32, int64, message, string, struct


@message(kind="data", record_type=0, versions="0")
class TransactionLogKey:
    transactional_id: str = string()


@struct
class PartitionsSchema:
    topic: str = string()
    partition_ids: list[int] = array(int32)


@message(kind="data", record_type=0, versions="0-1", flexible="1+")
class TransactionLogValue:
    producer_id: int = int64()
    previous_producer_id: int = int64("1+", default=-1, tag=0)
    next_producer_id: int = int64("1+", default=-1, tag=1)
    producer_epoch: int = int16()
    next_producer_epoch: int = int16("1+", default=-1, tag=3)
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, nullable="0+")
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16("1+", tag=2)
