"""SyncGroup: the leader sends the assignment, every member receives its part.

Errors are checked in this order, after the group id and the names that version 5 requires:
    unknown or empty group                  UNKNOWN_MEMBER_ID
    dead group                              COORDINATOR_NOT_AVAILABLE
    instance id of another member           FENCED_INSTANCE_ID
    unknown member                          UNKNOWN_MEMBER_ID
    another generation                      ILLEGAL_GENERATION
    another protocol type or protocol       INCONSISTENT_GROUP_PROTOCOL
    the members are still joining           REBALANCE_IN_PROGRESS
"""

from __future__ import annotations

from embedlog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from embedlog.coordinator.group.classic.records import group_record
from embedlog.coordinator.result import Result
from embedlog.runtime.pending import Pending
from wire.error_codes import ErrorCode
from wire.schemas.sync_group import SyncGroupRequest, SyncGroupResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.classic.classic_member import ClassicMember, ParkedSync
    from embedlog.coordinator.group.classic.rebalances import Rebalances
    from embedlog.coordinator.group.group import Group
    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.errors import KafkaError

    SyncResult = Result[SyncGroupResponse]


class Syncs:
    """Answers SyncGroup for the classic groups of one shard. Requires: the shard's lock."""

    def __init__(
        self, context: ShardContext, groups: dict[str, Group], rebalances: Rebalances
    ) -> None:
        self._context = context
        self._groups = groups
        self._rebalances = rebalances

    def sync(self, request: SyncGroupRequest) -> SyncResult:
        """Answer at once, or park the request until the leader's assignment is stored."""
        group = self._groups.get(request.group_id)
        if not isinstance(group, ClassicGroup) or group.state == GroupState.EMPTY:
            return Result((), SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        code = _refusal(group, request)
        if code:
            return Result((), SyncGroupResponse(error_code=code))
        member = group.members.by_id[request.member_id]
        self._rebalances.sync_received(group, member.member_id)
        if group.state == GroupState.STABLE:
            member.keep_alive()
            return Result((), self._rebalances.parked.assigned(group, member))
        parked = self._park(member)
        if group.members.leader_id != member.member_id:
            return Result((), parked)
        return self._assign(group, request, parked)

    def _park(self, member: ClassicMember) -> ParkedSync:
        former = member.parked_sync
        if former is not None:
            # The client of the former request has gone, or two clients share the id. Kafka never
            # answers that request.
            refused = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
            self._rebalances.parked.answer(former, refused)
        parked: ParkedSync = Pending()
        member.parked_sync = parked
        return parked

    def _assign(
        self, group: ClassicGroup, request: SyncGroupRequest, parked: ParkedSync
    ) -> SyncResult:
        """Store the leader's assignment. Once it is stored, the members get it and the group is
        stable.
        """
        # Members that the leader forgot, or does not know yet, are assigned nothing.
        assignments = dict.fromkeys(group.members.by_id, b"")
        for assigned in request.assignments:
            if assigned.member_id in assignments:
                assignments[assigned.member_id] = bytes(assigned.assignment)

        def stored(error: KafkaError | None) -> None:
            if (
                group.state != GroupState.COMPLETING_REBALANCE
                or group.generation_id != request.generation_id
            ):
                return  # the group has begun another rebalance meanwhile
            if error is None:
                self._rebalances.parked.assign(group, assignments)
                group.transition_to(GroupState.STABLE, self._context.wall_ms())
                return
            self._rebalances.parked.withdraw_assignments(group, error.code)
            result = self._rebalances.prepare(group, "the assignment could not be stored")
            assert not result.records, (group.group_id, result)

        record = group_record(group, assignments)
        return Result([record], parked, is_replayed=False, on_append=stored)


def _refusal(group: ClassicGroup, request: SyncGroupRequest) -> int:
    """Return the error code for the request, 0 for none."""
    if group.state == GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    code = group.members.refusal(request.member_id, request.group_instance_id)
    if code:
        return code
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    # Requests before version 5 name neither protocol type nor protocol.
    if request.protocol_type not in (None, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if request.protocol_name not in (None, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state == GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return 0
