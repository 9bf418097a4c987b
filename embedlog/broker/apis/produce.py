"""Produce (api key 0), versions 0-13: append record sets to partitions.

v0-v2 accept message sets, which are converted to batches. v3 accepts one batch of magic 2 for each
partition, and may answer KAFKA_STORAGE_ERROR. v7 allows zstd. v8 names the refused records. v10
names the leader after an error (KIP-951). v11 TRANSACTION_ABORTABLE. v12 the broker adds partitions
to the transaction (KIP-890). v13 topic ids. A request with acks=0 has no answer; an error closes
the connection instead.

Checks come in this order; a failure of the first two refuses the whole request:
    impossible length or magic                        CORRUPT_MESSAGE
    transactional batch without a transactional id    TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    unknown topic, id or partition                    UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID
    no records; zstd before v7                        INVALID_RECORD, UNSUPPORTED_COMPRESSION_TYPE
    acks not -1, 0 or 1                               INVALID_REQUIRED_ACKS
    internal topic, unless from the admin client      INVALID_TOPIC_EXCEPTION
    not part of the producer's transaction            see `broker.transaction_verification`
    leader, in-sync replicas, the records             see `Partition.append`
"""

from __future__ import annotations

from struct import Struct

from embedlog import errors
from embedlog.broker import topics
from embedlog.common import grouped
from embedlog.coordinator.answers import answered, then
from embedlog.replication.delayed_produce import AppendedPartition
from embedlog.replication.replica_manager import CURRENT_MAGIC, check_one_batch
from embedlog.topic_names import INTERNAL_TOPICS
from wire.error_codes import ErrorCode
from wire.schema import Payload, bare
from wire.schemas.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.broker.transaction_verification import TransactionVerification
    from embedlog.replication.partition import Partition
    from embedlog.replication.replica_manager import LogAppendInfo
    from embedlog.runtime.pending import Pending
    from wire.records.encode.built import BuiltBatch
    from wire.schemas.produce import PartitionProduceData, ProduceRequest

ANY_MAGIC = (0, 2)
_FIRST_WITH_BATCHES_ONLY = 3
_FIRST_WITH_STORAGE_ERROR = 3
_FIRST_WITH_ZSTD = 7
_FIRST_WITH_LEADER = 10
_FIRST_WITH_IDS = 13

_ADMIN_CLIENT_ID = "__admin_client"

_NO_LEADER = PartitionProduceResponse().current_leader
"""The field `current_leader` of all answers that name no leader."""

_HEAD = Struct(">8xi4xb5xB").unpack_from
"""Reads the length and magic of the first entry, and the low byte of a batch's attributes."""
_HEAD_SIZE = 23
_LENGTH_END = 12
_LENGTH_MIN = 14
_MAGIC_POSITION = 16

_CODEC_MASK = 0x07
_ZSTD = 4
_TRANSACTIONAL_BIT = 0x10


class _Produce:
    """The state of one request while its partitions are appended to."""

    __slots__ = (
        "acks",
        "appended",
        "broker",
        "context",
        "failed",
        "request",
        "verification",
        "version",
    )

    def __init__(self, broker: Broker, context: RequestContext, request: ProduceRequest) -> None:
        self.broker = broker
        self.context = context
        self.request = request
        self.version = context.api_version
        self.acks = request.acks
        self.appended: list[AppendedPartition] = []
        self.failed = False
        self.verification: TransactionVerification | None = None
        """The verification of transactional batches; None if there are none."""


def handle(
    broker: Broker, context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Pending[ProduceResponse] | None:
    produce = _Produce(broker, context, request)
    if _has_transactional_records(request):
        if request.transactional_id is None:
            raise errors.TransactionalIdAuthorizationFailed()
        return _handle_transactional(produce)
    return _handle(produce)


def _handle_transactional(
    produce: _Produce,
) -> ProduceResponse | Pending[ProduceResponse] | None:
    from embedlog.broker.transaction_verification import of_produce

    broker, request, version = produce.broker, produce.request, produce.version

    def append(verification: TransactionVerification) -> Any:
        produce.verification = verification
        return _handle(produce)

    found = of_produce(
        broker,
        request,
        version,
        name_of=broker.topic_name,
        is_transactional=_is_transactional,
    )
    if found.done():
        produce.verification = found.result()
        return _handle(produce)
    # From here on acks=0 needs no special case: nobody waits for the answer.
    return answered(then(found, append), lambda error: refused(request, version, error))


def _handle(produce: _Produce) -> ProduceResponse | Pending[ProduceResponse] | None:
    broker, request = produce.broker, produce.request
    topic_data = request.topic_data
    if len(topic_data) > 1:
        topic_data = _each_topic_once(topic_data)
    answers = [_append_to_topic(produce, topic) for topic in topic_data]
    if produce.acks == 0:
        if produce.failed and produce.context.connection is not None:
            produce.context.connection.close()
        return None
    # Set field by field, here and below: a constructor with keywords takes twice as long.
    response = bare(ProduceResponse)
    response.responses = [answer for answer in answers if answer.partition_responses]
    response.throttle_time_ms = 0
    response.node_endpoints = []
    if produce.failed and produce.version >= _FIRST_WITH_LEADER:
        _tell_leaders(produce, response)
    if not produce.appended:
        return response
    return broker.replica_manager.await_commit(
        request.timeout_ms,
        produce.appended,
        response,
        storage_error=_storage_error(produce.version),
        on_moved=(
            (lambda moved: _tell_leaders(produce, moved))
            if produce.version >= _FIRST_WITH_LEADER
            else None
        ),
    )


def append_one(  # noqa: PLR0917  one call per record: keywords would cost as much as its checks
    broker: Broker,
    topic: str,
    topic_id: bytes,
    index: int,
    records: bytes | BuiltBatch,
    acks: int,
    timeout_ms: int,
    is_awaited: bool,
) -> LogAppendInfo | Pending[LogAppendInfo] | None:
    """Append one batch of a producer in this process, without a Produce request.

    With `is_awaited` the calling thread waits for the answer anyway, so this call may wait for the
    disk. The pending can fail with the same errors that this function raises. If an interceptor is
    set, nothing is appended and the result is None: the caller must send a Produce request.

    Raises:
        KafkaError: the error that the response would have.
    """
    if broker.interceptor is not None:
        return None
    manager = broker.replica_manager
    partition = manager.partitions.get((topic, index)) or manager.load(topic, index)
    if partition is None or partition.topic_id != topic_id:
        raise (errors.UnknownTopicOrPartition if partition is None else errors.UnknownTopicId)()
    if topic in INTERNAL_TOPICS:
        raise errors.InvalidTopic()
    info = manager.append(partition, records, acks=acks, is_awaited=is_awaited)
    if broker.log_manager.tasks.is_resting:
        broker.log_manager.tasks.stir()
    if (
        partition.log.offsets.high_watermark > info[1]
        or acks == 0
        or (acks == 1 and not partition.syncs)
    ):
        return info
    return manager.await_append(timeout_ms, partition, info, is_local=acks == 1)


def refused(
    request: ProduceRequest, version: int, error: errors.KafkaError
) -> ProduceResponse | None:
    """Return the error in every partition, or None for acks=0."""
    if request.acks == 0:
        return None
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=data.index,
                        error_code=error.code,
                        base_offset=-1,
                        error_message=error.message,
                    )
                    for data in _last_of_each(topic.partition_data)
                ],
            )
            for topic in _each_topic_once(request.topic_data)
        ]
    )


def _append_to_topic(produce: _Produce, topic: TopicProduceData) -> TopicProduceResponse:
    broker = produce.broker
    name = topic.name
    unknown: type[errors.KafkaError] = errors.UnknownTopicOrPartition
    if produce.version >= _FIRST_WITH_IDS:
        name = broker.topic_name(topic.topic_id)
        unknown = errors.UnknownTopicOrPartition if name else errors.UnknownTopicId
    manager = broker.replica_manager
    answers = []
    for data in _last_of_each(topic.partition_data):
        index = data.index
        try:
            partition = manager.partitions.get((name, index)) or manager.load(name, index)
            if partition is None:
                raise unknown()
            answers.append(_append(produce, partition, data))
        except errors.KafkaError as error:
            if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                error = _found_before(produce, name, data) or error
            produce.failed = True
            if error.code == ErrorCode.MESSAGE_TOO_LARGE and error.told_with_message:
                manager.partitions[name, index].log.health.limit_exceeded(error)
            answers.append(_refusal(index, error, produce.version))
    response = bare(TopicProduceResponse)
    response.name = topic.name
    response.topic_id = topic.topic_id
    response.partition_responses = answers
    return response


def _each_topic_once(topic_data: list[TopicProduceData]) -> list[TopicProduceData]:
    """Return the topics. If one is repeated, it gets the partitions of all its entries."""
    by_topic = grouped(topic_data, lambda topic: (topic.name, topic.topic_id))
    if len(by_topic) == len(topic_data):
        return topic_data
    return [
        TopicProduceData(
            name=name,
            topic_id=topic_id,
            partition_data=[data for entry in entries for data in entry.partition_data],
        )
        for (name, topic_id), entries in by_topic.items()
    ]


def _last_of_each(partition_data: list[PartitionProduceData]) -> Iterable[PartitionProduceData]:
    """Return the partitions. If one is repeated, only its last records count, as in Kafka."""
    if len(partition_data) == 1:
        return partition_data
    return {data.index: data for data in partition_data}.values()


def _append(
    produce: _Produce, partition: Partition, data: PartitionProduceData
) -> PartitionProduceResponse:
    records = _acceptable(produce, partition.topic, data)
    acks = produce.acks
    verification = produce.verification
    info = produce.broker.replica_manager.append(
        partition,
        records,
        acks=acks,
        magic_limits=CURRENT_MAGIC if produce.version >= _FIRST_WITH_BATCHES_ONLY else ANY_MAGIC,
        verification=(
            None if verification is None else verification.guard((partition.topic, data.index))
        ),
    )
    answer = _written(data.index, info)
    if acks != 0:
        required_offset = info.last_offset + 1
        if partition.log.offsets.high_watermark < required_offset and (
            acks == -1 or partition.syncs
        ):
            produce.appended.append(
                AppendedPartition(partition, required_offset, answer, is_local=acks == 1)
            )
    return answer


def _acceptable(produce: _Produce, topic: str, data: PartitionProduceData) -> Payload:
    """Return the records for a partition, after the checks that need neither leader nor log.

    Raises:
        InvalidRecord, UnsupportedCompressionType, InvalidRequiredAcks, InvalidTopic: see the table
            of the module.
    """
    records = data.records
    if records is None:
        raise errors.InvalidRecord()
    if produce.version < _FIRST_WITH_ZSTD and _attributes(records) & _CODEC_MASK == _ZSTD:
        raise errors.UnsupportedCompressionType()
    if not -1 <= produce.acks <= 1:
        raise errors.InvalidRequiredAcks()
    if topic in INTERNAL_TOPICS and produce.context.client_id != _ADMIN_CLIENT_ID:
        raise errors.InvalidTopic()
    return records


def _found_before(
    produce: _Produce, topic: str, data: PartitionProduceData
) -> errors.KafkaError | None:
    """Return an error in the request: as in Kafka, it goes before NOT_LEADER_OR_FOLLOWER."""
    try:
        records = _acceptable(produce, topic, data)
        if produce.version >= _FIRST_WITH_BATCHES_ONLY:
            check_one_batch(records)
    except errors.KafkaError as error:
        return error
    return None


def _written(
    index: int, info: tuple[int, int, int, int, bool, int, int]
) -> PartitionProduceResponse:
    first_offset, _, append_time, start_offset, is_duplicate, latest, _ = info
    answer = bare(PartitionProduceResponse)
    answer.index = index
    answer.error_code = 0
    answer.base_offset = first_offset
    # Kafka returns the timestamp of a duplicate even on topics that do not set timestamps.
    answer.log_append_time_ms = latest if is_duplicate else append_time
    answer.log_start_offset = start_offset
    answer.record_errors = []
    answer.error_message = None
    answer.current_leader = _NO_LEADER
    return answer


def _has_transactional_records(request: ProduceRequest) -> bool:
    """Return whether any partition's first batch is transactional. It checks every partition.

    Raises:
        CorruptMessage: the length or the magic of a batch is impossible.
    """
    found = False
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None and _is_transactional(data.records):
                found = True
    return found


def _is_transactional(records: Payload) -> bool:
    return _attributes(records) & _TRANSACTIONAL_BIT != 0


def _attributes(records: Payload) -> int:
    """Return the low byte of the first batch's attributes; 0 for records without such a batch.

    Raises:
        CorruptMessage: the length or the magic is impossible.
    """
    if len(records) >= _HEAD_SIZE:
        length, magic, attributes = _HEAD(records)
        if magic == 2 and length >= _LENGTH_MIN:
            return int(attributes)
    if len(records) >= _LENGTH_END:
        length = int.from_bytes(records[8:_LENGTH_END], "big", signed=True)
        if length < _LENGTH_MIN:
            raise errors.CorruptMessage(
                f"Record size {length} is less than the minimum record overhead ({_LENGTH_MIN})"
            )
    if len(records) > _MAGIC_POSITION and records[_MAGIC_POSITION] > 2:
        magic = (records[_MAGIC_POSITION] ^ 0x80) - 0x80
        raise errors.CorruptMessage(f"Invalid magic found in record: {magic}")
    return 0


def _storage_error(version: int) -> int:
    """Return the code of a storage error; NOT_LEADER_OR_FOLLOWER for clients before v3."""
    if version < _FIRST_WITH_STORAGE_ERROR:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.KAFKA_STORAGE_ERROR


def _refusal(index: int, error: errors.KafkaError, version: int) -> PartitionProduceResponse:
    code = error.code
    answer = PartitionProduceResponse(
        index=index,
        error_code=_storage_error(version) if code == ErrorCode.KAFKA_STORAGE_ERROR else code,
        base_offset=-1,
        log_start_offset=error.log_start_offset,
    )
    if code == ErrorCode.KAFKA_STORAGE_ERROR or error.told_with_message:
        answer.error_message = error.message  # such as "No space left on device", and the path
    if error.record_errors:
        # As in Kafka, an error that names the records is sent with its own message.
        answer.error_message = error.message
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=record, batch_index_error_message=message)
            for record, message in error.record_errors
        ]
    return answer


def _tell_leaders(produce: _Produce, response: ProduceResponse) -> None:
    """Add the leader of each partition with NOT_LEADER_OR_FOLLOWER.

    This saves the client a Metadata request (KIP-951).
    """
    broker = produce.broker
    leaders: set[int] = set()
    for topic in response.responses:
        name = topic.name or broker.topic_name(topic.topic_id)
        for answer in topic.partition_responses:
            if answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
                continue
            leader, epoch = topics.leader_of(broker, name, answer.index)
            answer.current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
            leaders.add(leader)
    response.node_endpoints = [
        NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
        for leader in sorted(leaders)
        if (node := topics.node(broker, produce.context, leader)) is not None
    ]
