"""`ClassicRound`: one member's requests in a rebalance of a classic group, JoinGroup and SyncGroup.

    UNJOINED -> JOINING -> SYNCING -> STABLE, and from each back to UNJOINED or JOINING

A round begins when the member is new or a member wants a rebalance. The consumer first prepares: it
commits and gives up partitions. The broker answers JoinGroup when all members have joined, and
names a leader. The leader assigns the partitions; SyncGroup brings each member its partitions.
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
"""JoinGroup and SyncGroup time out this long after the rebalance timeout."""
REASON_SIZE_MAX = 255


class MemberState:
    """The states of a classic member."""

    UNJOINED = 0
    JOINING = 1
    """JoinGroup was sent. The broker answers when every member has joined."""
    SYNCING = 2
    """All members have joined; the leader computes the assignment, the others wait for it."""
    STABLE = 3


VALID_PREVIOUS = {
    MemberState.UNJOINED: frozenset(range(4)),
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
"""With these errors the coordinator reports that the group removed this member."""


class ClassicRound:
    """The rebalance rounds of the member `me`. Used by the thread that holds the consumer."""

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
        """The answer to JoinGroup, while this leader waits for the topics' metadata; else None."""

    @property
    def is_under_way(self) -> bool:
        return self.state in (MemberState.JOINING, MemberState.SYNCING)

    def want(self, reason: str) -> None:
        """Request a round; the broker logs the reason."""
        self.is_wanted = True
        self._reason = reason

    def transition_to(self, state: int) -> None:
        """Enter `state`. All changes of the state go through this method."""
        assert self.state in VALID_PREVIOUS[state], (self.state, state)
        self.state = state

    def abandon(self) -> None:
        """End the round. Ignore answers that are under way, because the membership has ended."""
        self._pending = self._election = None
        self.transition_to(MemberState.UNJOINED)
        self._is_prepared = False

    def advance(self, node_id: int, now_ms: int) -> int | None:
        """Begin or continue the round; return milliseconds to the next useful pass, if known.

        Raises:
            KafkaError: the coordinator refused this member, and a retry cannot help.
            Exception: a rebalance listener raised it; the round is over.
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
            error = pending.error()
            if error is not None:
                self._failed(as_kafka_error(error), now_ms)
            elif self.state == MemberState.JOINING:
                self._take_join(pending.result(), node_id, now_ms)
            else:
                self._take_sync(pending.result(), now_ms)
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

    def _take_join(self, answer: JoinGroupResponse, node_id: int, now_ms: int) -> None:
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

    def _take_sync(self, answer: SyncGroupResponse, now_ms: int) -> None:
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
        """Return to UNJOINED, and retry at once or after a pause; raise if a retry cannot help."""
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
