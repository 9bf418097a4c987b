"""UnregisterBroker (api key 64), version 0: remove a broker from the metadata for good.

The only broker of a cluster cannot be removed. In Kafka it can, and then no broker is left.
"""

from __future__ import annotations

from wire.schemas.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext


def handle(
    broker: Broker, _context: RequestContext, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    broker.controller.brokers.unregister(request.broker_id)
    return UnregisterBrokerResponse(error_message="")
