"""Records of __consumer_offsets (1): stored offsets and classic groups.

The key of a record is its record type as an int16, then the key's message at version 0. The value
is its version as an int16, then the value's message. An empty value deletes the entry of the key.
"""

from __future__ import annotations

from wire.schema import array, bytes_, int32, int64, message, string, struct, uuid


@message(kind="data", record_type=0, versions="0")
class LegacyOffsetCommitKey:
    group: str = string()
    topic: str = string()
    partition: int = int32()


@message(kind="data", record_type=0, versions="0")
class LegacyOffsetCommitValue:
    offset: int = int64()
    metadata: str = string()
    commit_timestamp: int = int64()


@message(kind="data", record_type=1, versions="0")
class OffsetCommitKey:
    group: str = string()
    topic: str = string()
    partition: int = int32()


@message(kind="data", record_type=1, versions="0-4", flexible="4+")
class OffsetCommitValue:
    offset: int = int64()
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
    topic_id: bytes = uuid("4+", tag=0, ignorable=True)


@message(kind="data", record_type=2, versions="0")
class GroupMetadataKey:
    group: str = string()


@struct
class MemberMetadata:
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32()
    subscription: bytes = bytes_()
    assignment: bytes = bytes_()


@message(kind="data", record_type=2, versions="0-4", flexible="4+")
class GroupMetadataValue:
    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata)
