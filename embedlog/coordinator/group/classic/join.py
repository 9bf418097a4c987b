"""JoinGroup: become a member, or join the next generation.

    no member id    dynamic   answer with a new id, to join with it (KIP-394, from version 4)
                    static    a new member, or the successor of its instance id (KIP-345)
    an id from that answer    a new member
    a member's id             by state: park, rebalance, or answer the present generation

Errors are checked in this order, after the group id and the session time-out:
    unknown group and a member id                       UNKNOWN_MEMBER_ID
    full group                                          GROUP_MAX_SIZE_REACHED
    dead group                                          COORDINATOR_NOT_AVAILABLE
    another protocol type, or no protocol in common     INCONSISTENT_GROUP_PROTOCOL
    instance id of another member                       FENCED_INSTANCE_ID
    unknown member id, or no members                    UNKNOWN_MEMBER_ID
"""

from __future__ import annotations

from embedlog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from embedlog.coordinator.group.classic.classic_member import (
    ClassicMember,
    ParkedJoin,
    join_refused,
    protocols_of,
)
from embedlog.coordinator.group.classic.records import group_record, new_group_record
from embedlog.coordinator.result import Result
from embedlog.logger import Logger
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.coordinator.group.classic.classic_member import Protocols
    from embedlog.coordinator.group.classic.rebalances import Rebalances
    from embedlog.coordinator.group.group import ClientIdentity, Group
    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.errors import KafkaError
    from wire.schemas.join_group import JoinGroupRequest, JoinGroupResponse

    JoinResult = Result[JoinGroupResponse]

_log = Logger("group")

NEW_MEMBER_TIMEOUT_MS = 300_000
"""Session time-out of a new member while its first join is parked. Without it, a client that gives
up and tries again would leave a member behind each time, because parked members send no
heartbeats."""

_FIRST_WITH_REBALANCE_TIMEOUT = 1
_FIRST_WITH_MEMBER_ID_REQUIRED = 4
_FIRST_WITH_SKIP_ASSIGNMENT = 9
_SHARE = "share"
_STREAMS = "streams"


class Joins:
    """Answers JoinGroup for the classic groups of one shard. Requires: the shard's lock."""

    def __init__(
        self, context: ShardContext, groups: dict[str, Group], rebalances: Rebalances
    ) -> None:
        self._context = context
        self._groups = groups
        self._rebalances = rebalances

    def join(
        self, client: ClientIdentity, request: JoinGroupRequest, *, version: int
    ) -> JoinResult:
        """Answer at once, or park the request until the generation is complete."""
        joining = _Joining(client, request, version)
        former = self._groups.get(request.group_id)
        if isinstance(former, ClassicGroup):
            return self._join(former, joining)
        if former is not None and (
            former.GROUP_TYPE == _SHARE or (former.GROUP_TYPE == _STREAMS and not former.is_empty())
        ):
            return joining.refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if request.member_id:
            return joining.refused(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
        group = self._groups[request.group_id] = ClassicGroup(
            request.group_id, state_timestamp_ms=self._context.wall_ms()
        )
        result = self._join(group, joining)
        assert not result.records, (group.group_id, result)
        # Store the group although it is empty: a commit of offsets must find it. It replaces an
        # empty group of the other protocol.
        result.records = [
            *(former.tombstones() if former is not None else ()),
            new_group_record(group),
        ]
        result.is_replayed = False
        result.on_append = lambda error: self._created(group, former, error)
        return result

    def _created(self, group: ClassicGroup, former: Group | None, error: KafkaError | None) -> None:
        if error is None or self._groups.get(group.group_id) is not group:
            return
        self._rebalances.dissolve(group, error.code)
        if former is None:
            del self._groups[group.group_id]
        else:
            self._groups[group.group_id] = former

    def _join(self, group: ClassicGroup, joining: _Joining) -> JoinResult:
        member_id = joining.request.member_id
        if not self._accepts(group, member_id):
            return self._turn_away(group, joining)
        if group.state == GroupState.DEAD:
            return joining.refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
        if not group.supports(joining.request.protocol_type, joining.protocols):
            return joining.refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        if not member_id:
            return self._join_new(group, joining)
        if member_id in group.members.pending:
            return self._join_pending(group, joining)
        code = group.members.refusal(member_id, joining.request.group_instance_id)
        if code:
            instance_id = joining.request.group_instance_id
            if code == ErrorCode.FENCED_INSTANCE_ID:
                _log.warning(
                    "group %s fences member %s: static member %s has another member id",
                    group.group_id,
                    member_id,
                    instance_id,
                )
            return joining.refused(code, member_id)
        return self._join_again(group, group.members.by_id[member_id], joining)

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        """Return whether the group has room for the member.

        Outside a rebalance all members have room. In a rebalance the first ones to join have it.
        """
        size_max: int = self._context.config.group_max_size
        member = group.members.by_id.get(member_id)
        if group.state == GroupState.PREPARING_REBALANCE:
            is_waiting = member is not None and member.parked_join is not None
            return is_waiting or group.members.awaiting_join_count < size_max
        if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return member is not None or len(group.members.by_id) < size_max
        return True

    def _turn_away(self, group: ClassicGroup, joining: _Joining) -> JoinResult:
        """Refuse the join because the group is full. A member that joins again too late is removed.

        As in Kafka, the rebalance of the others continues only when another member joins or the
        time is up.
        """
        member_id = joining.request.member_id
        if member_id in group.members.by_id:
            self._rebalances.remove(group, group.members.by_id[member_id])
        elif member_id in group.members.pending:
            self._rebalances.remove_pending(group, member_id)
        return joining.refused(ErrorCode.GROUP_MAX_SIZE_REACHED)

    # New members

    def _join_new(self, group: ClassicGroup, joining: _Joining) -> JoinResult:
        instance_id = joining.request.group_instance_id
        prefix = joining.client.client_id if instance_id is None else instance_id
        member_id = f"{prefix}-{_uuid_text(self._context.random.uuid())}"
        if instance_id is not None:
            known_id = group.members.static_ids.get(instance_id)
            if known_id is not None:
                return self._join_static_again(
                    group, group.members.by_id[known_id], member_id, joining
                )
        elif joining.version >= _FIRST_WITH_MEMBER_ID_REQUIRED:
            # Limit the ids: each is kept for a session time-out, even if its client never uses it.
            pending_max: int = self._context.config.embedlog_group_max_pending_members
            if len(group.members.pending) >= pending_max:
                return joining.refused(ErrorCode.GROUP_MAX_SIZE_REACHED)
            group.members.pending[member_id] = self._rebalances.open_session(
                group, member_id, joining.request.session_timeout_ms
            )
            return joining.refused(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        return self._add(group, member_id, joining)

    def _join_pending(self, group: ClassicGroup, joining: _Joining) -> JoinResult:
        if joining.request.group_instance_id is not None:
            # The coordinator made this id for a dynamic member, but this member is static: the
            # client mixes up two ids.
            return joining.refused(ErrorCode.UNKNOWN_SERVER_ERROR)
        return self._add(group, joining.request.member_id, joining)

    def _add(self, group: ClassicGroup, member_id: str, joining: _Joining) -> JoinResult:
        request = joining.request
        member = ClassicMember(
            member_id,
            instance_id=request.group_instance_id,
            client_id=joining.client.client_id,
            client_host=joining.client.client_host,
            rebalance_timeout_ms=joining.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=joining.protocols,
        )
        member.is_new = True
        if group.previous_state == GroupState.EMPTY:
            group.member_was_added = True
        group.add(member, request.protocol_type)
        parked = ParkedJoin(joining.version)
        group.members.park_join(member, parked)
        pending = group.members.pending.pop(member_id, None)
        if pending is None:
            member.session = self._rebalances.open_session(group, member_id, NEW_MEMBER_TIMEOUT_MS)
        else:
            member.session = pending
            pending.keep_alive(NEW_MEMBER_TIMEOUT_MS)
        _log.info("member %s joins group %s", member_id, group.group_id)
        reason = f"adding new member {member_id}{_reason(request)}"
        return self._answered_by(parked, self._rebalances.prepare_or_complete(group, reason))

    # Members that join again

    def _join_again(
        self, group: ClassicGroup, member: ClassicMember, joining: _Joining
    ) -> JoinResult:
        is_leader = group.members.leader_id == member.member_id
        is_same = member.protocols == joining.protocols
        if group.state == GroupState.COMPLETING_REBALANCE and is_same:
            # The member sent the same join again: it has missed the answer.
            member.keep_alive()
            return Result((), group.joined(member.member_id, lists_members=is_leader))
        if group.state == GroupState.STABLE and is_same and not is_leader:
            member.keep_alive()
            return Result((), group.joined(member.member_id))
        if group.state == GroupState.EMPTY:
            return joining.refused(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id)
        parked = self._park(group, member, joining)
        reason = f"updating metadata of member {member.member_id}{_reason(joining.request)}"
        return self._answered_by(parked, self._rebalances.prepare_or_complete(group, reason))

    def _park(self, group: ClassicGroup, member: ClassicMember, joining: _Joining) -> ParkedJoin:
        group.members.update(
            member,
            joining.protocols,
            rebalance_timeout_ms=joining.rebalance_timeout_ms,
            session_timeout_ms=joining.request.session_timeout_ms,
        )
        parked = ParkedJoin(joining.version)
        former = group.members.park_join(member, parked)
        if former is not None:
            # The client of the former request has gone, or two clients share the id. Kafka never
            # answers that request.
            self._rebalances.parked.refuse_join(
                former, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id
            )
        return parked

    def _join_static_again(
        self, group: ClassicGroup, member: ClassicMember, member_id: str, joining: _Joining
    ) -> JoinResult:
        """Give a restarted static member its place back under a new id."""
        undo = self._undo_of(group, member)
        former_leader_id = group.members.leader_id
        self._take_id(group, member, member_id)
        parked = self._park(group, member, joining)
        if (
            group.state != GroupState.STABLE
            or group.protocol_name != group.members.select_protocol()
        ):
            reason = f"static member {member.instance_id} joins again as {member_id}"
            return self._answered_by(parked, self._rebalances.prepare_or_complete(group, reason))

        def stored(error: KafkaError | None) -> None:
            if member.parked_join is not parked:
                return  # the member has restarted again, or the group has another generation
            group.members.park_join(member, None)
            if error is None:
                place = self._place(group, member, former_leader_id, joining.version)
                self._rebalances.parked.answer(parked, place)
            else:
                undo()
                self._rebalances.parked.refuse_join(parked, error.code, "")

        return Result([group_record(group)], parked, is_replayed=False, on_append=stored)

    def _take_id(self, group: ClassicGroup, member: ClassicMember, member_id: str) -> None:
        """Fence the client with the former id, and open a session for the new one."""
        _log.info(
            "static member %s of group %s is %s from here on; %s is fenced",
            member.instance_id,
            group.group_id,
            member_id,
            member.member_id,
        )
        self._rebalances.parked.fence(
            group, member, ErrorCode.FENCED_INSTANCE_ID, member_id=member.member_id
        )
        if member.session is not None:
            member.session.end()
        group.members.replace_id(member, member_id)
        member.session = self._rebalances.open_session(group, member_id, member.session_timeout_ms)

    def _undo_of(self, group: ClassicGroup, member: ClassicMember) -> Callable[[], None]:
        """Return a function that restores the present state of `member`."""
        former_id = member.member_id
        protocols = member.protocols
        rebalance_timeout_ms = member.rebalance_timeout_ms
        session_timeout_ms = member.session_timeout_ms

        def undo() -> None:
            group.members.update(
                member,
                protocols,
                rebalance_timeout_ms=rebalance_timeout_ms,
                session_timeout_ms=session_timeout_ms,
            )
            self._take_id(group, member, former_id)

        return undo

    def _place(
        self,
        group: ClassicGroup,
        member: ClassicMember,
        former_leader_id: str | None,
        version: int,
    ) -> JoinGroupResponse:
        """Answer a restarted member with the present generation. A leader must not assign again.

        So the answer tells it to skip the assignment or, before version 9, names its former id as
        the leader.
        """
        if version < _FIRST_WITH_SKIP_ASSIGNMENT:
            return group.joined(member.member_id, leader_id=former_leader_id)
        is_leader = group.members.leader_id == member.member_id
        return group.joined(
            member.member_id,
            lists_members=is_leader,
            skip_assignment=is_leader,
        )

    def _answered_by(self, parked: ParkedJoin, result: Result[JoinGroupResponse]) -> JoinResult:
        result.response = parked
        return result


class _Joining:
    """One JoinGroup request with derived values."""

    __slots__ = (
        "client",
        "protocols",
        "rebalance_timeout_ms",
        "request",
        "version",
    )

    def __init__(self, client: ClientIdentity, request: JoinGroupRequest, version: int) -> None:
        self.request = request
        self.version = version
        self.client = client
        self.protocols: Protocols = protocols_of(request.protocols)
        self.rebalance_timeout_ms = (
            request.rebalance_timeout_ms
            if version >= _FIRST_WITH_REBALANCE_TIMEOUT
            else request.session_timeout_ms
        )

    def refused(self, code: int, member_id: str = "") -> JoinResult:
        return Result((), join_refused(self.version, code, member_id))


def _reason(request: JoinGroupRequest) -> str:
    return f"; client reason: {request.reason!r}" if request.reason else ""


def _uuid_text(uuid: bytes) -> str:
    """Format a uuid as Java does: 36 characters."""
    text = uuid.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
