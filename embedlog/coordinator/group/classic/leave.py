"""LeaveGroup: members leave, or an administrator removes them.

    member id                        that member, or an id that has not joined yet
    member id and instance id        that static member, if both match
    instance id, member id ""        that static member, removed by an administrator

Up to version 2 a request names one member, and the response has that member's error code.
"""

from __future__ import annotations

from embedlog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from embedlog.coordinator.result import Result
from embedlog.logger import Logger
from wire.error_codes import ErrorCode
from wire.schemas.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.classic.rebalances import Rebalances
    from embedlog.coordinator.group.group import Group

    LeaveResult = Result[LeaveGroupResponse]

_log = Logger("group")

_FIRST_WITH_MEMBERS = 3


def leaving_members(request: LeaveGroupRequest, version: int) -> list[MemberIdentity]:
    """Return the members that the request names."""
    if version >= _FIRST_WITH_MEMBERS:
        return request.members
    return [MemberIdentity(member_id=request.member_id)]


def leave_response(answers: list[MemberResponse], version: int) -> LeaveGroupResponse:
    """Return the response, with one answer for each of `leaving_members`."""
    if version >= _FIRST_WITH_MEMBERS:
        return LeaveGroupResponse(members=answers)
    return LeaveGroupResponse(error_code=answers[0].error_code)


class Leaves:
    """Answers LeaveGroup for the classic groups of one shard. Requires: the shard's lock."""

    def __init__(self, groups: dict[str, Group], rebalances: Rebalances) -> None:
        self._groups = groups
        self._rebalances = rebalances

    def leave(self, request: LeaveGroupRequest, *, version: int) -> LeaveResult:
        """Remove the named members, each with its own error code, then rebalance the group."""
        group = self._groups.get(request.group_id)
        if isinstance(group, ClassicGroup) and group.state == GroupState.DEAD:
            dead = LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return Result((), dead)
        answers = []
        for leaving in leaving_members(request, version):
            code: int = ErrorCode.UNKNOWN_MEMBER_ID
            if isinstance(group, ClassicGroup):
                code = self._remove(group, leaving)
            answers.append(
                MemberResponse(
                    member_id=leaving.member_id,
                    group_instance_id=leaving.group_instance_id,
                    error_code=code,
                )
            )
        result: LeaveResult = Result()
        has_changed = any(answer.error_code == 0 for answer in answers)
        if has_changed and isinstance(group, ClassicGroup) and group.state != GroupState.EMPTY:
            # As in Kafka the group rebalances even if the only id that left had not joined yet.
            left = ", ".join(each.member_id or str(each.group_instance_id) for each in answers)
            _log.info("members left group %s: %s", group.group_id, left)
            result = self._rebalances.prepare_or_complete(group, f"members left: {left}")
        result.response = leave_response(answers, version)
        return result

    def _remove(self, group: ClassicGroup, leaving: MemberIdentity) -> int:
        """Remove one member; return its error code, 0 for success."""
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        if not member_id:
            known_id = None if instance_id is None else group.members.static_ids.get(instance_id)
            if known_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            self._rebalances.remove(group, group.members.by_id[known_id])
            return 0
        if member_id in group.members.pending:
            self._rebalances.remove_pending(group, member_id)
            return 0
        code = group.members.refusal(member_id, instance_id)
        if code == 0:
            self._rebalances.remove(group, group.members.by_id[member_id])
        return code
