"""Consumers' subscriptions: the only part of members' metadata that the coordinator reads."""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeVar

    M = TypeVar("M")

_VERSION = Struct(">h")
_LAST_VERSION = 3


class Subscriptions:
    """The subscriptions of one generation, decoded when first needed, under the shard's lock."""

    def __init__(self, encoded: Sequence[bytes] | None) -> None:
        """`encoded` is the metadata of each member; None if the members are no consumers."""
        self._encoded = encoded
        self._topics: frozenset[str] | None = None

    def topics(self) -> frozenset[str] | None:
        if self._topics is None and self._encoded is not None:
            self._topics = subscribed_topics(self._encoded)
            self._encoded = None
        return self._topics


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics of all subscriptions; None if a subscription cannot be decoded."""
    import wire
    from wire.schemas.consumer_protocol import ConsumerProtocolSubscription

    topics: set[str] = set()
    for subscription in subscriptions:
        try:
            topics.update(read(ConsumerProtocolSubscription, subscription).topics)
        except wire.MalformedMessage:
            return None
    return frozenset(topics)


def read(message: type[M], data: bytes) -> M:
    """Decode a consumer's message, which begins with an int16 version. Raises MalformedMessage.

    A version above the last known version begins with the fields of the last known version, and is
    decoded as that version.
    """
    import wire

    if len(data) < _VERSION.size:
        raise wire.MalformedMessage(f"{len(data)} bytes")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise wire.MalformedMessage(f"version {version}")
    return wire.decode(message, min(version, _LAST_VERSION), data, _VERSION.size)
