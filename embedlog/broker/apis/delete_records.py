"""DeleteRecords (api key 21), versions 0-2: delete the records below an offset.

Offset -1 means the high watermark. v2 flexible. The answer waits until no live replica has the
records any more, at most `timeout_ms`. It has the new first offset. The files of whole segments are
removed later, by the next pass of retention. If a request names a partition twice, its last offset
counts; a topic without partitions is left out of the answer.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.broker import Broker
from embedlog.broker.context import RequestContext
from embedlog.replication.delayed_delete_records import NO_WATERMARK, DeletedPartition
from embedlog.runtime.pending import Pending
from embedlog.topic_names import INTERNAL_TOPICS
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


def handle(
    broker: Broker, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | Pending[DeleteRecordsResponse]:
    deleted: list[DeletedPartition] = []
    by_topic: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            by_topic.setdefault(topic.name, {})[asked.partition_index] = asked
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=name,
                partitions=[_delete(broker, name, asked, deleted) for asked in last.values()],
            )
            for name, last in by_topic.items()
        ]
    )
    if not deleted:
        return response
    return broker.replica_manager.await_deletion(request.timeout_ms, deleted, response)


def refused(
    request: DeleteRecordsRequest, version: int, error: errors.KafkaError
) -> DeleteRecordsResponse:
    """Return the error in every partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_refusal(asked.partition_index, error) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _delete(
    broker: Broker, topic: str, asked: DeleteRecordsPartition, deleted: list[DeletedPartition]
) -> DeleteRecordsPartitionResult:
    """Delete on the leader. Add the partition to `deleted` if other replicas still have records."""
    index = asked.partition_index
    try:
        partition = broker.replica_manager.partition(topic, index)
        if topic in INTERNAL_TOPICS:
            raise errors.InvalidTopic(f"Cannot delete records of internal topic {topic}")
        offset = partition.delete_records(asked.offset)
        broker.replica_manager.records_deleted(partition)
    except errors.KafkaError as error:
        return _refusal(index, error)
    answer = DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=partition.low_watermark
    )
    if partition.low_watermark < offset:
        deleted.append(DeletedPartition(partition, offset, answer))
    return answer


def _refusal(index: int, error: errors.KafkaError) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=NO_WATERMARK, error_code=error.code
    )
