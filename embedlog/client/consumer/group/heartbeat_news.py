"""`HeartbeatNews`: finds the fields that changed since the last consumer-protocol heartbeat."""

from __future__ import annotations

from embedlog.client.consumer.subscription_state import SubscriptionType
from wire.schemas.consumer_group_heartbeat import TopicPartitions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.consumer.parts import ConsumerParts


class HeartbeatNews:
    """Tracks the fields that the coordinator knows from answered heartbeats."""

    def __init__(self, parts: ConsumerParts) -> None:
        self._parts = parts
        self._subscription = parts.subscription
        self._told: dict[str, object] = {}
        """Field values that the coordinator knows; empty if that is uncertain."""
        self.telling: dict[str, object] = {}
        """Field values that the coordinator will know once it has answered the last heartbeat."""
        self.is_urgent = False
        """True if a heartbeat must be sent before the interval is over."""

    def take(self, *, owns: bool) -> dict[str, Any]:
        """Return the changed fields for the next heartbeat.

        `owns` is False for a joining member, which reports that it owns no partitions.
        """
        self.is_urgent = False
        self.telling = self._facts(self._owned() if owns else [])
        return {key: fact for key, fact in self.telling.items() if self._told.get(key) != fact}

    def answered(self) -> None:
        self._told = self.telling

    def doubt(self) -> None:
        """Send all fields in the next heartbeat, now: the coordinator may know none of them."""
        self._told = {}
        self.is_urgent = True

    def _facts(self, owned: list[TopicPartitions]) -> dict[str, object]:
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
