"""Which topics consumers asked for: the one thing the coordinator reads of members' metadata."""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_VERSION = Struct(">h")
_LAST_VERSION = 3


class Subscriptions:
    """What the consumers of one generation asked for, decoded when it is asked about first.

    Requires for every method: the shard's lock.
    """

    __slots__ = ("_encoded", "_topics")

    def __init__(self, encoded: Sequence[bytes] | None) -> None:
        """`encoded` is the metadata of each member; None when the members are no consumers."""
        self._encoded = encoded
        self._topics: frozenset[str] | None = None

    def topics(self) -> frozenset[str] | None:
        """The topics that the members read; None when that is not known."""
        if self._topics is None and self._encoded is not None:
            self._topics = subscribed_topics(self._encoded)
            self._encoded = None
        return self._topics


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics in all `subscriptions`; None when one of them is not what consumers write.

    A later version than is known is read as the last known one, whose fields it begins with.
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
