"""DescribeProducers (api key 61), version 0: the state of each producer of a partition."""

from __future__ import annotations

from embedlog import errors
from embedlog.controller.topic_names import validate_name
from wire.schemas.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from wire.schemas.describe_producers import DescribeProducersRequest


def handle(
    broker: Broker, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    topics = []
    for topic in request.topics:
        indexes = topic.partition_indexes
        try:
            _check_topic(broker, topic.name)
            partitions = [_describe(broker, topic.name, index) for index in indexes]
        except errors.KafkaError as error:
            partitions = [_refusal(index, error) for index in indexes]
        topics.append(TopicResponse(name=topic.name, partitions=partitions))
    return DescribeProducersResponse(topics=topics)


def refused(
    request: DescribeProducersRequest, version: int, error: errors.KafkaError
) -> DescribeProducersResponse:
    """Return the error in every partition."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_refusal(index, error) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _check_topic(broker: Broker, topic: str) -> None:
    validate_name(topic)
    if topic not in broker.image.topics_by_name:
        raise errors.UnknownTopicOrPartition("This server does not host this topic-partition.")


def _describe(broker: Broker, topic: str, index: int) -> PartitionResponse:
    try:
        entries = broker.replica_manager.partition(topic, index).active_producers()
    except errors.KafkaError as error:
        return _refusal(index, error)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=entry.producer_id,
                producer_epoch=entry.producer_epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.current_txn_first_offset,
            )
            for entry in entries
        ],
    )


def _refusal(index: int, error: errors.KafkaError) -> PartitionResponse:
    return PartitionResponse(
        partition_index=index, error_code=error.code, error_message=error.message
    )
