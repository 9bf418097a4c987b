"""SyncGroup (API key 14), versions 0-5, flexible from 4: hand out and receive the assignment of a
classic group.

v1 throttle time. v3 static members. v5 protocol type and name, which both sides check.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, bytes_, int16, int32, message, string, struct


@struct
class SyncGroupRequestAssignment:
    member_id: str = string()
    assignment: bytes = bytes_()


@message(api=ApiKey.SYNC_GROUP, kind="request", versions="0-5", flexible="4+")
class SyncGroupRequest(Request["SyncGroupResponse"]):
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


@message(api=ApiKey.SYNC_GROUP, kind="response", versions="0-5", flexible="4+")
class SyncGroupResponse:
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = bytes_()
