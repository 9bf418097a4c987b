"""PushTelemetry (API key 72), version 0, flexible: metrics of a client, in OTLP form (KIP-714)."""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, boolean, bytes_, int8, int16, int32, message, uuid


@message(api=ApiKey.PUSH_TELEMETRY, kind="request", versions="0", flexible="0+")
class PushTelemetryRequest(Request["PushTelemetryResponse"]):
    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    terminating: bool = boolean()
    compression_type: int = int8()
    metrics: bytes = bytes_()


@message(api=ApiKey.PUSH_TELEMETRY, kind="response", versions="0", flexible="0+")
class PushTelemetryResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
