"""OffsetFetch: the offsets of one group, in the form of the newest versions.

Absence is no error: an unknown group, topic or partition has offset -1. From v10 on requests name
topics by id, and an unknown id is UNKNOWN_TOPIC_ID.
"""

from __future__ import annotations

from embedlog.common import ZERO_UUID
from embedlog.errors import KafkaError
from wire.error_codes import ErrorCode
from wire.schemas.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.controller.metadata import MetadataImage, TopicImage
    from embedlog.coordinator.group.group import Group
    from embedlog.coordinator.group.offsets.store import OffsetStore, StoredOffset

NO_OFFSET = -1


class OffsetFetch:
    """A fetch of one group's offsets, by topic id or name. Requires: the shard's lock."""

    def __init__(
        self,
        store: OffsetStore,
        metadata: MetadataImage,
        group_id: str,
        *,
        by_id: bool,
        require_stable: bool,
    ) -> None:
        self._store = store
        self._metadata = metadata
        self._group_id = group_id
        self._by_id = by_id
        self._require_stable = require_stable

    def answer(
        self, asked: OffsetFetchRequestGroup, group: Group | None
    ) -> OffsetFetchResponseGroup:
        """Return the requested offsets, or all of the group's; `group` is None if it is unknown."""
        if group is not None:
            try:
                group.validate_offset_fetch(asked.member_id, asked.member_epoch)
            except KafkaError as error:
                return OffsetFetchResponseGroup(group_id=self._group_id, error_code=error.code)
        topics = self._all() if asked.topics is None else self._some(asked.topics)
        return OffsetFetchResponseGroup(group_id=self._group_id, topics=topics)

    def _all(self) -> list[OffsetFetchResponseTopics]:
        answers = []
        for name, offsets in self._store.of_group(self._group_id).items():
            image = self._metadata.topics_by_name.get(name)
            if self._by_id and image is None:
                continue  # the topic was deleted, and its offsets soon will be
            partitions = [
                self._partition(name, image, number)
                for number, stored in offsets.items()
                if image is None or stored.is_of(image.topic_id)
            ]
            if partitions:
                answers.append(self._topic(name, image, partitions))
        return answers

    def _some(self, asked: list[OffsetFetchRequestTopics]) -> list[OffsetFetchResponseTopics]:
        answers = []
        unknown = []
        for topic in asked:
            if not self._by_id:
                image = self._metadata.topics_by_name.get(topic.name)
            else:
                image = self._metadata.topics_by_id.get(topic.topic_id)
                if image is None:
                    unknown.append(_unknown(topic))
                    continue
            name = topic.name if image is None else image.name
            partitions = [
                self._partition(name, image, number) for number in topic.partition_indexes
            ]
            answers.append(self._topic(name, image, partitions))
        return answers + unknown

    def _topic(
        self,
        name: str,
        image: TopicImage | None,
        partitions: list[OffsetFetchResponsePartitions],
    ) -> OffsetFetchResponseTopics:
        if self._by_id:
            assert image is not None, name
            return OffsetFetchResponseTopics(topic_id=image.topic_id, partitions=partitions)
        return OffsetFetchResponseTopics(name=name, partitions=partitions)

    def _partition(
        self, name: str, image: TopicImage | None, number: int
    ) -> OffsetFetchResponsePartitions:
        if self._require_stable and self._store.is_open(self._group_id, name, number):
            return nothing(number, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        stored = self._store.find(self._group_id, name, number)
        topic_id = ZERO_UUID if image is None else image.topic_id
        if stored is None or not stored.is_of(topic_id):
            return nothing(number)
        return _found(number, stored)


def nothing(number: int, code: int = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    """Return an answer without an offset, or with an error."""
    return OffsetFetchResponsePartitions(
        partition_index=number, committed_offset=NO_OFFSET, error_code=code
    )


def _found(number: int, stored: StoredOffset) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=number,
        committed_offset=stored.offset,
        committed_leader_epoch=stored.leader_epoch,
        metadata=stored.metadata,
    )


def _unknown(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=topic.topic_id,
        partitions=[
            nothing(number, ErrorCode.UNKNOWN_TOPIC_ID) for number in topic.partition_indexes
        ],
    )
