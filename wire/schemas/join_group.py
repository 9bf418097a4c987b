"""JoinGroup (API key 11), versions 0-9, flexible from 6: become a member of a classic group.

v1 rebalance timeout. v2 throttle time. v4 a first join without member id is answered with one
(MEMBER_ID_REQUIRED). v5 static members. v7 protocol type and nullable protocol name in the answer.
v8 reason. v9 the answer can ask the leader to skip the assignment.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, boolean, bytes_, int16, int32, message, string, struct


@struct
class JoinGroupRequestProtocol:
    name: str = string()
    metadata: bytes = bytes_()


@message(api=ApiKey.JOIN_GROUP, kind="request", versions="0-9", flexible="6+")
class JoinGroupRequest(Request["JoinGroupResponse"]):
    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)


@struct
class JoinGroupResponseMember:
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = bytes_()


@message(api=ApiKey.JOIN_GROUP, kind="response", versions="0-9", flexible="6+")
class JoinGroupResponse:
    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)
