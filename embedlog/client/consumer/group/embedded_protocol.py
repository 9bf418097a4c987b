"""Encoding of the subscriptions and assignments that members of a classic group exchange.

    int16 version, then the message of that version

Newer versions only append fields. Therefore a reader decodes an unknown version as the newest
version that it knows.
"""

from __future__ import annotations

from struct import Struct

from embedlog.client.assignors.assignor import Assignment, MemberSubscription
from embedlog.common import TopicPartition
from wire import decode
from wire.interpreter import interpret
from wire.schemas import consumer_protocol as schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Buffer = bytes | bytearray | memoryview

PROTOCOL_TYPE = "consumer"
_VERSION = Struct(">h")
_NEWEST = 3


def encode_subscription(subscription: MemberSubscription) -> bytes:
    """Encode a member's subscription: its metadata for one assignor in JoinGroup."""
    message = schema.ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=_grouped(subscription.owned_partitions),
        generation_id=subscription.generation_id,
        rack_id=subscription.rack_id,
    )
    return _VERSION.pack(_NEWEST) + interpret(message, _NEWEST)


def decode_subscription(data: Buffer, group_instance_id: str | None = None) -> MemberSubscription:
    """Decode the subscription of a member.

    Raises:
        MalformedMessage: `data` is no subscription.
    """
    message = decode(schema.ConsumerProtocolSubscription, *_split(data))
    user_data = message.user_data
    return MemberSubscription(
        message.topics,
        user_data=None if user_data is None else bytes(user_data),
        owned_partitions=_flat(message.owned_partitions),
        generation_id=message.generation_id,
        rack_id=message.rack_id,
        group_instance_id=group_instance_id,
    )


def encode_assignment(assignment: Assignment) -> bytes:
    """Encode the assignment of a member for SyncGroup."""
    message = schema.ConsumerProtocolAssignment(
        assigned_partitions=_grouped(assignment.partitions), user_data=assignment.user_data
    )
    return _VERSION.pack(_NEWEST) + interpret(message, _NEWEST)


def decode_assignment(data: Buffer) -> Assignment:
    """Decode the assignment of a member; empty bytes mean no partitions.

    Raises:
        MalformedMessage: `data` is no assignment.
    """
    if not len(data):
        return Assignment()
    message = decode(schema.ConsumerProtocolAssignment, *_split(data))
    user_data = message.user_data
    return Assignment(
        _flat(message.assigned_partitions), None if user_data is None else bytes(user_data)
    )


def _split(data: Buffer) -> tuple[int, memoryview]:
    from wire.errors import MalformedMessage

    if len(data) < _VERSION.size:
        raise MalformedMessage(f"{len(data)} bytes are too few for a version")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise MalformedMessage(f"version {version}")
    return min(version, _NEWEST), memoryview(data)[_VERSION.size :]


def _grouped(partitions: Iterable[TopicPartition]) -> list[schema.TopicPartition]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(number)
    return [
        schema.TopicPartition(topic=topic, partitions=numbers)
        for topic, numbers in by_topic.items()
    ]


def _flat(topics: Iterable[schema.TopicPartition]) -> list[TopicPartition]:
    return [TopicPartition(each.topic, number) for each in topics for number in each.partitions]
