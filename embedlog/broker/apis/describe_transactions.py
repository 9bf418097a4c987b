"""DescribeTransactions (api key 65), version 0: the state of transactions, by transactional id."""

from __future__ import annotations

from embedlog.common import few_of_each
from embedlog.coordinator.answers import answered, combined
from wire.error_codes import ErrorCode
from wire.schemas.describe_transactions import DescribeTransactionsResponse, TransactionState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.describe_transactions import DescribeTransactionsRequest


def handle(
    broker: Broker, context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse | Pending[DescribeTransactionsResponse]:
    asked = few_of_each(request.transactional_ids)
    return combined(
        [_describe(broker, transactional_id) for transactional_id in asked],
        lambda found: DescribeTransactionsResponse(transaction_states=found),
    )


def _describe(
    broker: Broker, transactional_id: str
) -> TransactionState | Pending[TransactionState]:
    if not transactional_id:
        return _refusal(transactional_id, ErrorCode.INVALID_REQUEST)
    from embedlog.coordinator.transaction.views import described

    pending = broker.transaction_coordinator.read(
        transactional_id, lambda shard: described(shard, transactional_id)
    )
    return answered(pending, lambda error: _refusal(transactional_id, error.code))


def refused(
    request: DescribeTransactionsRequest, version: int, error: KafkaError
) -> DescribeTransactionsResponse:
    """Return the error for every id."""
    return DescribeTransactionsResponse(
        transaction_states=[_refusal(each, error.code) for each in request.transactional_ids]
    )


def _refusal(transactional_id: str, code: int) -> TransactionState:
    return TransactionState(transactional_id=transactional_id, error_code=code)
