"""Heartbeat (API key 12), versions 0-4, flexible from 4: stay a member of a classic group.

v1 throttle time. v3 static members.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, int16, int32, message, string


@message(api=ApiKey.HEARTBEAT, kind="request", versions="0-4", flexible="4+")
class HeartbeatRequest(Request["HeartbeatResponse"]):
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


@message(api=ApiKey.HEARTBEAT, kind="response", versions="0-4", flexible="4+")
class HeartbeatResponse:
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
