"""AddOffsetsToTxn (api key 25), versions 0-4: make the offsets of a group part of a transaction.

The partition of `__consumer_offsets` that holds the group becomes part of the transaction. v2
PRODUCER_FENCED; before v2 it is INVALID_PRODUCER_EPOCH. v3 flexible.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle
from embedlog.coordinator.answers import then
from embedlog.topic_names import OFFSETS_TOPIC
from wire.error_codes import ErrorCode
from wire.schemas.add_offsets_to_txn import AddOffsetsToTxnResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending
    from wire.schemas.add_offsets_to_txn import AddOffsetsToTxnRequest

_FIRST_WITH_FENCED = 2


def handle(
    broker: Broker, context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Pending[AddOffsetsToTxnResponse]:
    transactional_id = request.transactional_id
    if not transactional_id:
        raise errors.InvalidRequest("an empty transactional id")
    from embedlog.coordinator.transaction.registration import add_partitions

    place = OFFSETS_TOPIC, broker.group_coordinator.partition_for(request.group_id)
    pending = broker.transaction_coordinator.write(
        transactional_id,
        lambda shard: add_partitions(
            shard,
            transactional_id,
            request.producer_id,
            request.producer_epoch,
            [place],
            client_version=0,
        ),
    )
    return settle(context, request, then(pending, lambda _nothing: AddOffsetsToTxnResponse()))


def refused(
    request: AddOffsetsToTxnRequest, version: int, error: errors.KafkaError
) -> AddOffsetsToTxnResponse:
    """Return the error; before v2 INVALID_PRODUCER_EPOCH in place of PRODUCER_FENCED."""
    code = error.code
    if code == ErrorCode.PRODUCER_FENCED and version < _FIRST_WITH_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(error_code=code)
