"""Membership of a classic group: join, sync, heartbeat, leave.

    UNJOINED -> JOINING -> SYNCING -> STABLE, and from each back to UNJOINED or JOINING

A round begins when the member is new or somebody wants a rebalance. Before it joins, the consumer
prepares (commits, gives partitions up); the broker answers when all members have joined; the one
it calls leader decides who reads what; SyncGroup tells each its part.

`advance` is called by the user's thread inside poll; `keep_alive` by whoever is at hand, while the
user's thread is not: see `membership_duty`. Requests go to the coordinator's own connection.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client.backoff import Backoff, Retry
from embedlog.client.errors import CommitFailed
from embedlog.client.group.coordinator_lookup import LOST_COORDINATOR
from embedlog.client.group.group_offsets import CloseOptions, ConsumerGroupMetadata
from embedlog.client.group.heartbeats import Heartbeats
from embedlog.client.metadata import as_kafka_error
from embedlog.errors import error_for
from embedlog.logs import Log
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.schemas.leave_group import LeaveGroupRequest, MemberIdentity
from wire.schemas.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_log = Log("client")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from embedlog.client.consumer.consumer_parts import ConsumerParts
    from embedlog.client.group.coordinator_lookup import CoordinatorLookup
    from embedlog.errors import KafkaError
    from embedlog.pending import Pending
    from wire.schemas.join_group import JoinGroupResponse
    from wire.schemas.leave_group import LeaveGroupResponse
    from wire.schemas.sync_group import SyncGroupResponse

    class Rounds(Protocol):
        """What a member does in a rebalance besides talking to the coordinator."""

        def rejoin_reason(self) -> str:
            """Why the group should rebalance; empty for no reason."""

        def prepare(self, now_ms: int, *, is_member: bool) -> int | None:
            """Give up what must be given up before joining. Milliseconds until it can go on;
            None when it is done.
            """

        def protocols(self, generation_id: int) -> list[tuple[str, bytes]]:
            """The assignors, each with this member's subscription."""

        def elect(self, answer: JoinGroupResponse) -> dict[str, bytes] | None:
            """This member is the leader: who reads what; None while metadata is missing."""

        def complete(self, generation_id: int, protocol: str, assignment: bytes) -> None:
            """This is our part of it. May ask for another round."""

        def give_up_all(self, *, is_member: bool) -> None:
            """The user leaves the group: tell the listener."""


JOIN_EXTRA_MS = 5_000
"""How much longer than the rebalance may take its answer is waited for."""
NO_GENERATION = -1
PROTOCOL_TYPE = "consumer"
_REASON_SIZE_MAX = 255
_MEMBERS_SINCE = 3


class MemberState:
    """How far a member is."""

    UNJOINED = 0
    JOINING = 1
    """JoinGroup is sent. The broker answers when every member has joined."""
    SYNCING = 2
    """The round has its members; the assignment is being made or waited for."""
    STABLE = 3


VALID_PREVIOUS = {
    MemberState.UNJOINED: frozenset(
        (MemberState.UNJOINED, MemberState.JOINING, MemberState.SYNCING, MemberState.STABLE)
    ),
    MemberState.JOINING: frozenset((MemberState.UNJOINED, MemberState.STABLE)),
    MemberState.SYNCING: frozenset((MemberState.JOINING,)),
    MemberState.STABLE: frozenset((MemberState.SYNCING,)),
}

_RETRY_AT_ONCE = frozenset(
    (
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.MEMBER_ID_REQUIRED,
    )
)
_EXPELLED = frozenset((ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION))


class ClassicMembership:
    """One member. Its thread is the one that holds the consumer."""

    def __init__(
        self, parts: ConsumerParts, lookup: CoordinatorLookup, group_id: str, rounds: Rounds
    ) -> None:
        settings = parts.settings
        self._parts = parts
        self._lookup = lookup
        self._rounds = rounds
        self.group_id = group_id
        self.group_instance_id: str | None = settings["group.instance.id"]
        self._session_timeout_ms: int = settings["session.timeout.ms"]
        self._rebalance_timeout_ms: int = settings["max.poll.interval.ms"]
        self._retry = Retry(Backoff.of_retries(settings, parts.transport.runtime.random))
        self.state = MemberState.UNJOINED
        self.generation_id = NO_GENERATION
        self.member_id = ""
        self.protocol: str | None = None
        self._pending: Pending[Any] | None = None
        self._election: JoinGroupResponse | None = None
        """The members of the round, while this one decides and metadata is missing."""
        self._is_prepared = False
        self._reason = ""
        self.rejoin_needed = True
        self.error: KafkaError | None = None
        """What the next poll raises; the member is no longer one, or may not be."""
        self.heartbeats = Heartbeats(parts, lookup, self)

    @property
    def is_joined(self) -> bool:
        """Does the coordinator count this member in, as far as known?"""
        return self.state != MemberState.UNJOINED

    @property
    def is_waiting(self) -> bool:
        """Is the answer to a heartbeat on its way?"""
        return self.heartbeats.is_waiting

    @property
    def heartbeat_sent_ms(self) -> int | None:
        """When the last heartbeat was sent; None before the first."""
        return self.heartbeats.sent_ms

    @property
    def is_rebalancing(self) -> bool:
        """Is a round under way?"""
        return self.state in (MemberState.JOINING, MemberState.SYNCING)

    def request_rejoin(self, reason: str) -> None:
        """Join again; `reason` is for whoever reads the broker's log."""
        self.rejoin_needed = True
        self._reason = reason

    def subscription_changed(self) -> None:
        """Nothing to note: each pass compares with what was joined for."""

    def transition_to(self, state: int) -> None:
        """Enter `state`. The only place that assigns it."""
        assert self.state in VALID_PREVIOUS[state], (self.state, state)
        self.state = state

    # In the user's thread

    def polled(self, now_ms: int) -> None:
        """The user polls."""
        self.heartbeats.polled(now_ms)

    def advance(self, now_ms: int) -> int | None:
        """Go on with a round, or begin one; milliseconds until time makes more possible.

        Raises:
            KafkaError: the coordinator refuses this member for good.
            Exception: a rebalance listener's; the round is over.
        """
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        reason = self._rounds.rejoin_reason()
        if reason:
            self.request_rejoin(reason)
        if not self.rejoin_needed and not self.is_rebalancing:
            return None
        node_id = self._lookup.node_id
        if node_id is None:
            self._lookup.need()
            return None
        return self._rebalance(node_id, now_ms)

    def _rebalance(self, node_id: int, now_ms: int) -> int | None:
        if not self.is_rebalancing:
            if not self._is_prepared:
                is_member = self.generation_id != NO_GENERATION and bool(self.member_id)
                delay = self._rounds.prepare(now_ms, is_member=is_member)
                if delay is not None:
                    return delay
                self._is_prepared = True
            left = self._retry.left_ms(now_ms)
            if left:
                return left
            self._join(node_id)
        while self._pending is not None and self._pending.done():
            pending, self._pending = self._pending, None
            if self.state == MemberState.JOINING:
                self._take_join(pending, node_id, now_ms)
            else:
                self._take_sync(pending, now_ms)
        if self._election is not None:
            return self._elect(node_id, now_ms)
        return 0 if self.rejoin_needed and not self.is_rebalancing else None

    # A round

    def _join(self, node_id: int) -> None:
        self.transition_to(MemberState.JOINING)
        self._parts.count("join-total")
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in self._rounds.protocols(self.generation_id)
            ],
            reason=self._reason[:_REASON_SIZE_MAX],
        )
        self._pending = self._parts.send(
            node_id, request, timeout_ms=self._rebalance_timeout_ms + JOIN_EXTRA_MS
        )

    def _take_join(self, pending: Pending[JoinGroupResponse], node_id: int, now_ms: int) -> None:
        error = pending.error()
        if error is not None:
            self._round_failed(as_kafka_error(error), now_ms)
            return
        answer = pending.result()
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        if answer.error_code:
            where = f"joining group {self.group_id!r}"
            self._round_failed(error_for(answer.error_code, where), now_ms)
            return
        self.generation_id = answer.generation_id
        self.member_id = answer.member_id
        self.protocol = answer.protocol_name
        self.transition_to(MemberState.SYNCING)
        self.heartbeats.restart(now_ms)
        if answer.leader == answer.member_id:
            self._election = answer
        else:
            self._sync(node_id, {})

    def _elect(self, node_id: int, now_ms: int) -> int | None:
        assert self._election is not None, self
        assignments = self._rounds.elect(self._election)
        if assignments is None:
            return None
        self._election = None
        self._sync(node_id, assignments)
        return self._rebalance(node_id, now_ms)

    def _sync(self, node_id: int, assignments: dict[str, bytes]) -> None:
        self._parts.count("sync-total")
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ],
        )
        self._pending = self._parts.send(
            node_id, request, timeout_ms=self._rebalance_timeout_ms + JOIN_EXTRA_MS
        )

    def _take_sync(self, pending: Pending[SyncGroupResponse], now_ms: int) -> None:
        error = pending.error()
        if error is not None:
            self._round_failed(as_kafka_error(error), now_ms)
            return
        answer = pending.result()
        if answer.error_code:
            where = f"the assignment of group {self.group_id!r}"
            self._round_failed(error_for(answer.error_code, where), now_ms)
            return
        self._retry.succeeded()
        self.transition_to(MemberState.STABLE)
        self.heartbeats.restart(now_ms)
        self.rejoin_needed = self._is_prepared = False
        self._reason = ""
        self._parts.count("rebalance-total")
        assert self.protocol is not None, self
        _log.info(
            "member %s is in generation %d of group %s",
            self.member_id,
            self.generation_id,
            self.group_id,
        )
        self._rounds.complete(self.generation_id, self.protocol, answer.assignment)

    def _round_failed(self, error: KafkaError, now_ms: int) -> None:
        """Back to the start; at once, after a pause, or never."""
        code = error.code
        self._election = None
        was_joined = self.state == MemberState.SYNCING
        self.transition_to(MemberState.UNJOINED)
        self.rejoin_needed = True
        if code in _EXPELLED:
            self._forget(keep_id=code == ErrorCode.ILLEGAL_GENERATION)
        elif code in LOST_COORDINATOR:
            self._lookup.lost()
        if was_joined or code != ErrorCode.MEMBER_ID_REQUIRED:
            self._parts.count("failed-rebalance-total")
        if code in _RETRY_AT_ONCE:
            return
        self._retry.failed(now_ms)
        if not error.retriable:
            if code == ErrorCode.FENCED_INSTANCE_ID:
                self._forget(keep_id=False)
            raise error

    # At any time

    def keep_alive(self, now_ms: int) -> int | None:
        """Send the heartbeat that is due; leave when the user did not poll for too long.

        Milliseconds until it must be called again; never raises.
        """
        if self.state == MemberState.UNJOINED:
            return None
        if self.state == MemberState.JOINING:
            return self.heartbeats.poll_left_ms(now_ms)
        if self.heartbeats.is_poll_overdue(now_ms):
            _log.warning(
                "member %s leaves group %s: poll was not called for max.poll.interval.ms",
                self.member_id,
                self.group_id,
            )
            self.leave("consumer poll timeout has expired.")
            return None
        delay = self.heartbeats.advance(now_ms)
        return min(delay, self.heartbeats.poll_left_ms(now_ms))

    def heartbeat_refused(self, error: KafkaError, generation_id: int) -> None:
        """The coordinator answered a heartbeat, sent in `generation_id`, with an error."""
        code = error.code
        if generation_id != self.generation_id:
            return
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            if self.state == MemberState.STABLE:
                self.request_rejoin("group is already rebalancing")
        elif code in _EXPELLED:
            self.expelled(keep_id=code == ErrorCode.ILLEGAL_GENERATION)
        elif not error.retriable and code not in LOST_COORDINATOR:
            self.expelled(keep_id=False)
            self.error = error

    def expelled(self, *, keep_id: bool) -> None:
        """The group went on without this member: its partitions are lost, it joins again."""
        _log.warning("member %s was removed from group %s", self.member_id, self.group_id)
        self._abandon_round()
        self._forget(keep_id=keep_id)
        self.request_rejoin("the member was removed from the group")

    def leave(
        self, reason: str, *, even_static: bool = False
    ) -> Pending[LeaveGroupResponse] | None:
        """Leave the group; the answer, if the coordinator is told. Static members just go."""
        pending: Pending[LeaveGroupResponse] | None = None
        is_told = self.group_instance_id is None or even_static
        node_id = self._lookup.node_id
        was_in = self.is_joined or self.generation_id != NO_GENERATION
        if is_told and self.member_id and node_id is not None and was_in:
            if self._lookup.newest(ApiKey.LEAVE_GROUP) < _MEMBERS_SINCE:
                request = LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id)
            else:
                identity = MemberIdentity(
                    member_id=self.member_id,
                    group_instance_id=self.group_instance_id,
                    reason=reason[:_REASON_SIZE_MAX],
                )
                request = LeaveGroupRequest(group_id=self.group_id, members=[identity])
            pending = self._parts.send(node_id, request)
        self._abandon_round()
        self._forget(keep_id=False)
        self.request_rejoin(reason)
        return pending

    def depart(self, reason: str, operation: int) -> Pending[LeaveGroupResponse] | None:
        """The user leaves: give everything up, and tell the coordinator; its answer, then."""
        self._rounds.give_up_all(is_member=self.generation_id != NO_GENERATION)
        if operation != CloseOptions.REMAIN_IN_GROUP:
            return self.leave(reason, even_static=operation == CloseOptions.LEAVE_GROUP)
        self._abandon_round()
        self._forget(keep_id=False)
        self.rejoin_needed = True
        return None

    def _abandon_round(self) -> None:
        """Whatever is still answered to it is not for the member we will be."""
        self._pending = self._election = None
        self.transition_to(MemberState.UNJOINED)
        self._is_prepared = False

    def _forget(self, *, keep_id: bool) -> None:
        self.generation_id = NO_GENERATION
        self.protocol = None
        if not keep_id:
            self.member_id = ""

    # For commits

    def metadata(self) -> ConsumerGroupMetadata:
        """Who this is to the group."""
        return ConsumerGroupMetadata(
            self.group_id, self.generation_id, self.member_id, self.group_instance_id
        )

    def identity(self) -> ConsumerGroupMetadata:
        """As `metadata`, if the coordinator takes its commits now.

        Raises:
            RebalanceInProgress: a round is under way; poll until it is over.
            CommitFailed: this is no member.
        """
        if self.state == MemberState.STABLE:
            return self.metadata()
        if self.is_rebalancing:
            raise errors.RebalanceInProgress(
                "offsets cannot be committed while the group rebalances: poll until it is over",
            )
        raise CommitFailed("the consumer is not a member of the group: the next poll joins")

    def commit_refused(self, error: KafkaError, sent_by: ConsumerGroupMetadata) -> Exception:
        """What a refused commit means to this member."""
        is_current = (sent_by.generation_id, sent_by.member_id) == (
            self.generation_id,
            self.member_id,
        )
        if error.code == ErrorCode.REBALANCE_IN_PROGRESS:
            if is_current:
                self.request_rejoin("offset commit failed since group is already rebalancing")
            return error_for(error.code, "the group rebalances: poll, then commit again")
        if error.code == ErrorCode.FENCED_INSTANCE_ID and is_current:
            return error
        if not is_current and self.is_rebalancing:
            return errors.RebalanceInProgress("the group rebalances: poll")
        if is_current and error.code in _EXPELLED:
            self.expelled(keep_id=error.code == ErrorCode.ILLEGAL_GENERATION)
        return CommitFailed(
            "the group has gone on without this member, and its partitions are others' now: poll "
            "more often, or set a longer max.poll.interval.ms or a smaller max.poll.records"
        )
