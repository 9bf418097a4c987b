"""OffsetDelete: an administrator deletes offsets that are not in use."""

from __future__ import annotations

from embedlog import errors
from embedlog.controller.metadata import MetadataImage
from embedlog.coordinator.group.group import Group
from embedlog.coordinator.group.offsets.store import OffsetStore, offset_tombstone
from embedlog.coordinator.result import CoordinatorRecord, Result
from wire.error_codes import ErrorCode
from wire.schemas.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def delete_offsets(
    request: OffsetDeleteRequest, store: OffsetStore, group: Group | None, metadata: MetadataImage
) -> Result[OffsetDeleteResponse]:
    """Delete the requested offsets that are not in use. Requires: the shard's lock.

    Raises:
        GroupIdNotFound: the group does not exist.
        KafkaError: see `Group.validate_offset_delete`.
    """
    if group is None:
        raise errors.GroupIdNotFound()
    group.validate_offset_delete()
    records: list[CoordinatorRecord] = []
    topics = []
    for topic in request.topics:
        image = metadata.topics_by_name.get(topic.name)
        count = 0 if image is None else len(image.partitions)
        is_used = group.is_subscribed_to(topic.name)
        refused, done = [], []
        for asked in topic.partitions:
            number = asked.partition_index
            if not 0 <= number < count:
                refused.append(_answer(number, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                continue
            if is_used:
                done.append(_answer(number, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC))
                continue
            done.append(_answer(number, ErrorCode.NONE))
            if store.find(request.group_id, topic.name, number) is not None or store.is_open(
                request.group_id, topic.name, number
            ):
                records.append(offset_tombstone(request.group_id, topic.name, number))
        if topic.partitions:
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=refused + done))
    return Result(records, OffsetDeleteResponse(topics=topics), is_atomic=False)


def _answer(number: int, code: int) -> OffsetDeleteResponsePartition:
    return OffsetDeleteResponsePartition(partition_index=number, error_code=code)
