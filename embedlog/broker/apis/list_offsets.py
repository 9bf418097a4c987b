"""ListOffsets (api key 2), versions 0-11: the start, the end, or the offset of a timestamp.

Negative timestamps are special: -1 is the latest offset of the isolation level, -2 the earliest. v7
-3 the record with the largest timestamp. v8 -4 the earliest local offset. v9 -5 the latest tiered
offset. v11 -6 the earliest offset that waits for its upload. Without tiered storage -5 and -6 have
no offset.

v0 lists offsets of segments. v2 isolation level. v4 leader epochs. v5 OFFSET_NOT_AVAILABLE while a
new leader does not know yet which records are committed. v10 timeout, not used. For a replica
(id >= 0) the latest offset is the end of the log. A debugging client (replica id -2) may also send
the request to a follower.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import grouped, repeated
from embedlog.replication.partition import NO_EPOCH, Isolation, Partition
from wire.schemas.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from wire.schemas.list_offsets import ListOffsetsPartition, ListOffsetsRequest

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

_FIRST_VERSION = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

_CONSUMER = -1
_DEBUGGING_REPLICA = -2
_FIRST_WITH_NOT_AVAILABLE = 5
_FIRST_WITH_ONE_OFFSET = 1


def handle(
    broker: Broker, context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    version = context.api_version
    if request.isolation_level not in (0, 1):
        raise errors.UnknownServerError(f"Unknown isolation level {request.isolation_level}")
    named_twice = _repeated(request)
    topics = []
    for name, entries in grouped(request.topics, lambda topic: topic.name).items():
        answers = []
        wanted = {asked.partition_index: asked for topic in entries for asked in topic.partitions}
        for asked in wanted.values():
            try:
                if (name, asked.partition_index) in named_twice:
                    raise errors.InvalidRequest()
                answers.append(_find(broker, request, version, name, asked))
            except errors.KafkaError as error:
                answers.append(_refusal(asked, error.code))
        if answers:
            topics.append(ListOffsetsTopicResponse(name=name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def refused(
    request: ListOffsetsRequest, version: int, error: errors.KafkaError
) -> ListOffsetsResponse:
    """Return the error in every partition."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_refusal(asked, error.code) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _is_too_new(timestamp: int, version: int) -> bool:
    """Return whether only later versions know the special timestamp."""
    return timestamp < 0 and version < _FIRST_VERSION.get(timestamp, 1 << 15)


def _find(
    broker: Broker,
    request: ListOffsetsRequest,
    version: int,
    topic: str,
    asked: ListOffsetsPartition,
) -> ListOffsetsPartitionResponse:
    if version >= _FIRST_WITH_ONE_OFFSET and _is_too_new(asked.timestamp, version):
        raise errors.UnsupportedVersion()
    partition = broker.replica_manager.partition(topic, asked.partition_index)
    is_debugging = request.replica_id == _DEBUGGING_REPLICA
    if version < _FIRST_WITH_ONE_OFFSET:
        partition.check_leader()
        return ListOffsetsPartitionResponse(
            partition_index=asked.partition_index,
            old_style_offsets=_segment_offsets(broker, partition, asked, request.replica_id),
        )
    if not is_debugging:
        partition.check_leader(asked.current_leader_epoch)
    is_consumer = request.replica_id == _CONSUMER
    isolation = request.isolation_level if is_consumer else Isolation.LOG_END
    end_offset = partition.end_offset(isolation)
    timestamp, offset, epoch = _lookup(partition, asked.timestamp, end_offset)
    if is_consumer and _awaits_commit(partition) and _may_be_behind(asked.timestamp, offset):
        if version < _FIRST_WITH_NOT_AVAILABLE:
            raise errors.LeaderNotAvailable()
        raise errors.OffsetNotAvailable()
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch if version >= 4 else NO_EPOCH,
    )


def _lookup(partition: Partition, timestamp: int, end_offset: int) -> tuple[int, int, int]:
    """Return (timestamp, offset, leader epoch); all -1 if there is no such offset."""
    if timestamp == LATEST:
        return -1, end_offset, partition.leader_epoch
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return -1, -1, -1
    found = partition.log.reader.fetch_offset(timestamp, end_offset=end_offset)
    return (-1, -1, -1) if found is None else found


def _awaits_commit(partition: Partition) -> bool:
    """Return whether the high watermark has not yet reached the start of the leader's term."""
    others = partition.remote_replicas
    return others is not None and partition.log.offsets.high_watermark < others.epoch_start_offset


def _may_be_behind(timestamp: int, offset: int) -> bool:
    """Return whether the answer could be behind an answer of the previous leader.

    A new leader does not know yet that the records before its term are committed.
    """
    return timestamp == LATEST or (offset == -1 and (timestamp >= 0 or timestamp == MAX_TIMESTAMP))


def _segment_offsets(
    broker: Broker, partition: Partition, asked: ListOffsetsPartition, replica_id: int
) -> list[int]:
    """Return the answer of v0: the base offsets of segments and the log's end, in falling order.

    For consumers the high watermark replaces all offsets above it.
    """
    log = partition.log
    now_ms = broker.runtime.clock.wall_ms()
    known = [
        (max(segment.base_offset, log.offsets.log_start_offset), segment.modified_ms)
        for segment in log.segments
    ]
    if log.segments[-1].size:
        known.append((log.log_end_offset, now_ms))
    if asked.timestamp == EARLIEST:
        known = known[:1]
    elif asked.timestamp != LATEST:
        while known and known[-1][1] > asked.timestamp:
            known.pop()
    offsets = sorted([offset for offset, _ in known], reverse=True)[: max(asked.max_num_offsets, 0)]
    if replica_id != -1 or not offsets or offsets[0] <= log.offsets.high_watermark:
        return offsets
    return [log.offsets.high_watermark, *[o for o in offsets if o <= log.offsets.high_watermark]]


def _refusal(asked: ListOffsetsPartition, code: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)


def _repeated(request: ListOffsetsRequest) -> set[tuple[str, int]]:
    return repeated(
        (topic.name, asked.partition_index)
        for topic in request.topics
        for asked in topic.partitions
    )
