"""Heartbeat: keeps a member's session alive, and tells the member about a rebalance.

`rebalances` opens the sessions, and removes a member whose session expires.

Errors are checked in this order, after the group id:
    unknown or empty group                  UNKNOWN_MEMBER_ID
    dead group                              COORDINATOR_NOT_AVAILABLE
    instance id of another member           FENCED_INSTANCE_ID
    unknown member                          UNKNOWN_MEMBER_ID
    another generation                      ILLEGAL_GENERATION
    the members must join again             REBALANCE_IN_PROGRESS, and the session goes on
"""

from __future__ import annotations

from embedlog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from embedlog.coordinator.result import Result
from wire.error_codes import ErrorCode
from wire.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.coordinator.group.group import Group

    HeartbeatResult = Result[HeartbeatResponse]

# Saves two look-ups in each heartbeat.
_DEAD = GroupState.DEAD
_PREPARING_REBALANCE = GroupState.PREPARING_REBALANCE

# Shared by all successful heartbeats, because results and responses are never changed.
_ALIVE: HeartbeatResult = Result((), HeartbeatResponse())
_REBALANCING: HeartbeatResult = Result(
    (), HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
)


def heartbeat(groups: Mapping[str, Group], request: HeartbeatRequest) -> HeartbeatResult:
    """Answer a heartbeat. Requires: the lock of the shard that holds `groups`."""
    group = groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        return _refused(ErrorCode.UNKNOWN_MEMBER_ID)
    if group.state == _DEAD:
        return _refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    code = group.members.refusal(request.member_id, request.group_instance_id)
    if code:
        return _refused(code)
    if request.generation_id != group.generation_id:
        return _refused(ErrorCode.ILLEGAL_GENERATION)
    group.members.by_id[request.member_id].keep_alive()
    return _REBALANCING if group.state == _PREPARING_REBALANCE else _ALIVE


def _refused(code: int) -> HeartbeatResult:
    return Result((), HeartbeatResponse(error_code=code))
