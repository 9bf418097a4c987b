"""InitProducerId (api key 22), versions 0-5: a producer id for an idempotent producer.

Without a transactional id, the producer gets a new producer id and epoch 0. No producer id is
assigned twice, even after restarts. With a transactional id, `coordinator.transaction.initialize`
decides. v2 flexible. v3 to continue, a producer names its producer id and epoch. v4
PRODUCER_FENCED; before v4 it is INVALID_PRODUCER_EPOCH.

v6 two-phase commit (KIP-939), served if unstable.api.versions.enable is true: transactions of the
id never time out, if transaction.two.phase.commit.enable allows it. As in Kafka 4.4, a new producer
cannot take over a prepared transaction.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle
from embedlog.coordinator.answers import then
from wire.error_codes import ErrorCode
from wire.schemas.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending

_NO_ID = -1
_NO_EPOCH = -1
_FIRST_WITH_FENCED = 4


def handle(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Pending[InitProducerIdResponse]:
    if (request.producer_id == _NO_ID) != (request.producer_epoch == _NO_EPOCH):
        raise errors.InvalidRequest("producer id and epoch must be given together")
    transactional_id = request.transactional_id
    if transactional_id is None:
        return InitProducerIdResponse(producer_id=broker.producer_ids.next(), producer_epoch=0)
    if not transactional_id:
        raise errors.InvalidRequest("an empty transactional id")
    timeout_ms = _timeout_ms(broker, request)
    from embedlog.coordinator.transaction.initialize import initialize

    expected = (request.producer_id, request.producer_epoch)
    pending = broker.transaction_coordinator.write(
        transactional_id,
        lambda shard: initialize(
            shard,
            transactional_id,
            timeout_ms=timeout_ms,
            expected=None if request.producer_id == _NO_ID else expected,
            new_producer_id=broker.producer_ids.next,
        ),
    )
    return settle(context, request, then(pending, _response))


def _timeout_ms(broker: Broker, request: InitProducerIdRequest) -> int:
    config = broker.config
    if request.enable2_pc and not config.transaction_two_phase_commit_enable:
        raise errors.TransactionalIdAuthorizationFailed()
    if request.keep_prepared_txn:
        raise errors.UnsupportedVersion("a prepared transaction cannot be kept")
    if request.enable2_pc:
        from embedlog.coordinator.transaction.transaction_metadata import NO_TIMEOUT_MS

        return NO_TIMEOUT_MS
    timeout_ms = request.transaction_timeout_ms
    if not 0 < timeout_ms <= config.transaction_max_timeout_ms:
        raise errors.InvalidTransactionTimeout()
    return timeout_ms


def _response(producer: tuple[int, int]) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=producer[0], producer_epoch=producer[1])


def refused(
    request: InitProducerIdRequest, version: int, error: errors.KafkaError
) -> InitProducerIdResponse:
    """Return the error, with -1 as producer id and epoch."""
    code = error.code
    if code == ErrorCode.PRODUCER_FENCED and version < _FIRST_WITH_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(error_code=code, producer_id=_NO_ID, producer_epoch=_NO_EPOCH)
