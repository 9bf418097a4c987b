"""AlterShareGroupOffsets and DeleteShareGroupOffsets: start offsets of a group without members."""

from __future__ import annotations

from embedlog import errors
from embedlog.common import grouped, uuid_to_text
from embedlog.coordinator.answers import then
from embedlog.coordinator.group.share import member_records
from embedlog.coordinator.group.share.share_group import ShareGroup
from embedlog.coordinator.group.share.state_topics import named_of
from embedlog.coordinator.result import Result
from embedlog.runtime.pending import Pending
from wire.error_codes import ErrorCode
from wire.schemas.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from wire.schemas.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.coordinator.group.share.deletion import Deletion
    from embedlog.coordinator.group.share.initialization import Initialization
    from embedlog.coordinator.group.share.membership import Membership
    from embedlog.coordinator.share.state_client import Place
    from embedlog.errors import KafkaError

UNKNOWN = "This server does not host this topic-partition."
_UNKNOWN_CODE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_MESSAGES = {
    _UNKNOWN_CODE: UNKNOWN,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
}
NOTHING_STORED = "There is no offset information to delete."


class OffsetChanges:
    """Changes start offsets of one shard's groups. Requires: the shard's lock."""

    def __init__(
        self, membership: Membership, initialization: Initialization, deletion: Deletion
    ) -> None:
        self._membership = membership
        self._context = membership.context
        self._initialization = initialization
        self._deletion = deletion

    def alter(
        self, request: AlterShareGroupOffsetsRequest
    ) -> Result[AlterShareGroupOffsetsResponse]:
        """Initialise share partitions anew, at the given offsets. An unknown group is created.

        Raises:
            UnknownServerError: a partition of a topic that exists is negative; as in Kafka.
            GroupIdNotFound: the group is of another type.
            NonEmptyGroup: the group has members.
        """
        group_id = request.group_id
        if group_id in self._membership.groups:
            group = self._membership.empty_group(group_id)
        else:
            group = ShareGroup(group_id)
        altered = _Altered(request, self._known(request))
        wanted = named_of(altered.starts, altered.names)
        record = member_records.state_topics(group_id, group.state_topics.begun(wanted))
        if not altered.starts:
            # As in Kafka, a topic that exists is enough for a new group.
            is_made = bool(altered.names) and group_id not in self._membership.groups
            return Result([record] if is_made else [], altered.response({}))
        answer: Pending[AlterShareGroupOffsetsResponse] = Pending()

        def begin() -> None:
            codes = self._initialization.begin(
                group_id, group.group_epoch, altered.starts, altered.names
            )
            answer.follow(then(codes, altered.response))

        def committed(error: KafkaError | None) -> None:
            if error is None:
                self._initialization.note_begun(group_id, wanted)
                self._context.defer(begin)

        return Result([record], answer, on_append=committed)

    def _known(self, request: AlterShareGroupOffsetsRequest) -> dict[str, tuple[bytes, int]]:
        """Return (topic id, number of partitions) of the requested topics that exist."""
        by_name = self._context.metadata().topics_by_name
        found = {}
        for asked in request.topics:
            topic = by_name.get(asked.topic_name)
            if topic is not None:
                found[topic.name] = topic.topic_id, len(topic.partitions)
        return found

    def delete(
        self, request: DeleteShareGroupOffsetsRequest
    ) -> Result[DeleteShareGroupOffsetsResponse]:
        """Delete the state of topics.

        Raises:
            GroupIdNotFound: the group does not exist or is of another type.
            NonEmptyGroup: the group has members.
        """
        group = self._membership.empty_group(request.group_id)
        metadata = self._context.metadata()
        stored = {*group.state_topics.topic_ids(), *group.state_topics.deleting}
        refused: list[DeleteShareGroupOffsetsResponseTopic] = []
        going: dict[bytes, str] = {}
        for asked in request.topics:
            topic = metadata.topics_by_name.get(asked.topic_name)
            if topic is None:
                refused.append(_topic(asked.topic_name, UNKNOWN))
            elif topic.topic_id not in stored:
                refused.append(_topic(asked.topic_name, NOTHING_STORED))
            else:
                going[topic.topic_id] = topic.name

        def finish(codes: Mapping[bytes, int]) -> Result[DeleteShareGroupOffsetsResponse]:
            deleted = [
                DeleteShareGroupOffsetsResponseTopic(
                    topic_name=name, topic_id=topic_id, error_code=codes[topic_id]
                )
                for topic_id, name in going.items()
            ]
            response = DeleteShareGroupOffsetsResponse(responses=[*deleted, *refused])
            return Result(self._deletion.forgotten(request.group_id, codes), response)

        if not going:
            return finish({})
        return self._deletion.delete_state(group, going, finish)


class _Altered:
    """The partitions of one AlterShareGroupOffsets, and its answer."""

    def __init__(
        self, request: AlterShareGroupOffsetsRequest, known: Mapping[str, tuple[bytes, int]]
    ) -> None:
        self._request = request
        self._known = known
        self.names = {topic_id: name for name, (topic_id, _) in known.items()}
        self.starts: dict[Place, int] = {}
        """Partition -> start offset, of the partitions that exist."""
        for asked in request.topics:
            topic_id, count = known.get(asked.topic_name, (b"", 0))
            for partition in asked.partitions:
                number = partition.partition_index
                if number < 0 < count:
                    raise errors.UnknownServerError(
                        "Initialize share group parameters has invalid partitionId -"
                        f" {request.group_id} {uuid_to_text(topic_id)} {number}"
                    )
                if number < count:
                    self.starts[topic_id, number] = partition.start_offset

    def response(self, codes: Mapping[Place, int]) -> AlterShareGroupOffsetsResponse:
        """Return the answer; `codes` has the error code of each partition in `starts`."""
        topics = []
        for name, entries in grouped(self._request.topics, lambda asked: asked.topic_name).items():
            topic_id, _ = self._known.get(name, (bytes(16), 0))
            numbers = [each.partition_index for entry in entries for each in entry.partitions]
            if not numbers and name not in self._known:
                continue
            topics.append(
                AlterShareGroupOffsetsResponseTopic(
                    topic_name=name,
                    topic_id=topic_id,
                    partitions=[
                        _partition(number, codes.get((topic_id, number), _UNKNOWN_CODE))
                        for number in numbers
                    ],
                )
            )
        return AlterShareGroupOffsetsResponse(responses=topics)


def _partition(number: int, code: int) -> AlterShareGroupOffsetsResponsePartition:
    return AlterShareGroupOffsetsResponsePartition(
        partition_index=number, error_code=code, error_message=_MESSAGES.get(code)
    )


def _topic(name: str, message: str) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name,
        error_code=_UNKNOWN_CODE,
        error_message=message,
    )
