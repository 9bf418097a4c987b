"""UnregisterController (API key 94), version 0, flexible: remove a controller's registration."""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, int16, int32, message, string


@message(api=ApiKey.UNREGISTER_CONTROLLER, kind="request", versions="0", flexible="0+")
class UnregisterControllerRequest(Request["UnregisterControllerResponse"]):
    controller_id: int = int32()


@message(api=ApiKey.UNREGISTER_CONTROLLER, kind="response", versions="0", flexible="0+")
class UnregisterControllerResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
