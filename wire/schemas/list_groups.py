"""ListGroups (API key 16), versions 0-5, flexible from 3: the groups a broker coordinates.

v1 throttle time. v4 filter by state. v5 filter by type.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, int16, int32, message, string, struct


@message(api=ApiKey.LIST_GROUPS, kind="request", versions="0-5", flexible="3+")
class ListGroupsRequest(Request["ListGroupsResponse"]):
    states_filter: list[str] = array(string, "4+")
    types_filter: list[str] = array(string, "5+")


@struct
class ListedGroup:
    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


@message(api=ApiKey.LIST_GROUPS, kind="response", versions="0-5", flexible="3+")
class ListGroupsResponse:
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)
