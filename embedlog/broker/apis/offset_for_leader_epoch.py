"""OffsetForLeaderEpoch (api key 23), versions 0-4: the end of a leader epoch (KIP-101, KIP-320).

v1 the answer names the epoch. v2 the client's leader epoch is checked. v3 replica id. v4 flexible.
The answer has the largest known epoch up to the requested one, and the offset at which the next
epoch starts. Both are -1 if the log does not know the epoch.
"""

from __future__ import annotations

from embedlog import errors
from wire.schemas.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from wire.schemas.offset_for_leader_epoch import (
        OffsetForLeaderEpochRequest,
        OffsetForLeaderPartition,
    )


def handle(
    broker: Broker, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_find(broker, topic.topic, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def refused(
    request: OffsetForLeaderEpochRequest, version: int, error: errors.KafkaError
) -> OffsetForLeaderEpochResponse:
    """Return the error in every partition."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=asked.partition, error_code=error.code)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _find(broker: Broker, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    index = asked.partition
    try:
        partition = broker.replica_manager.partition(topic, index)
        epoch, end_offset = partition.end_offset_for_epoch(
            asked.leader_epoch, asked.current_leader_epoch
        )
    except errors.KafkaError as error:
        return EpochEndOffset(partition=index, error_code=error.code)
    return EpochEndOffset(partition=index, leader_epoch=epoch, end_offset=end_offset)
