"""Classic consumers' subscriptions and assignments, read and written by the coordinator."""

from __future__ import annotations

from struct import Struct

import wire
from embedlog import errors
from embedlog.coordinator.group.classic.subscription import read
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
    """Decode a subscription. Raise InconsistentGroupProtocol if it is malformed."""
    return _read(ConsumerProtocolSubscription, metadata)


def assigned(assignment: bytes, metadata: MetadataImage) -> Partitions:
    """Return an assignment's partitions of existing topics; none for empty bytes.

    Raises InconsistentGroupProtocol if the bytes are malformed.
    """
    if not assignment:
        return {}
    read = _read(ConsumerProtocolAssignment, assignment)
    return by_topic_id(read.assigned_partitions, metadata)


def by_topic_id(topics: Sequence[TopicPartition], metadata: MetadataImage) -> Partitions:
    """Return partitions by topic id; topics that do not exist are left out."""
    found: dict[bytes, frozenset[int]] = {}
    for topic in topics:
        image = metadata.topics_by_name.get(topic.topic)
        if image is not None and topic.partitions:
            found[image.topic_id] = frozenset(topic.partitions)
    return found


def assignment_for(
    owned: Owned | Partitions, metadata: MetadataImage, *, subscription_metadata: bytes
) -> bytes:
    """Return the assignment of `owned`, in the version of the member's subscription."""
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
        return read(message, data)
    except wire.MalformedMessage as error:
        raise errors.InconsistentGroupProtocol(f"malformed consumer protocol: {error}") from error
