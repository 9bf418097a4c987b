"""From one generation of a group to the next, and what runs by the clock on the way.

    prepare          a rebalance begins: whoever waits for an assignment joins again
    complete_join    everyone is there, or the time is over: the next generation
    (sync)           the leader's assignment makes it stable

Whoever is removed on the way is told so if it waits for an answer.
"""

from __future__ import annotations

from embedlog.coordinator.group.classic.classic_group import GroupState
from embedlog.coordinator.group.classic.delayed_heartbeat import DelayedHeartbeat
from embedlog.coordinator.group.classic.delayed_join import DelayedJoin, InitialDelayedJoin
from embedlog.coordinator.group.classic.delayed_sync import DelayedSync
from embedlog.coordinator.group.classic.parked_requests import ParkedRequests
from embedlog.coordinator.group.classic.records import group_record
from embedlog.coordinator.result import Result
from embedlog.logs import Log
from wire.error_codes import ErrorCode

_log = Log("group")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.coordinator.group.classic.classic_group import ClassicGroup
    from embedlog.coordinator.group.classic.classic_member import ClassicMember
    from embedlog.coordinator.shard_context import ShardContext


class Rebalances:
    """Moves the classic groups of one shard on. Requires for every method: the shard's lock.

    A `Result` that is returned holds records at most: whoever answers a request adds the response.
    """

    __slots__ = ("_context", "parked")

    def __init__(self, context: ShardContext) -> None:
        self._context = context
        self.parked = ParkedRequests(context)
        """What members wait for."""

    # The join phase

    def prepare_or_complete(self, group: ClassicGroup, reason: str) -> Result[Any]:
        """The members have changed: begin a rebalance, or go on with the one there is."""
        if group.can_rebalance:
            return self.prepare(group, reason)
        return self.maybe_complete_join(group)

    def prepare(self, group: ClassicGroup, reason: str) -> Result[Any]:
        """Begin a rebalance, and complete it at once when everyone is there already."""
        _log.info(
            "preparing to rebalance group %s in state %s with old generation %d (reason: %s)",
            group.group_id,
            group.state_name,
            group.generation_id,
            reason,
        )
        if group.state == GroupState.COMPLETING_REBALANCE:
            self.parked.withdraw_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._end_delayed_sync(group)
        is_first = group.state == GroupState.EMPTY
        group.transition_to(GroupState.PREPARING_REBALANCE, self._context.wall_ms())
        if is_first:
            delay_ms = self._initial_delay_ms
            remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            group.member_was_added = False
            self._await_joins(
                group, InitialDelayedJoin(self._context, self, group, delay_ms, remaining_ms)
            )
            return Result()
        if group.has_all_joined:
            return self.complete_join(group)
        self._await_joins_for(group, group.rebalance_timeout_ms)
        return Result()

    def await_more_members(self, group: ClassicGroup, remaining_ms: int) -> None:
        """Another step of the initial delay, as somebody came during the last one."""
        group.member_was_added = False
        delay_ms = min(self._initial_delay_ms, remaining_ms)
        step = InitialDelayedJoin(self._context, self, group, delay_ms, remaining_ms - delay_ms)
        self._await_joins(group, step)

    def maybe_complete_join(self, group: ClassicGroup) -> Result[Any]:
        """Complete the join phase if everyone is there; the first one of a group takes its time."""
        if (
            group.state == GroupState.PREPARING_REBALANCE
            and group.previous_state != GroupState.EMPTY
            and group.has_all_joined
        ):
            return self.complete_join(group)
        return Result()

    def complete_join(self, group: ClassicGroup) -> Result[Any]:
        """The next generation, of the members that are there; static ones stay though they are not.

        When nobody is there but static members, it waits until one comes or their sessions end.
        """
        self._end_delayed_join(group)
        for member in list(group.members.values()):
            if member.parked_join is None and member.instance_id is None:
                _log.warning(
                    "group %s removed member %s: it did not join again in time",
                    group.group_id,
                    member.member_id,
                )
                self.remove(group, member)
        if group.members and not group.elect_joined_leader():
            # Not 0, which clients may ask for: it would be over in the same call, again and again.
            self._await_joins_for(group, max(1, group.rebalance_timeout_ms))
            return Result()
        group.next_generation(self._context.wall_ms())
        if group.state == GroupState.EMPTY:
            _log.info("group %s with generation %d is empty", group.group_id, group.generation_id)
            return Result([group_record(group)], is_replayed=False)
        _log.info(
            "stabilized group %s generation %d with %d members",
            group.group_id,
            group.generation_id,
            len(group.members),
        )
        self._tell_generation(group)
        group.delayed_sync = DelayedSync(self._context, self, group)
        group.delayed_sync.begin()
        return Result()

    def _tell_generation(self, group: ClassicGroup) -> None:
        group.pending_sync.update(group.members)
        for member in group.members.values():
            is_leader = member.member_id == group.leader_id
            members = group.members_for_leader() if is_leader else None
            parked = group.park_join(member, None)
            if parked is not None:
                self.parked.answer(parked, group.joined(member.member_id, members=members))
            member.is_new = False
            member.keep_alive()

    @property
    def _initial_delay_ms(self) -> int:
        delay_ms: int = self._context.config.group_initial_rebalance_delay_ms
        return delay_ms

    def _await_joins_for(self, group: ClassicGroup, delay_ms: int) -> None:
        self._await_joins(group, DelayedJoin(self._context, self, group, delay_ms))

    def _await_joins(self, group: ClassicGroup, operation: DelayedJoin) -> None:
        self._end_delayed_join(group)
        group.delayed_join = operation
        operation.begin()

    def _end_delayed_join(self, group: ClassicGroup) -> None:
        if group.delayed_join is not None:
            group.delayed_join.end()
            group.delayed_join = None

    # The sync phase

    def sync_received(self, group: ClassicGroup, member_id: str) -> None:
        """That member asked for its assignment."""
        group.pending_sync.discard(member_id)
        if not group.pending_sync:
            self._end_delayed_sync(group)

    def sync_timed_out(self, operation: DelayedSync) -> Result[Any]:
        """Go on without the members that did not ask for their assignment."""
        group = operation.group
        assert operation.generation_id == group.generation_id, (group.group_id, operation.key)
        self._end_delayed_sync(group)
        for member_id in list(group.pending_sync):
            _log.warning(
                "group %s removed member %s: it did not ask for its assignment in time",
                group.group_id,
                member_id,
            )
            self.remove(group, group.members[member_id])
        return self.prepare(group, "members did not ask for their assignment")

    def _end_delayed_sync(self, group: ClassicGroup) -> None:
        if group.delayed_sync is not None:
            group.delayed_sync.end()
            group.delayed_sync = None

    # Sessions

    def open_session(
        self, group: ClassicGroup, member_id: str, timeout_ms: int
    ) -> DelayedHeartbeat:
        """A session that ends in `timeout_ms`, unless it is kept alive."""
        session = DelayedHeartbeat(self._context, self, group, member_id, timeout_ms)
        session.begin()
        return session

    def session_timed_out(self, session: DelayedHeartbeat) -> Result[Any]:
        """The member is gone, and the group goes on without it."""
        group, member_id = session.group, session.member_id
        if group.pending_members.get(member_id) is session:
            _log.info("group %s forgets pending member %s", group.group_id, member_id)
            self.remove_pending(group, member_id)
            return self.maybe_complete_join(group)
        member = group.members[member_id]
        assert member.session is session, (group.group_id, member)
        if session.deadline_ms > self._context.monotonic_ms():
            self._context.defer(session.watch)
            return Result()
        if member.is_parked and not member.is_new:
            # It cannot send heartbeats while it waits for us.
            session.keep_alive(member.session_timeout_ms)
            self._context.defer(session.watch)
            return Result()
        _log.warning(
            "member %s in group %s has failed, removing it from the group: its session expired",
            member_id,
            group.group_id,
        )
        self.remove(group, member)
        return self.prepare_or_complete(group, f"removing member {member_id} on session expiration")

    # Members that go

    def remove(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Forget the member; what it has parked is answered UNKNOWN_MEMBER_ID."""
        self.parked.fence(group, member, ErrorCode.UNKNOWN_MEMBER_ID, member_id="")
        group.remove(member)
        if member.session is not None:
            member.session.end()

    def remove_pending(self, group: ClassicGroup, member_id: str) -> None:
        """Forget an id that was given out."""
        group.pending_members.pop(member_id).end()

    def dissolve(self, group: ClassicGroup, code: int) -> None:
        """The group is no more: stop its clocks, and answer whoever waits with `code`."""
        self._end_delayed_join(group)
        self._end_delayed_sync(group)
        for member_id in list(group.pending_members):
            self.remove_pending(group, member_id)
        for member in group.members.values():
            self.parked.fence(group, member, code, member_id=member.member_id)
            if member.session is not None:
                member.session.end()
        group.transition_to(GroupState.DEAD, self._context.wall_ms())
