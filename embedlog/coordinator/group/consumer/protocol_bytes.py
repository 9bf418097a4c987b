"""What classic consumers tell each other, as the coordinator reads and writes it for them.

A subscription or an assignment is its version as an int16, then the message. A later version than
is known is read as the last known one, whose fields it begins with.
"""

from __future__ import annotations

from struct import Struct

import wire
from embedlog import errors
from wire.schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.assignors.spec import Partitions
    from embedlog.coordinator.group.consumer.member import Owned

    M = TypeVar("M", ConsumerProtocolAssignment, ConsumerProtocolSubscription)

_VERSION = Struct(">h")
_LAST_VERSION = 3


def subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """What a member subscribes to.

    Raises:
        InconsistentGroupProtocol: it is not what consumers write.
    """
    return _read(ConsumerProtocolSubscription, metadata)


def assigned(assignment: bytes, metadata: MetadataImage) -> Partitions:
    """The partitions that an assignment names, of topics that exist. Empty bytes: none.

    Raises:
        InconsistentGroupProtocol: it is not what consumers write.
    """
    if not assignment:
        return {}
    read = _read(ConsumerProtocolAssignment, assignment)
    return by_topic_id(read.assigned_partitions, metadata)


def by_topic_id(topics: Sequence[TopicPartition], metadata: MetadataImage) -> Partitions:
    """Partitions by topic id; topics that do not exist are left out."""
    found: dict[bytes, frozenset[int]] = {}
    for topic in topics:
        image = metadata.topics_by_name.get(topic.topic)
        if image is not None and topic.partitions:
            found[image.topic_id] = frozenset(topic.partitions)
    return found


def assignment_for(
    owned: Owned | Partitions, metadata: MetadataImage, *, subscription_metadata: bytes
) -> bytes:
    """The assignment that gives a member `owned`, in the version its subscription has."""
    (version,) = _VERSION.unpack_from(subscription_metadata)
    version = max(0, min(version, _LAST_VERSION))
    by_id = metadata.topics_by_id
    topics = [
        TopicPartition(topic=by_id[topic_id].name, partitions=sorted(epochs))
        for topic_id, epochs in owned.items()
        if topic_id in by_id
    ]
    topics.sort(key=lambda topic: topic.topic)
    message = ConsumerProtocolAssignment(assigned_partitions=topics)
    return _VERSION.pack(version) + wire.encode(message, version)


def _read(message: type[M], data: bytes) -> M:
    try:
        if len(data) < _VERSION.size:
            raise wire.MalformedMessage(f"{len(data)} bytes")
        (version,) = _VERSION.unpack_from(data)
        if version < 0:
            raise wire.MalformedMessage(f"version {version}")
        return wire.decode(message, min(version, _LAST_VERSION), data, _VERSION.size)
    except wire.MalformedMessage as error:
        raise errors.InconsistentGroupProtocol(f"malformed consumer protocol: {error}") from error
