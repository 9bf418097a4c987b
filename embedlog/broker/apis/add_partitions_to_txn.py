"""AddPartitionsToTxn (api key 24), versions 0-5: make partitions part of a transaction.

v2 PRODUCER_FENCED; before v2 it is INVALID_PRODUCER_EPOCH. v3 flexible. Versions from v4 on are for
brokers: a request has several transactions. A transaction with `verify_only` adds no partition, and
a partition that is not in the transaction is TRANSACTION_ABORTABLE.

All partitions of a transaction are added or none: if one is refused with an error of this table,
the others are OPERATION_NOT_ATTEMPTED.
    internal topic       TOPIC_AUTHORIZATION_FAILED, only before v4
    unknown partition    UNKNOWN_TOPIC_OR_PARTITION
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from embedlog import errors
from embedlog.broker.broker import Broker
from embedlog.broker.context import RequestContext
from embedlog.coordinator.answers import answered, combined, then
from embedlog.runtime.pending import Pending
from embedlog.topic_names import INTERNAL_TOPICS
from wire.error_codes import ErrorCode
from wire.schemas.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

_FIRST_WITH_FENCED = 2
_FIRST_WITH_SEVERAL = 4

Place = tuple[str, int]


def handle(
    broker: Broker, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | Pending[AddPartitionsToTxnResponse]:
    if context.api_version >= _FIRST_WITH_SEVERAL:
        return combined(
            [_answer_one(broker, transaction) for transaction in request.transactions],
            lambda results: AddPartitionsToTxnResponse(results_by_transaction=results),
        )
    transactional_id = request.v3_and_below_transactional_id
    if not transactional_id:
        raise errors.InvalidRequest("an empty transactional id")
    topics = request.v3_and_below_topics
    problems = _problems(broker, topics)
    if problems:
        return _response_v3(topics, lambda p: problems.get(p, ErrorCode.OPERATION_NOT_ATTEMPTED))
    from embedlog.coordinator.transaction.registration import add_partitions

    pending = broker.transaction_coordinator.write(
        transactional_id,
        lambda shard: add_partitions(
            shard,
            transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            _places(topics),
            client_version=0,
        ),
    )

    def response(_nothing: None) -> AddPartitionsToTxnResponse:
        return _response_v3(topics, lambda _place: ErrorCode.NONE)

    return answered(
        then(pending, response), lambda error: refused(request, context.api_version, error)
    )


def refused(
    request: AddPartitionsToTxnRequest, version: int, error: errors.KafkaError
) -> AddPartitionsToTxnResponse:
    """Return the error in every partition; from v4 on at the top."""
    if version >= _FIRST_WITH_SEVERAL:
        return AddPartitionsToTxnResponse(error_code=error.code)
    code = error.code
    if code == ErrorCode.PRODUCER_FENCED and version < _FIRST_WITH_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return _response_v3(request.v3_and_below_topics, lambda _place: code)


def _answer_one(
    broker: Broker, transaction: AddPartitionsToTxnTransaction
) -> AddPartitionsToTxnResult | Pending[AddPartitionsToTxnResult]:
    topics = transaction.topics

    def result(codes: Callable[[Place], int]) -> AddPartitionsToTxnResult:
        return AddPartitionsToTxnResult(
            transactional_id=transaction.transactional_id, topic_results=_results(topics, codes)
        )

    if not transaction.transactional_id:
        return result(lambda _place: ErrorCode.INVALID_REQUEST)
    # No topic is refused as internal: brokers add partitions of `__consumer_offsets`.
    problems = _problems(broker, topics, internal=frozenset())
    if problems:
        return result(lambda place: problems.get(place, ErrorCode.OPERATION_NOT_ATTEMPTED))
    pending = broker.transaction_coordinator.register(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        _places(topics),
        is_verified_only=transaction.verify_only,
    )
    return answered(
        then(pending, lambda codes: result(codes.__getitem__)),
        lambda error: result(lambda _place: error.code),
    )


def _problems(
    broker: Broker,
    topics: Sequence[AddPartitionsToTxnTopic],
    *,
    internal: frozenset[str] = INTERNAL_TOPICS,
) -> dict[Place, int]:
    """Return the error of each partition that no transaction may write to."""
    known = broker.image.topics_by_name
    problems: dict[Place, int] = {}
    for topic in topics:
        if topic.name in internal:
            code, count = ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0
        else:
            image = known.get(topic.name)
            count = 0 if image is None else len(image.partitions)
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for index in topic.partitions:
            if not 0 <= index < count:
                problems[topic.name, index] = code
    return problems


def _places(topics: Sequence[AddPartitionsToTxnTopic]) -> list[Place]:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def _response_v3(
    topics: Sequence[AddPartitionsToTxnTopic], code_of: Callable[[Place], int]
) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(topics, code_of))


def _results(
    topics: Sequence[AddPartitionsToTxnTopic], code_of: Callable[[Place], int]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=code_of((topic.name, index))
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
