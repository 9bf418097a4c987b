"""InitProducerId (api key 22), versions 0-5: an id under which a producer is idempotent.

Without a transactional id: a fresh id at epoch 0, never given twice, also over restarts. v2
flexible. v3 producer id and epoch of a producer that goes on. With a transactional id a
coordinator would answer; there is none, and UNSUPPORTED_VERSION says so in a way that clients do
not retry.
"""

from __future__ import annotations

from embedlog import errors
from wire.schemas.init_producer_id import InitProducerIdResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from wire.schemas.init_producer_id import InitProducerIdRequest

_NO_ID = -1
_NO_EPOCH = -1


def handle(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    if (request.producer_id == _NO_ID) != (request.producer_epoch == _NO_EPOCH):
        raise errors.InvalidRequest("producer id and epoch must be given together")
    transactional_id = request.transactional_id
    if transactional_id is None:
        return InitProducerIdResponse(producer_id=broker.producer_ids.next(), producer_epoch=0)
    if not transactional_id:
        raise errors.InvalidRequest("an empty transactional id")
    timeout_ms_max = broker.config.transaction_max_timeout_ms
    if not 0 < request.transaction_timeout_ms <= timeout_ms_max:
        raise errors.InvalidTransactionTimeout()
    raise errors.UnsupportedVersion("transactions are not served")


def refused(
    request: InitProducerIdRequest, version: int, error: errors.KafkaError
) -> InitProducerIdResponse:
    """The error, with an id and an epoch that nobody has."""
    return InitProducerIdResponse(
        error_code=error.code, producer_id=_NO_ID, producer_epoch=_NO_EPOCH
    )
