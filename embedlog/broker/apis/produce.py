"""Produce (api key 0), versions 0-13: append record sets to partitions.

v0-v2 take message sets and convert them to batches. v3 takes one batch of magic 2 per partition.
v7 allows zstd. v8 names the records that were refused. v10 tells the leader (KIP-951). v13 topic
ids. acks=0 has no answer; an error closes the connection instead. Transactional batches need a
coordinator, so that every transactional id is unknown here.

Errors are found in this order, each partition for itself but for the first:
    transactional batch without a transactional id    TRANSACTIONAL_ID_AUTHORIZATION_FAILED, all
    unknown topic, id or partition                    UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID
    no records; zstd before v7                        INVALID_RECORD, UNSUPPORTED_COMPRESSION_TYPE
    acks not -1, 0 or 1                               INVALID_REQUIRED_ACKS
    internal topic, unless from the admin client      INVALID_TOPIC_EXCEPTION
    unknown transactional id                          INVALID_PRODUCER_ID_MAPPING
    leader, in-sync replicas, the records             see `Partition.append`
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.topics import this_node
from embedlog.controller.metadata import INTERNAL_TOPICS
from embedlog.replication.delayed_produce import AppendedPartition
from embedlog.replication.replica_manager import CURRENT_MAGIC
from wire.error_codes import ErrorCode
from wire.schemas.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.pending import Pending
    from embedlog.replication.partition import Partition
    from wire.schema import Payload
    from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

VERSIONS = (0, 13)

ANY_MAGIC = (0, 2)
_FIRST_WITH_BATCHES_ONLY = 3
_FIRST_WITH_ZSTD = 7
_FIRST_WITH_LEADER = 10
_FIRST_WITH_IDS = 13

_ADMIN_CLIENT_ID = "__admin_client"

# Attributes of a batch of magic 2: the low byte is at 22, behind the magic at 16.
_MAGIC_POSITION = 16
_ATTRIBUTES_POSITION = 22
_CODEC_MASK = 0x07
_ZSTD = 4
_TRANSACTIONAL_BIT = 0x10


class _Produce:
    """One request on its way through its partitions."""

    __slots__ = ("acks", "appended", "broker", "context", "failed", "request", "version")

    def __init__(self, broker: Broker, context: RequestContext, request: ProduceRequest) -> None:
        self.broker = broker
        self.context = context
        self.request = request
        self.version = context.api_version
        self.acks = request.acks
        self.appended: list[AppendedPartition] = []
        """What is in a log and not committed yet."""
        self.failed = False


def handle(
    broker: Broker, context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Pending[ProduceResponse] | None:
    if request.transactional_id is None and _has_transactional_records(request):
        raise errors.TransactionalIdAuthorizationFailed()
    produce = _Produce(broker, context, request)
    topics = [_append_to_topic(produce, topic) for topic in request.topic_data]
    if produce.acks == 0:
        if produce.failed and context.connection is not None:
            context.connection.close()
        return None
    response = ProduceResponse(responses=topics)
    if produce.failed and produce.version >= _FIRST_WITH_LEADER:
        _tell_leaders(produce, response)
    if not produce.appended:
        return response
    return broker.replica_manager.await_commit(request.timeout_ms, produce.appended, response)


def refused(
    request: ProduceRequest, version: int, error: errors.KafkaError
) -> ProduceResponse | None:
    """The same error for every partition of the request."""
    if request.acks == 0:
        return None
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=data.index, error_code=error.code, base_offset=-1
                    )
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def _append_to_topic(produce: _Produce, topic: TopicProduceData) -> TopicProduceResponse:
    name = topic.name
    unknown: type[errors.KafkaError] = errors.UnknownTopicOrPartition
    if produce.version >= _FIRST_WITH_IDS:
        name = produce.broker.topic_name(topic.topic_id)
        unknown = errors.UnknownTopicOrPartition if name else errors.UnknownTopicId
    partitions = produce.broker.replica_manager.partitions
    load = produce.broker.replica_manager.load
    answers: dict[int, PartitionProduceResponse] = {}
    for data in topic.partition_data:
        index = data.index
        try:
            partition = partitions.get((name, index)) or load(name, index)
            if partition is None:
                raise unknown()
            # A partition that is named twice is appended to twice, and answered once.
            answers[index] = _append(produce, partition, data)
        except errors.KafkaError as error:
            produce.failed = True
            answers[index] = _refusal(index, error)
    return TopicProduceResponse(
        name=topic.name, topic_id=topic.topic_id, partition_responses=list(answers.values())
    )


def _append(
    produce: _Produce, partition: Partition, data: PartitionProduceData
) -> PartitionProduceResponse:
    records = _check_records(data.records, produce.version)
    acks = produce.acks
    if not -1 <= acks <= 1:
        raise errors.InvalidRequiredAcks()
    if partition.topic in INTERNAL_TOPICS and produce.context.client_id != _ADMIN_CLIENT_ID:
        raise errors.InvalidTopic()
    if produce.request.transactional_id is not None and _is_transactional(records):
        raise errors.InvalidProducerIdMapping()
    info = produce.broker.replica_manager.append(
        partition,
        records,
        acks=acks,
        magic_limits=ANY_MAGIC if produce.version < _FIRST_WITH_BATCHES_ONLY else CURRENT_MAGIC,
    )
    answer = PartitionProduceResponse(
        index=data.index,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time_ms,
        log_start_offset=info.log_start_offset,
    )
    if acks != 0:
        required_offset = info.last_offset + 1
        if partition.log.high_watermark < required_offset and (acks == -1 or partition.syncs):
            produce.appended.append(AppendedPartition(partition, required_offset, answer))
    return answer


def _check_records(records: Payload | None, version: int) -> Payload:
    """What can be said of the record set without looking into the log."""
    if records is None:
        raise errors.InvalidRecord()
    if version < _FIRST_WITH_ZSTD and len(records) > _ATTRIBUTES_POSITION:
        is_batch = records[_MAGIC_POSITION] == 2
        if is_batch and records[_ATTRIBUTES_POSITION] & _CODEC_MASK == _ZSTD:
            raise errors.UnsupportedCompressionType()
    return records


def _has_transactional_records(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for data in topic.partition_data:
            if _is_transactional(data.records):
                return True
    return False


def _is_transactional(records: Payload | None) -> bool:
    return (
        records is not None
        and len(records) > _ATTRIBUTES_POSITION
        and records[_ATTRIBUTES_POSITION] & _TRANSACTIONAL_BIT != 0
        and records[_MAGIC_POSITION] == 2
    )


def _refusal(index: int, error: errors.KafkaError) -> PartitionProduceResponse:
    answer = PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_start_offset=error.log_start_offset,
    )
    if error.record_errors:
        # Kafka gives a message of its own only where it also names the records.
        answer.error_message = error.message
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=record, batch_index_error_message=message)
            for record, message in error.record_errors
        ]
    return answer


def _tell_leaders(produce: _Produce, response: ProduceResponse) -> None:
    """Save the client a metadata request when it came to the wrong broker (KIP-951)."""
    broker = produce.broker
    for topic in response.responses:
        name = topic.name or broker.topic_name(topic.topic_id)
        for answer in topic.partition_responses:
            if answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
                continue
            partition = broker.replica_manager.partition(name, answer.index)
            answer.current_leader = LeaderIdAndEpoch(
                leader_id=partition.leader, leader_epoch=partition.leader_epoch
            )
            if partition.leader == broker.node_id and not response.node_endpoints:
                node = this_node(broker, produce.context)
                response.node_endpoints = [
                    NodeEndpoint(
                        node_id=node.node_id, host=node.host, port=node.port, rack=node.rack
                    )
                ]
