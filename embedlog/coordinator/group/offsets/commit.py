"""OffsetCommit: checks a request's offsets and makes their records.

The checks come in this order; the first one for each partition, before the group is looked up:
    unknown topic id, topic or partition    UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION
    unknown group, if a generation is named ILLEGAL_GENERATION, from v9 on GROUP_ID_NOT_FOUND
    the member                              see `Group.validate_offset_commit`
    too much metadata, of each partition    OFFSET_METADATA_TOO_LARGE

A commit without a generation creates an unknown group, which then only stores offsets. Offsets of a
transaction count once its commit marker is appended.
"""

from __future__ import annotations

from embedlog.common import grouped
from embedlog.coordinator.group.offsets.store import offset_record
from embedlog.coordinator.result import CoordinatorRecord, Producer, Result
from embedlog.errors import KafkaError, error_for
from wire.error_codes import ErrorCode
from wire.schemas.group_metadata import OffsetCommitValue
from wire.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.group import Group
    from embedlog.coordinator.shard_context import ShardContext

_FIRST_WITH_GROUP_NOT_FOUND = 9
_FIRST_WITH_IDS = 10
_DEFAULT = -1


class OffsetCommit:
    """One OffsetCommit request, split into refused partitions and partitions to commit."""

    def __init__(
        self,
        request: OffsetCommitRequest,
        version: int,
        metadata: MetadataImage,
        *,
        producer: Producer | None = None,
    ) -> None:
        self.request = request
        self.producer = producer
        """The producer of a transactional commit."""
        self.version = version
        self.wanted: list[tuple[str, OffsetCommitRequestTopic, list[_Partition]]] = []
        """(name, requested topic, its partitions) of each existing topic."""
        self._refused: list[OffsetCommitResponseTopic] = []
        self._look_up_all(metadata)

    def _look_up_all(self, metadata: MetadataImage) -> None:
        self._metadata = metadata
        self.wanted.clear()
        self._refused.clear()
        for topic in self.request.topics:
            self._look_up(topic, metadata)

    def _look_up(self, topic: OffsetCommitRequestTopic, metadata: MetadataImage) -> None:
        if self.version >= _FIRST_WITH_IDS:
            image = metadata.topics_by_id.get(topic.topic_id)
            code = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            image = metadata.topics_by_name.get(topic.name)
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if image is None:
            if topic.partitions:
                self._refused.append(_answer(topic, [(p, code) for p in topic.partitions]))
            return
        count = len(image.partitions)
        known = [p for p in topic.partitions if 0 <= p.partition_index < count]
        if len(known) < len(topic.partitions):
            unknown = [p for p in topic.partitions if not 0 <= p.partition_index < count]
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            self._refused.append(_answer(topic, [(p, code) for p in unknown]))
        if known:
            partitions = [_Partition(p, image.topic_id) for p in known]
            self.wanted.append((image.name, topic, partitions))

    def apply(self, context: ShardContext, group: Group | None) -> Result[OffsetCommitResponse]:
        """Commit for `group`, which is None if it does not exist. Requires: the shard's lock.

        Raises:
            KafkaError: the group or the member may not commit; see `refused`.
        """
        metadata = context.metadata()
        if metadata is not self._metadata:
            # A topic may have been deleted since the first look-up: its offsets may be gone
            # already, and an offset that is stored now would stay for ever.
            self._look_up_all(metadata)
            if not self.wanted:
                return Result((), self.response())
        request = self.request
        generation = request.generation_id_or_member_epoch
        if group is not None:
            group.validate_offset_commit(
                request.member_id,
                request.group_instance_id,
                generation,
                is_transactional=self.producer is not None,
                api_version=self.version,
                partitions=(
                    (partition.topic_id, partition.asked.partition_index)
                    for _, _, partitions in self.wanted
                    for partition in partitions
                ),
            )
            group.offset_commit_accepted(request.member_id)
        elif generation >= 0:
            raise error_for(
                ErrorCode.GROUP_ID_NOT_FOUND
                if self.version >= _FIRST_WITH_GROUP_NOT_FOUND
                else ErrorCode.ILLEGAL_GENERATION
            )
        records: list[CoordinatorRecord] = []
        answers: list[OffsetCommitResponseTopic] = []
        metadata_max: int = context.config.offset_metadata_max_bytes
        now_ms = context.wall_ms()
        for name, topic, partitions in self.wanted:
            codes = []
            for partition in partitions:
                asked = partition.asked
                if _text_length(asked.committed_metadata) > metadata_max:
                    codes.append((asked, ErrorCode.OFFSET_METADATA_TOO_LARGE))
                    continue
                codes.append((asked, ErrorCode.NONE))
                value = self._value(partition, now_ms)
                records.append(offset_record(request.group_id, name, asked.partition_index, value))
            answers.append(_answer(topic, codes))
        return Result(records, self.response(answers), producer=self.producer)

    def _value(self, partition: _Partition, now_ms: int) -> OffsetCommitValue:
        asked = partition.asked
        retention_ms = self.request.retention_time_ms
        return OffsetCommitValue(
            offset=asked.committed_offset,
            leader_epoch=asked.committed_leader_epoch,
            metadata=asked.committed_metadata or "",
            commit_timestamp=(
                now_ms if asked.commit_timestamp == _DEFAULT else asked.commit_timestamp
            ),
            expire_timestamp=_DEFAULT if retention_ms == _DEFAULT else now_ms + retention_ms,
            topic_id=partition.topic_id,
        )

    def refused(self, error: KafkaError) -> OffsetCommitResponse:
        """Return the answer to a refused commit: `error` for every partition that exists."""
        return self.response(
            [
                _answer(topic, [(partition.asked, error.code) for partition in partitions])
                for _, topic, partitions in self.wanted
            ]
        )

    def response(self, answers: Sequence[OffsetCommitResponseTopic] = ()) -> OffsetCommitResponse:
        """Return the answer. Missing partitions come first, as in Kafka, and then each topic occurs
        once; if no partition is missing, a topic occurs as often as in the request.
        """
        if not self._refused:
            return OffsetCommitResponse(topics=list(answers))
        by_topic = grouped(
            [*self._refused, *answers], lambda answer: (answer.name, answer.topic_id)
        )
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=name,
                    topic_id=topic_id,
                    partitions=[each for entry in entries for each in entry.partitions],
                )
                for (name, topic_id), entries in by_topic.items()
            ]
        )


class _Partition:
    """A requested partition that exists."""

    __slots__ = ("asked", "topic_id")

    def __init__(self, asked: OffsetCommitRequestPartition, topic_id: bytes) -> None:
        self.asked = asked
        self.topic_id = topic_id


def _answer(
    topic: OffsetCommitRequestTopic, codes: list[tuple[OffsetCommitRequestPartition, int]]
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=asked.partition_index, error_code=code)
            for asked, code in codes
        ],
    )


def _text_length(text: str | None) -> int:
    """Return the length in UTF-16 units, as Java counts."""
    if not text:
        return 0
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
