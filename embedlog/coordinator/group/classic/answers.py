"""Refusals of JoinGroup, SyncGroup and Heartbeat, as Kafka words them."""

from __future__ import annotations

from wire.schemas.heartbeat import HeartbeatResponse
from wire.schemas.join_group import JoinGroupResponse
from wire.schemas.sync_group import SyncGroupResponse

_FIRST_WITH_NULL_PROTOCOL = 7


def join_refused(version: int, code: int, member_id: str = "") -> JoinGroupResponse:
    """`member_id` is the one that was asked with, or "" where Kafka forgets it."""
    return JoinGroupResponse(
        error_code=code,
        protocol_name=None if version >= _FIRST_WITH_NULL_PROTOCOL else "",
        member_id=member_id,
    )


def sync_refused(code: int) -> SyncGroupResponse:
    """Without an assignment."""
    return SyncGroupResponse(error_code=code)


def heartbeat_refused(code: int) -> HeartbeatResponse:
    """What the member has to hear."""
    return HeartbeatResponse(error_code=code)
