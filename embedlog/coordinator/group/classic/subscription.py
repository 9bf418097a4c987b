"""Which topics consumers asked for: the one thing the coordinator reads of members' metadata."""

from __future__ import annotations

from struct import Struct

import wire
from wire.schemas.consumer_protocol import ConsumerProtocolSubscription

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_VERSION = Struct(">h")
_LAST_VERSION = 3


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics in all `subscriptions`; None when one of them is not what consumers write.

    A later version than is known is read as the last known one, whose fields it begins with.
    """
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
