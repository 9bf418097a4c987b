"""DeleteGroups (API key 42), versions 0-3, flexible from 2: delete groups that have no members.

v3 error message.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, int16, int32, message, string, struct


@message(api=ApiKey.DELETE_GROUPS, kind="request", versions="0-3", flexible="2+")
class DeleteGroupsRequest(Request["DeleteGroupsResponse"]):
    groups_names: list[str] = array(string)


@struct
class DeletableGroupResult:
    group_id: str = string()
    error_code: int = int16()
    error_message: str | None = string("3+", nullable="3+", default=None, ignorable=True)


@message(api=ApiKey.DELETE_GROUPS, kind="response", versions="0-3", flexible="2+")
class DeleteGroupsResponse:
    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
