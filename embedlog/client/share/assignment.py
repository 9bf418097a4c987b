"""`ShareAssignment`: the subscribed topics and the partitions that the group has assigned."""

from __future__ import annotations

from embedlog.common import TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from embedlog.client.metadata import Metadata
    from wire.schemas.share_group_heartbeat import TopicPartitions


class ShareAssignment:
    """The group assigns topic ids; metadata has their names."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self.topics: tuple[str, ...] = ()
        """The subscribed topics in order of their names."""
        self._places: frozenset[tuple[bytes, int]] = frozenset()
        self._keys: dict[tuple[bytes, int], TopicPartition] = {}
        self._seen_changes = -1

    def set(self, assigned: Iterable[TopicPartitions]) -> None:
        self._places = frozenset(
            (topic.topic_id, number) for topic in assigned for number in topic.partitions
        )
        self._seen_changes = -1

    @property
    def count(self) -> int:
        """Number of assigned partitions."""
        return len(self._places)

    @property
    def has_all_topics(self) -> bool:
        """True if each subscribed topic has an assigned partition."""
        return {key.topic for key in self.partitions().values()}.issuperset(self.topics)

    def clear(self) -> None:
        self.set(())

    def partitions(self) -> Mapping[tuple[bytes, int], TopicPartition]:
        """Return the assigned partitions whose topics' names are known, by topic id and number.

        If a name is unknown, request metadata.
        """
        metadata = self._metadata
        if self._seen_changes != metadata.change_count:
            self._seen_changes = metadata.change_count
            names = metadata.names_by_id
            self._keys = {
                place: TopicPartition(names[place[0]], place[1])
                for place in sorted(self._places)
                if place[0] in names
            }
            if len(self._keys) < len(self._places):
                metadata.request_update()
        return self._keys
