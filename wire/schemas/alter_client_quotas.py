"""AlterClientQuotas (API key 49), versions 0-1, flexible from 1: set and remove client quotas."""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, boolean, float64, int16, int32, message, string, struct


@struct
class EntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@struct
class OpData:
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@struct
class RequestEntryData:
    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


@message(api=ApiKey.ALTER_CLIENT_QUOTAS, kind="request", versions="0-1", flexible="1+")
class AlterClientQuotasRequest(Request["AlterClientQuotasResponse"]):
    entries: list[RequestEntryData] = array(RequestEntryData)
    validate_only: bool = boolean()


@struct
class ResponseEntryData:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: list[EntityData] = array(EntityData)


@message(api=ApiKey.ALTER_CLIENT_QUOTAS, kind="response", versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    throttle_time_ms: int = int32()
    entries: list[ResponseEntryData] = array(ResponseEntryData)
