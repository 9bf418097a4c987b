"""DescribeTopicPartitions (api key 75), version 0: the partitions of topics, in pages.

Topics are in the order of their names. A page has as many partitions as both the client and the
broker allow, but at least one; the cursor in the answer is the start of the next page. A request
without topics means all topics.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker import topics
from embedlog.broker.broker import Broker
from embedlog.broker.context import RequestContext
from embedlog.controller import topic_names
from embedlog.controller.metadata import MetadataImage, PartitionImage, TopicImage
from embedlog.errors import KafkaError
from embedlog.topic_names import INTERNAL_TOPICS
from wire.error_codes import ErrorCode
from wire.schemas.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def handle(
    broker: Broker, _context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    image = broker.image
    names = _names(request, list(image.topics_by_name))
    room = min(request.response_partition_limit, broker.config.max_request_partition_size_limit)
    room = max(room, 1)
    found: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if room == 0:
            return _page(found, name, 0)
        topic = image.topics_by_name.get(name)
        if topic is None:
            found.append(_missing(name))
            continue
        cursor = request.cursor
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        end = min(first + room, len(topic.partitions))
        found.append(_topic(image, topic, range(first, end)))
        room -= max(end - first, 0)
        if end < len(topic.partitions):
            return _page(found, name, end)
    return DescribeTopicPartitionsResponse(topics=found)


def refused(
    request: DescribeTopicPartitionsRequest, _version: int, error: KafkaError
) -> DescribeTopicPartitionsResponse:
    """Return the error in every topic."""
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=error.code, name=topic.name)
            for topic in request.topics
        ]
    )


def _names(request: DescribeTopicPartitionsRequest, existing: list[str]) -> list[str]:
    """Return the topics of this page and the later ones, in order.

    Raises:
        InvalidRequest: the cursor names no topic of the request, or a negative partition.
        UnknownServerError: a name is empty; Kafka answers the same.
    """
    asked, cursor = [topic.name for topic in request.topics], request.cursor
    if cursor is not None and (
        cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)
    ):
        raise errors.InvalidRequest()
    if "" in asked:
        raise errors.UnknownServerError()
    names = sorted(set(asked or existing))
    if cursor is None:
        return names
    return [name for name in names if name >= cursor.topic_name]


def _page(
    found: list[DescribeTopicPartitionsResponseTopic], topic: str, partition: int
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=found, next_cursor=Cursor(topic_name=topic, partition_index=partition)
    )


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    is_valid = topic_names.is_valid_name(name)
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_valid
        else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=topics.TOPIC_OPERATIONS,
    )


def _topic(
    image: MetadataImage, topic: TopicImage, numbers: range
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(image, topic.partitions[number]) for number in numbers],
        topic_authorized_operations=topics.TOPIC_OPERATIONS,
    )


def _partition(
    image: MetadataImage, partition: PartitionImage
) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        partition_index=partition.partition,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=list(image.offline_replicas(partition)),
    )
