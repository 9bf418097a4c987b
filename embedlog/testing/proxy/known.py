"""`KnownTopics`: the topics of the cluster behind a proxy, as far as answers have named them.

It and `NoSessions` stand for parts of a broker that the fault rules look at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from embedlog.topic_names import INTERNAL_TOPICS


class KnownTopic(NamedTuple):
    """A topic: its name, its id, and the numbers of its partitions."""

    name: str
    topic_id: bytes
    partitions: range

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


class KnownTopics:
    """The topics by name and by id."""

    def __init__(self) -> None:
        self.topics_by_name: dict[str, KnownTopic] = {}
        self.names_by_id: dict[bytes, str] = {}

    def learn(self, metadata: Any) -> None:
        """Take the topics of a Metadata answer."""
        for topic in metadata.topics:
            if not topic.name or topic.error_code:
                continue
            found = KnownTopic(topic.name, topic.topic_id, range(len(topic.partitions)))
            self.topics_by_name[topic.name] = found
            if any(topic.topic_id):
                self.names_by_id[topic.topic_id] = topic.name


class NoSessions:
    """The fetch sessions of a proxy: it lets clients have none, so each Fetch names everything."""

    def find(self, _session_id: int) -> None:
        return None


class NoParkedFetches:
    """The parked fetches of a proxy: the broker has them, and learns of closed connections."""

    def connection_closed(self, _connection: object) -> None:
        """Do nothing."""
