"""ListTransactions (api key 66), versions 0-2: the transactional ids that this broker coordinates.

v1 a filter for transactions older than a duration. v2 a filter for ids that match an RE2 pattern as
a whole (KIP-1152). Unknown states in the state filter are ignored; the answer lists them.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.answers import answered, combined
from embedlog.coordinator.transaction.states import NAMES
from wire.schemas.list_transactions import ListTransactionsResponse, TransactionState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending
    from wire.schemas.list_transactions import ListTransactionsRequest


def handle(
    broker: Broker, context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse | Pending[ListTransactionsResponse]:
    from embedlog.coordinator.transaction.views import listed

    wanted = request.state_filters
    names = {name for name in wanted if name in NAMES} if wanted else None
    producer_ids = set(request.producer_id_filters)
    matches = _compiled(request.transactional_id_pattern)
    found = broker.transaction_coordinator.read_all(
        lambda shard: listed(
            shard,
            names=names,
            producer_ids=producer_ids,
            longer_than_ms=request.duration_filter,
            matches=matches,
        )
    )

    def response(parts: list[list[TransactionState]]) -> ListTransactionsResponse:
        return ListTransactionsResponse(
            unknown_state_filters=[name for name in wanted if name not in NAMES],
            transaction_states=[each for part in parts for each in part],
        )

    # If the log of a shard cannot be read, leave its ids out, like the ids of other brokers.
    return combined([answered(part, lambda _error: []) for part in found], response)


def _compiled(pattern: str | None) -> Callable[[str], object] | None:
    if not pattern:
        return None
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        matches: Callable[[str], object] = re2.compile(pattern, options).fullmatch
    except re2.error as error:
        raise errors.InvalidRegularExpression(
            f"The transactional id pattern {pattern!r} is no RE2 pattern: {error}"
        ) from error
    return matches
