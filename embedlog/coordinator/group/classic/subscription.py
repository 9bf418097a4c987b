"""Consumers' subscriptions: the only part of members' metadata that the coordinator reads."""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_VERSION = Struct(">h")
_LAST_VERSION = 3


class Subscriptions:
    """The subscriptions of one generation, decoded when they are first needed.

    Requires for every method: the shard's lock.
    """

    __slots__ = ("_encoded", "_topics")

    def __init__(self, encoded: Sequence[bytes] | None) -> None:
        """`encoded` is the metadata of each member; None if the members are no consumers."""
        self._encoded = encoded
        self._topics: frozenset[str] | None = None

    def topics(self) -> frozenset[str] | None:
        """Return the topics that the members read; None if unknown."""
        if self._topics is None and self._encoded is not None:
            self._topics = subscribed_topics(self._encoded)
            self._encoded = None
        return self._topics


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics in all `subscriptions`; None if one is not in the consumers' format.

    A version above the last known one is read as that one, whose fields it begins with.
    """
    import wire
    from wire.schemas.consumer_protocol import ConsumerProtocolSubscription

    topics: set[str] = set()
    for subscription in subscriptions:
        if len(subscription) < _VERSION.size:
            return None
        (version,) = _VERSION.unpack_from(subscription)
        if version < 0:
            return None
        try:
            decoded = wire.decode(
                ConsumerProtocolSubscription,
                min(version, _LAST_VERSION),
                subscription,
                _VERSION.size,
            )
        except wire.MalformedMessage:
            return None
        topics.update(decoded.topics)
    return frozenset(topics)
