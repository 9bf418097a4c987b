"""OffsetFetch before version 8: one group a request, and errors in other places.

v0      read from ZooKeeper: an unknown partition is UNKNOWN_TOPIC_OR_PARTITION
v0-v1   every partition repeats an error
v2-v7   the whole answer has one error
"""

from __future__ import annotations

from wire.error_codes import ErrorCode
from wire.schemas.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
)

FIRST_WITH_GROUPS = 8
_FIRST_WITH_TOP_LEVEL_ERROR = 2
_NO_OFFSET = -1


def question(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """Return an older request in the form of the newer ones."""
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if request.topics is None
        else [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ],
    )


def answer(group: OffsetFetchResponseGroup, version: int) -> OffsetFetchResponse:
    """Return the answer in the form of an older version."""
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[_partition(partition, version) for partition in topic.partitions],
            )
            for topic in group.topics
        ],
        error_code=group.error_code,
    )


def refused(request: OffsetFetchRequest, version: int, code: int) -> OffsetFetchResponse:
    """Return an error answer."""
    if version >= _FIRST_WITH_TOP_LEVEL_ERROR:
        return OffsetFetchResponse(error_code=code)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=number, committed_offset=_NO_OFFSET, error_code=code
                    )
                    for number in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
    )


def _partition(
    partition: OffsetFetchResponsePartitions, version: int
) -> OffsetFetchResponsePartition:
    code = partition.error_code
    if version == 0 and partition.committed_offset == _NO_OFFSET and not code:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return OffsetFetchResponsePartition(
        partition_index=partition.partition_index,
        committed_offset=partition.committed_offset,
        committed_leader_epoch=partition.committed_leader_epoch,
        metadata=partition.metadata,
        error_code=code,
    )
