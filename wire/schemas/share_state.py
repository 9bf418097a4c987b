"""Records of __share_group_state: delivery states of share partitions.

The key of a record is its record type as an int16, then the key's message at version 0. The value
is its version as an int16, then the value's message. An empty value deletes the entry of the key.
"""

from __future__ import annotations

from wire.schema import array, int8, int16, int32, int64, message, string, struct, uuid


@message(kind="data", record_type=0, versions="0")
class ShareSnapshotKey:
    group_id: str = string()
    topic_id: bytes = uuid()
    partition: int = int32()


@struct
class StateBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


@message(kind="data", record_type=0, versions="0", flexible="0+")
class ShareSnapshotValue:
    snapshot_epoch: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(default=-1, tag=0)
    create_timestamp: int = int64()
    write_timestamp: int = int64()
    state_batches: list[StateBatch] = array(StateBatch)


@message(kind="data", record_type=1, versions="0")
class ShareUpdateKey:
    group_id: str = string()
    topic_id: bytes = uuid()
    partition: int = int32()


@message(kind="data", record_type=1, versions="0", flexible="0+")
class ShareUpdateValue:
    snapshot_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(default=-1, tag=0)
    state_batches: list[StateBatch] = array(StateBatch)
