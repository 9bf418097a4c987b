"""What a member of the consumer protocol has to tell its coordinator, and what it has told."""

from __future__ import annotations

from embedlog.client.consumer.subscription_state import SubscriptionType
from wire.schemas.consumer_group_heartbeat import TopicPartitions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.consumer.parts import ConsumerParts


class HeartbeatNews:
    """Only what has changed since the last answered heartbeat is sent."""

    __slots__ = ("_parts", "_subscription", "_told", "is_urgent", "telling")

    def __init__(self, parts: ConsumerParts) -> None:
        self._parts = parts
        self._subscription = parts.subscription
        self._told: dict[str, object] = {}
        """What the coordinator knows, by field; empty when that is in doubt."""
        self.telling: dict[str, object] = {}
        """What it knows once the last heartbeat is answered; empty when none was sent."""
        self.is_urgent = False
        """The coordinator is to hear something before the interval is over."""

    def take(self, *, owns: bool) -> dict[str, Any]:
        """The fields of the next heartbeat; one who joins `owns` nothing yet."""
        self.is_urgent = False
        self.telling = self._facts(self._owned() if owns else [])
        return {key: fact for key, fact in self.telling.items() if self._told.get(key) != fact}

    def answered(self) -> None:
        """The coordinator knows what the last heartbeat said."""
        self._told = self.telling

    def doubt(self) -> None:
        """Nobody knows what the coordinator knows: tell it everything, soon."""
        self._told = {}
        self.is_urgent = True

    def _facts(self, owned: list[TopicPartitions]) -> dict[str, object]:
        """What the coordinator has to know, by field."""
        subscription = self._subscription
        settings = self._parts.settings
        facts: dict[str, object] = {
            "rebalance_timeout_ms": settings["max.poll.interval.ms"],
            "subscribed_topic_names": sorted(subscription.topics),
            "topic_partitions": owned,
        }
        if subscription.type == SubscriptionType.SERVER_PATTERN:
            facts["subscribed_topic_regex"] = subscription.server_pattern
        elif "subscribed_topic_regex" in self._told:
            facts["subscribed_topic_regex"] = ""
        if settings["client.rack"]:
            facts["rack_id"] = settings["client.rack"]
        if settings["group.remote.assignor"] is not None:
            facts["server_assignor"] = settings["group.remote.assignor"]
        return facts

    def _owned(self) -> list[TopicPartitions]:
        by_id: dict[bytes, list[int]] = {}
        known = self._parts.metadata.topics
        for topic, number in sorted(self._subscription.partitions):
            if topic in known:
                by_id.setdefault(known[topic].topic_id, []).append(number)
        return [
            TopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in by_id.items()
        ]
