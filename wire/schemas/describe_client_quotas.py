"""DescribeClientQuotas (API key 48), versions 0-1, flexible from 1: client quotas that match a
filter.

Match types: 0 exact, 1 default entity, 2 any named entity.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import (
    Request,
    array,
    boolean,
    float64,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
)


@struct
class ComponentData:
    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable="0+")


@message(api=ApiKey.DESCRIBE_CLIENT_QUOTAS, kind="request", versions="0-1", flexible="1+")
class DescribeClientQuotasRequest(Request["DescribeClientQuotasResponse"]):
    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()


@struct
class EntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@struct
class ValueData:
    key: str = string()
    value: float = float64()


@struct
class EntryData:
    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


@message(api=ApiKey.DESCRIBE_CLIENT_QUOTAS, kind="response", versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: list[EntryData] | None = array(EntryData, nullable="0+")
