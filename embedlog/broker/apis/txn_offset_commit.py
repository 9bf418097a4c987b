"""TxnOffsetCommit (api key 28), versions 0-6: store offsets of a group if the transaction commits.

v2 leader epochs. v3 flexible; member and generation (KIP-447), without which the membership is not
checked. v4 TRANSACTION_ABORTABLE. v5 the broker adds the offsets to the transaction (KIP-890). v6
topic ids. The checks include the checks of an OffsetCommit, in this order:

    no group id                               INVALID_GROUP_ID
    no existing topic                         UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID
    not part of the producer's transaction    see `broker.transaction_verification`
    the group, the member                     see `coordinator.group.offsets.commit`
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.broker import Broker
from embedlog.broker.context import RequestContext
from embedlog.broker.transaction_verification import TransactionVerification, of_offsets
from embedlog.coordinator.answers import answered, then
from embedlog.coordinator.group.offsets.commit import OffsetCommit
from embedlog.coordinator.result import Producer
from embedlog.runtime.pending import Pending
from embedlog.topic_names import OFFSETS_TOPIC
from wire.error_codes import ErrorCode
from wire.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from wire.schemas.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_FIRST_WITH_LOADING = 2
_FIRST_WITH_IDS = 6
_COMMIT_BY_NAMES = 8
_COMMIT_BY_IDS = 10
"""The request is handled like an OffsetCommit of version 8 (topic names) or 10 (topic ids)."""


def handle(
    broker: Broker, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | Pending[TxnOffsetCommitResponse]:
    if not request.group_id:
        raise errors.InvalidGroupId()
    version = context.api_version
    commit = OffsetCommit(
        _as_offset_commit(request),
        _COMMIT_BY_IDS if version >= _FIRST_WITH_IDS else _COMMIT_BY_NAMES,
        broker.image,
    )
    if not commit.wanted:
        return _response(commit.response())
    index = broker.group_coordinator.partition_for(request.group_id)

    def append(verification: TransactionVerification) -> Pending[OffsetCommitResponse]:
        guard = verification.guard((OFFSETS_TOPIC, index))
        commit.producer = Producer(request.producer_id, request.producer_epoch, guard)
        return broker.group_coordinator.write(
            request.group_id, lambda shard: shard.commit_offsets(commit)
        )

    verification = of_offsets(broker, request, version, index)
    written: Pending[OffsetCommitResponse] = then(verification, append)
    return answered(
        then(written, _response), lambda error: _response(commit.refused(_told(error, version)))
    )


def refused(
    request: TxnOffsetCommitRequest, version: int, error: errors.KafkaError
) -> TxnOffsetCommitResponse:
    """Return the error in every partition."""
    code = _told(error, version).code
    return _with_codes(request.topics, lambda _asked: code)


def _told(error: errors.KafkaError, version: int) -> errors.KafkaError:
    """Return the error to send: transactional clients know fewer codes than members of groups."""
    if error.code == ErrorCode.STALE_MEMBER_EPOCH:
        return errors.IllegalGeneration()
    if error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < _FIRST_WITH_LOADING:
        return errors.CoordinatorNotAvailable()
    return error


def _as_offset_commit(request: TxnOffsetCommitRequest) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=asked.partition_index,
                        committed_offset=asked.committed_offset,
                        committed_leader_epoch=asked.committed_leader_epoch,
                        committed_metadata=asked.committed_metadata,
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _response(answer: OffsetCommitResponse) -> TxnOffsetCommitResponse:
    return _with_codes(answer.topics, lambda found: found.error_code)


def _with_codes(topics: Iterable[Any], code_of: Callable[[Any], int]) -> TxnOffsetCommitResponse:
    """Answer every partition of the topics of a request or response with its error code."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=code_of(each)
                    )
                    for each in topic.partitions
                ],
            )
            for topic in topics
        ]
    )
