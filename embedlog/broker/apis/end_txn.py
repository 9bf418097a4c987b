"""EndTxn (api key 26), versions 0-5: commit or abort a transaction.

v2 PRODUCER_FENCED; before v2 it is INVALID_PRODUCER_EPOCH. v3 flexible. v5 the producer gets a new
epoch at the end of each transaction, in the answer (KIP-890). The answer comes when the coordinator
has stored its decision; partitions may get their markers later.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle
from embedlog.coordinator.answers import then
from wire.error_codes import ErrorCode
from wire.schemas.end_txn import EndTxnResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending
    from wire.schemas.end_txn import EndTxnRequest

_FIRST_WITH_FENCED = 2
_FIRST_WITH_EPOCH_BUMP = 5


def handle(
    broker: Broker, context: RequestContext, request: EndTxnRequest
) -> EndTxnResponse | Pending[EndTxnResponse]:
    transactional_id = request.transactional_id
    if not transactional_id:
        raise errors.InvalidRequest("an empty transactional id")
    from embedlog.coordinator.transaction.ending import end

    pending = broker.transaction_coordinator.write(
        transactional_id,
        lambda shard: end(
            shard,
            transactional_id,
            request.producer_id,
            request.producer_epoch,
            is_committed=request.committed,
            client_version=2 if context.api_version >= _FIRST_WITH_EPOCH_BUMP else 0,
            new_producer_id=broker.producer_ids.next,
        ),
    )
    return settle(context, request, then(pending, _response))


def _response(producer: tuple[int, int]) -> EndTxnResponse:
    return EndTxnResponse(producer_id=producer[0], producer_epoch=producer[1])


def refused(request: EndTxnRequest, version: int, error: errors.KafkaError) -> EndTxnResponse:
    """Return the error, without a producer id and epoch."""
    code = error.code
    if code == ErrorCode.PRODUCER_FENCED and version < _FIRST_WITH_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return EndTxnResponse(error_code=code)
