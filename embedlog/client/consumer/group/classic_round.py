"""A rebalance of a classic group, as one member goes through it: join, then sync.

    UNJOINED -> JOINING -> SYNCING -> STABLE, and from each back to UNJOINED or JOINING

A round begins when the member is new or somebody wants a rebalance. Before it joins, the consumer
prepares (commits, gives partitions up); the broker answers when all members have joined; the one
it calls leader decides who reads what; SyncGroup tells each its part.
"""

from __future__ import annotations

from embedlog.client.backoff import Backoff, Retry
from embedlog.client.consumer.group.coordinator_lookup import LOST_COORDINATOR
from embedlog.client.consumer.group.embedded_protocol import PROTOCOL_TYPE
from embedlog.client.metadata import as_kafka_error
from embedlog.errors import error_for
from embedlog.logger import Logger
from wire.error_codes import ErrorCode
from wire.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.schemas.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_log = Logger("client")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.consumer.group.classic_identity import ClassicIdentity
    from embedlog.client.consumer.group.classic_rebalance import ClassicRebalance
    from embedlog.client.consumer.group.coordinator_lookup import CoordinatorLookup
    from embedlog.client.consumer.group.heartbeats import Heartbeats
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.join_group import JoinGroupResponse
    from wire.schemas.sync_group import SyncGroupResponse


JOIN_EXTRA_MS = 5_000
"""How much longer than the rebalance may take its answer is waited for."""
REASON_SIZE_MAX = 255


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
EXPELLED = frozenset((ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION))
"""The group goes on without this member."""


class ClassicRound:
    """How far the member `me` is. Used by the thread that holds the consumer."""

    __slots__ = (
        "_election",
        "_heartbeats",
        "_is_prepared",
        "_lookup",
        "_me",
        "_parts",
        "_pending",
        "_reason",
        "_rebalance",
        "_rebalance_timeout_ms",
        "_retry",
        "_session_timeout_ms",
        "is_wanted",
        "state",
    )

    def __init__(
        self,
        parts: ConsumerParts,
        lookup: CoordinatorLookup,
        me: ClassicIdentity,
        rebalance: ClassicRebalance,
        heartbeats: Heartbeats,
    ) -> None:
        settings = parts.settings
        self._parts = parts
        self._lookup = lookup
        self._me = me
        self._rebalance = rebalance
        self._heartbeats = heartbeats
        self._session_timeout_ms: int = settings["session.timeout.ms"]
        self._rebalance_timeout_ms: int = settings["max.poll.interval.ms"]
        self._retry = Retry(Backoff.of_retries(settings, parts.transport.runtime.random))
        self.state = MemberState.UNJOINED
        self.is_wanted = True
        self._reason = ""
        self._is_prepared = False
        self._pending: Pending[Any] | None = None
        self._election: JoinGroupResponse | None = None
        """The members of the round, while this one decides and metadata is missing."""

    @property
    def is_under_way(self) -> bool:
        """Has it begun, and is not over?"""
        return self.state in (MemberState.JOINING, MemberState.SYNCING)

    def want(self, reason: str) -> None:
        """Begin one; `reason` is for whoever reads the broker's log."""
        self.is_wanted = True
        self._reason = reason

    def transition_to(self, state: int) -> None:
        """Enter `state`. The only place that assigns it."""
        assert self.state in VALID_PREVIOUS[state], (self.state, state)
        self.state = state

    def abandon(self) -> None:
        """Whatever is still answered to it is not for the member we will be."""
        self._pending = self._election = None
        self.transition_to(MemberState.UNJOINED)
        self._is_prepared = False

    def advance(self, node_id: int, now_ms: int) -> int | None:
        """Go on with it, or begin it; milliseconds until time makes more possible.

        Raises:
            KafkaError: the coordinator refuses this member for good.
            Exception: a rebalance listener's; the round is over.
        """
        if not self.is_under_way:
            if not self._is_prepared:
                delay = self._rebalance.prepare(now_ms, is_member=self._me.is_member)
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
        return 0 if self.is_wanted and not self.is_under_way else None

    def _join(self, node_id: int) -> None:
        self.transition_to(MemberState.JOINING)
        self._parts.counts["join-total"] += 1
        me = self._me
        request = JoinGroupRequest(
            group_id=me.group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=me.member_id,
            group_instance_id=me.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in self._rebalance.protocols(me.generation_id)
            ],
            reason=self._reason[:REASON_SIZE_MAX],
        )
        self._pending = self._parts.send(
            node_id, request, timeout_ms=self._rebalance_timeout_ms + JOIN_EXTRA_MS
        )

    def _take_join(self, pending: Pending[JoinGroupResponse], node_id: int, now_ms: int) -> None:
        error = pending.error()
        if error is not None:
            self._failed(as_kafka_error(error), now_ms)
            return
        answer = pending.result()
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._me.member_id = answer.member_id
        if answer.error_code:
            where = f"joining group {self._me.group_id!r}"
            self._failed(error_for(answer.error_code, where), now_ms)
            return
        self._me.accept(answer)
        self.transition_to(MemberState.SYNCING)
        self._heartbeats.restart(now_ms)
        if answer.leader == answer.member_id:
            self._election = answer
        else:
            self._sync(node_id, {})

    def _elect(self, node_id: int, now_ms: int) -> int | None:
        assert self._election is not None, self
        assignments = self._rebalance.elect(self._election)
        if assignments is None:
            return None
        self._election = None
        self._sync(node_id, assignments)
        return self.advance(node_id, now_ms)

    def _sync(self, node_id: int, assignments: dict[str, bytes]) -> None:
        self._parts.counts["sync-total"] += 1
        me = self._me
        request = SyncGroupRequest(
            group_id=me.group_id,
            generation_id=me.generation_id,
            member_id=me.member_id,
            group_instance_id=me.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=me.protocol,
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
            self._failed(as_kafka_error(error), now_ms)
            return
        answer = pending.result()
        me = self._me
        if answer.error_code:
            where = f"the assignment of group {me.group_id!r}"
            self._failed(error_for(answer.error_code, where), now_ms)
            return
        self._retry.succeeded()
        self.transition_to(MemberState.STABLE)
        self._heartbeats.restart(now_ms)
        self.is_wanted = self._is_prepared = False
        self._reason = ""
        self._parts.counts["rebalance-total"] += 1
        assert me.protocol is not None, self
        _log.info(
            "member %s is in generation %d of group %s", me.member_id, me.generation_id, me.group_id
        )
        self._rebalance.complete(me.generation_id, me.protocol, answer.assignment, self.want)

    def _failed(self, error: KafkaError, now_ms: int) -> None:
        """Back to the start; at once, after a pause, or never."""
        code = error.code
        self._election = None
        was_joined = self.state == MemberState.SYNCING
        self.transition_to(MemberState.UNJOINED)
        self.is_wanted = True
        if code in EXPELLED:
            self._me.forget(keep_id=code == ErrorCode.ILLEGAL_GENERATION)
        elif code in LOST_COORDINATOR:
            self._lookup.lost()
        if was_joined or code != ErrorCode.MEMBER_ID_REQUIRED:
            self._parts.counts["failed-rebalance-total"] += 1
        if code in _RETRY_AT_ONCE:
            return
        self._retry.failed(now_ms)
        if not error.retriable:
            if code == ErrorCode.FENCED_INSTANCE_ID:
                self._me.forget(keep_id=False)
            raise error
