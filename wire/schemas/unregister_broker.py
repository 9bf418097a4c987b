"""UnregisterBroker (API key 64), version 0, flexible: remove a broker's registration."""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, int16, int32, message, string


@message(api=ApiKey.UNREGISTER_BROKER, kind="request", versions="0", flexible="0+")
class UnregisterBrokerRequest(Request["UnregisterBrokerResponse"]):
    broker_id: int = int32()


@message(api=ApiKey.UNREGISTER_BROKER, kind="response", versions="0", flexible="0+")
class UnregisterBrokerResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
