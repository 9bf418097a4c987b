"""ListConfigResources (API key 74), versions 0-1, flexible: resources that have settings.

v0 client metrics only. v1 any resource types.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, int8, int16, int32, message, string, struct


@message(api=ApiKey.LIST_CONFIG_RESOURCES, kind="request", versions="0-1", flexible="0+")
class ListConfigResourcesRequest(Request["ListConfigResourcesResponse"]):
    resource_types: list[int] = array(int8, "1+")


@struct
class ConfigResource:
    resource_name: str = string()
    resource_type: int = int8("1+", default=16, ignorable=True)


@message(api=ApiKey.LIST_CONFIG_RESOURCES, kind="response", versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
