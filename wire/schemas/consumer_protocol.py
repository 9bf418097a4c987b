"""Subscription and assignment of a classic consumer group, carried inside JoinGroup and SyncGroup.

An int16 version precedes each message. A reader accepts a newer version than its own: later
versions only append fields.
"""

from __future__ import annotations

from wire.schema import array, bytes_, int32, message, string, struct


@struct
class TopicPartition:
    topic: str = string()
    partitions: list[int] = array(int32)


@message(kind="data", versions="0-3")
class ConsumerProtocolSubscription:
    topics: list[str] = array(string)
    user_data: bytes | None = bytes_(nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = array(TopicPartition, "1+", ignorable=True)
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)


@message(kind="data", versions="0-3")
class ConsumerProtocolAssignment:
    assigned_partitions: list[TopicPartition] = array(TopicPartition)
    user_data: bytes | None = bytes_(nullable="0+", default=None)
