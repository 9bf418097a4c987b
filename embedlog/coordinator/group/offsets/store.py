"""`OffsetStore`: the committed offsets of the groups of one shard, and their records.

Offsets of an open transaction are kept apart until its marker comes. Then they count, unless a
later plain commit replaced them: the later record in the log wins.
"""

from __future__ import annotations

from embedlog.common import ZERO_UUID
from embedlog.coordinator.result import CoordinatorRecord
from wire.schemas.group_metadata import OffsetCommitKey, OffsetCommitValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Place = tuple[str, str, int]
    """The key of a committed offset: (group, topic, partition)."""

NO_PRODUCER_ID = -1
NO_EXPIRY = -1

_VALUE_VERSION = 4
_VALUE_VERSION_WITH_EXPIRY = 1
"""The only version that has a field for an expiry time."""


def offset_record(
    group_id: str, topic: str, partition: int, value: OffsetCommitValue
) -> CoordinatorRecord:
    """Return the record of one committed offset, in the value version that Kafka chooses."""
    has_expiry = value.expire_timestamp != NO_EXPIRY
    version = _VALUE_VERSION_WITH_EXPIRY if has_expiry else _VALUE_VERSION
    return CoordinatorRecord(_key(group_id, topic, partition), value, version)


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """Return the record that deletes a committed offset."""
    return CoordinatorRecord(_key(group_id, topic, partition))


def _key(group_id: str, topic: str, partition: int) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=topic, partition=partition)


class StoredOffset:
    """One committed offset; immutable."""

    __slots__ = (
        "commit_timestamp_ms",
        "expire_timestamp_ms",
        "leader_epoch",
        "metadata",
        "offset",
        "record_offset",
        "topic_id",
    )

    def __init__(self, value: OffsetCommitValue, record_offset: int) -> None:
        self.offset = value.offset
        self.leader_epoch = value.leader_epoch
        """The leader epoch of the last consumed record; -1 if the client did not name it."""
        self.metadata = value.metadata
        self.commit_timestamp_ms = value.commit_timestamp
        self.expire_timestamp_ms = value.expire_timestamp
        """The client's expiry time (OffsetCommit 2-4); else -1."""
        self.topic_id = value.topic_id
        """Id of the topic; zeros if the record's value version is below 4."""
        self.record_offset = record_offset
        """The record's offset in the shard's log."""

    def is_of(self, topic_id: bytes) -> bool:
        """Return whether this may be an offset of the topic with that id.

        The name of a deleted topic can be used again, for a topic with another id.
        """
        return self.topic_id in (topic_id, ZERO_UUID) or topic_id == ZERO_UUID

    def __repr__(self) -> str:
        return f"StoredOffset({self.offset}@{self.leader_epoch})"


TopicOffsets = dict[str, dict[int, StoredOffset]]
"""Topic -> partition -> offset."""

_NOTHING: TopicOffsets = {}


class OffsetStore:
    """The offsets of one shard. Requires for every method: the shard's lock."""

    def __init__(self) -> None:
        self._groups: dict[str, TopicOffsets] = {}
        self._pending: dict[int, dict[Place, StoredOffset]] = {}
        """Producer id -> the offsets of its open transaction."""
        self._open: dict[Place, int] = {}
        """Key of an offset -> number of open transactions that commit this offset."""

    # Looking up

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, StoredOffset]]:
        return self._groups.get(group_id, _NOTHING)

    def find(self, group_id: str, topic: str, partition: int) -> StoredOffset | None:
        of_topic = self.of_group(group_id).get(topic)
        return None if of_topic is None else of_topic.get(partition)

    def is_open(self, group_id: str, topic: str, partition: int) -> bool:
        """Return whether an open transaction commits this offset, which may then soon change."""
        return (group_id, topic, partition) in self._open

    def has_open(self, group_id: str) -> bool:
        return any(place[0] == group_id for place in self._open)

    def pending_places(self, group_id: str) -> list[tuple[str, int]]:
        """Return (topic, partition) of the group's offsets in open transactions."""
        return [place[1:] for place in self._open if place[0] == group_id]

    def topics(self) -> set[str]:
        return {topic for topics in self._groups.values() for topic in topics}

    def places_of(self, topic: str) -> list[Place]:
        """Return the keys of a topic's offsets, including offsets of open transactions."""
        places = {
            (group_id, topic, partition): None
            for group_id, topics in self._groups.items()
            for partition in topics.get(topic, ())
        }
        places.update((place, None) for place in self._open if place[1] == topic)
        return list(places)

    # Replaying

    def replay(
        self,
        key: OffsetCommitKey,
        value: OffsetCommitValue | None,
        *,
        offset: int,
        producer_id: int = NO_PRODUCER_ID,
    ) -> None:
        place = key.group, key.topic, key.partition
        if value is None:
            self._remove(place)
            for pending in self._pending.values():
                if pending.pop(place, None) is not None:
                    self._close(place)
            return
        stored = StoredOffset(value, offset)
        if producer_id == NO_PRODUCER_ID:
            self._put(place, stored)
            return
        pending = self._pending.setdefault(producer_id, {})
        if place not in pending:
            self._open[place] = self._open.get(place, 0) + 1
        pending[place] = stored

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """Commit or drop the producer's offsets since its last marker."""
        for place, stored in self._pending.pop(producer_id, {}).items():
            self._close(place)
            present = self.find(*place)
            if is_committed and (present is None or present.record_offset < stored.record_offset):
                self._put(place, stored)

    def _put(self, place: Place, stored: StoredOffset) -> None:
        group_id, topic, partition = place
        self._groups.setdefault(group_id, {}).setdefault(topic, {})[partition] = stored

    def _remove(self, place: Place) -> None:
        group_id, topic, partition = place
        of_topic = self._groups.get(group_id, _NOTHING).get(topic)
        if of_topic is None or of_topic.pop(partition, None) is None or of_topic:
            return
        topics = self._groups[group_id]
        del topics[topic]
        if not topics:
            del self._groups[group_id]

    def _close(self, place: Place) -> None:
        count = self._open[place] - 1
        if count:
            self._open[place] = count
        else:
            del self._open[place]
