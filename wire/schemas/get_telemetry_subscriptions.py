"""GetTelemetrySubscriptions (API key 71), version 0, flexible: the metrics that a client must push
(KIP-714).

A zero client instance id asks for a new one.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, boolean, int8, int16, int32, message, string, uuid


@message(api=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, kind="request", versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest(Request["GetTelemetrySubscriptionsResponse"]):
    client_instance_id: bytes = uuid()


@message(api=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, kind="response", versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    accepted_compression_types: list[int] = array(int8)
    push_interval_ms: int = int32()
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = boolean()
    requested_metrics: list[str] = array(string)
