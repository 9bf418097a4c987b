"""Rebalances: the steps from one generation of a group to the next, and all time limits of members.

    prepare          begin: members that wait for an assignment join again
    (join)           when all have joined, or the time is over: the next generation
    (sync)           the leader's assignment makes the group stable

A member that does not join or send SyncGroup within the time limit is removed, and so is a member
whose session expires (`_session_timed_out`). The parked requests of a removed member get an error.
"""

from __future__ import annotations

from embedlog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from embedlog.coordinator.group.classic.group_operation import DelayedHeartbeat, GroupOperation
from embedlog.coordinator.group.classic.parked_requests import ParkedRequests
from embedlog.coordinator.group.classic.records import group_record
from embedlog.coordinator.result import Result
from embedlog.logger import Logger
from wire.error_codes import ErrorCode

_log = Logger("group")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.coordinator.group.classic.classic_member import ClassicMember
    from embedlog.coordinator.shard_context import ShardContext


class Rebalances:
    """Rebalances the classic groups of one shard. Requires for every method: the shard's lock.

    A returned `Result` has no response: the caller adds it.
    """

    def __init__(self, context: ShardContext) -> None:
        self._context = context
        self.parked = ParkedRequests(context)

    # The join phase

    def prepare_or_complete(self, group: ClassicGroup, reason: str) -> Result[Any]:
        """Begin a rebalance after a change of members, or continue the running rebalance."""
        if group.can_rebalance:
            return self.prepare(group, reason)
        return self.maybe_complete_join(group)

    def prepare(self, group: ClassicGroup, reason: str) -> Result[Any]:
        """Begin a rebalance; complete it at once if everyone has joined already."""
        _log.info(
            "preparing to rebalance group %s in state %s with old generation %d (reason: %s)",
            group.group_id,
            group.state_name(),
            group.generation_id,
            reason,
        )
        if group.state == GroupState.COMPLETING_REBALANCE:
            self.parked.withdraw_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._end_delayed_sync(group)
        is_first = group.state == GroupState.EMPTY
        group.transition_to(GroupState.PREPARING_REBALANCE, self._context.wall_ms())
        if is_first:
            delay_ms: int = self._context.config.group_initial_rebalance_delay_ms
            rest_ms = max(group.members.rebalance_timeout_ms - delay_ms, 0)
            self._await_more_members(group, delay_ms, rest_ms)
            return Result()
        if group.members.have_all_joined:
            return self._complete_join(group)
        self._await_joins(group, group.members.rebalance_timeout_ms)
        return Result()

    def _await_more_members(self, group: ClassicGroup, delay_ms: int, rest_ms: int) -> None:
        """Wait for `delay_ms`, one step of the initial delay (KIP-134).

        The first rebalance of an empty group waits even if all members have joined. It waits again
        if a member joined meanwhile, until `rest_ms` is used up. So members that start together
        make one generation, not one each.
        """
        group.member_was_added = False

        def step_is_over() -> Result[Any]:
            if not group.member_was_added or rest_ms == 0:
                return self._complete_join(group)
            next_ms = min(self._context.config.group_initial_rebalance_delay_ms, rest_ms)
            self._await_more_members(group, next_ms, rest_ms - next_ms)
            return Result()

        self._begin_delayed_join(group, delay_ms, step_is_over)

    def maybe_complete_join(self, group: ClassicGroup) -> Result[Any]:
        """Complete the join phase if all have joined, unless the initial delay is running."""
        if (
            group.state == GroupState.PREPARING_REBALANCE
            and group.previous_state != GroupState.EMPTY
            and group.members.have_all_joined
        ):
            return self._complete_join(group)
        return Result()

    def _complete_join(self, group: ClassicGroup) -> Result[Any]:
        """Form the next generation from the members that joined; absent static members stay.

        If only absent static members are left, wait until one joins or their sessions end.
        """
        self._end_delayed_join(group)
        for member in list(group.members.by_id.values()):
            if member.parked_join is None and member.instance_id is None:
                _log.warning(
                    "group %s removed member %s: it did not join again in time",
                    group.group_id,
                    member.member_id,
                )
                self.remove(group, member)
        if group.members.by_id and not group.members.elect_joined_leader():
            # At least 1 ms: clients may choose 0, but a wait of 0 would end here, again and again.
            self._await_joins(group, max(1, group.members.rebalance_timeout_ms))
            return Result()
        group.next_generation(self._context.wall_ms())
        if group.state == GroupState.EMPTY:
            _log.info("group %s with generation %d is empty", group.group_id, group.generation_id)
            return Result([group_record(group)], is_replayed=False)
        _log.info(
            "stabilized group %s generation %d with %d members",
            group.group_id,
            group.generation_id,
            len(group.members.by_id),
        )
        self._answer_joins(group)
        self._begin_delayed_sync(group)
        return Result()

    def _answer_joins(self, group: ClassicGroup) -> None:
        members = group.members
        members.pending_sync.update(members.by_id)
        for member in members.by_id.values():
            parked = members.park_join(member, None)
            if parked is not None:
                is_leader = member.member_id == members.leader_id
                answer = group.joined(member.member_id, lists_members=is_leader)
                self.parked.answer(parked, answer)
            member.is_new = False
            member.keep_alive()

    def _await_joins(self, group: ClassicGroup, delay_ms: int) -> None:
        """Wait until all members have joined; after `delay_ms` go on without the absent ones."""
        self._begin_delayed_join(group, delay_ms, lambda: self._complete_join(group))

    def _begin_delayed_join(
        self, group: ClassicGroup, delay_ms: int, time_is_up: Callable[[], Result[Any]]
    ) -> None:
        self._end_delayed_join(group)
        key = (group.group_id, "join")
        purgatory = self._context.join_purgatory
        group.delayed_join = GroupOperation(self._context, purgatory, key, delay_ms, time_is_up)
        group.delayed_join.begin()

    def _end_delayed_join(self, group: ClassicGroup) -> None:
        if group.delayed_join is not None:
            group.delayed_join.end()
            group.delayed_join = None

    # The sync phase

    def sync_received(self, group: ClassicGroup, member_id: str) -> None:
        group.members.pending_sync.discard(member_id)
        if not group.members.pending_sync:
            self._end_delayed_sync(group)

    def _begin_delayed_sync(self, group: ClassicGroup) -> None:
        """Wait until all members have sent SyncGroup; remove the others when the time is up."""
        generation_id = group.generation_id

        def time_is_up() -> Result[Any]:
            assert generation_id == group.generation_id, (group.group_id, generation_id)
            return self._sync_timed_out(group)

        key = (group.group_id, "sync")
        delay_ms = group.members.rebalance_timeout_ms
        purgatory = self._context.join_purgatory
        group.delayed_sync = GroupOperation(self._context, purgatory, key, delay_ms, time_is_up)
        group.delayed_sync.begin()

    def _sync_timed_out(self, group: ClassicGroup) -> Result[Any]:
        self._end_delayed_sync(group)
        for member_id in list(group.members.pending_sync):
            _log.warning(
                "group %s removed member %s: it did not ask for its assignment in time",
                group.group_id,
                member_id,
            )
            self.remove(group, group.members.by_id[member_id])
        return self.prepare(group, "members did not ask for their assignment")

    def _end_delayed_sync(self, group: ClassicGroup) -> None:
        if group.delayed_sync is not None:
            group.delayed_sync.end()
            group.delayed_sync = None

    # Sessions

    def open_session(
        self, group: ClassicGroup, member_id: str, timeout_ms: int
    ) -> DelayedHeartbeat:
        """Open the session of a member; it expires in `timeout_ms`, unless it is kept alive."""
        session = DelayedHeartbeat(
            self._context,
            (group.group_id, member_id),
            timeout_ms,
            lambda: self._session_timed_out(group, member_id),
        )
        session.begin()
        return session

    def _session_timed_out(self, group: ClassicGroup, member_id: str) -> Result[Any]:
        """Expire a session: remove its member, and rebalance the group.

        The session continues if a heartbeat came at the last moment, or if a request of the member
        is parked.
        """
        if member_id in group.members.pending:
            _log.info("group %s forgets pending member %s", group.group_id, member_id)
            self.remove_pending(group, member_id)
            return self.maybe_complete_join(group)
        member = group.members.by_id[member_id]
        session = member.session
        assert session is not None, (group.group_id, member)
        if session.deadline_ms > self._context.monotonic_ms():
            self._context.defer(session.watch)
            return Result()
        if member.is_parked and not member.is_new:
            # The member cannot send heartbeats while its request is parked.
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
        """Remove a member; its parked requests fail with UNKNOWN_MEMBER_ID."""
        self.parked.fence(group, member, ErrorCode.UNKNOWN_MEMBER_ID, member_id="")
        group.members.remove(member)
        if member.session is not None:
            member.session.end()

    def remove_pending(self, group: ClassicGroup, member_id: str) -> None:
        group.members.pending.pop(member_id).end()

    def dissolve(self, group: ClassicGroup, code: int) -> None:
        """Kill the group: stop its timers, and answer its parked requests with `code`."""
        self._end_delayed_join(group)
        self._end_delayed_sync(group)
        for member_id in list(group.members.pending):
            self.remove_pending(group, member_id)
        for member in group.members.by_id.values():
            self.parked.fence(group, member, code, member_id=member.member_id)
            if member.session is not None:
                member.session.end()
        group.transition_to(GroupState.DEAD, self._context.wall_ms())
