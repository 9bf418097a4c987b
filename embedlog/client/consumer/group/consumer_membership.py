"""`ConsumerMembership`: a member of the consumer protocol (KIP-848), which sends only heartbeats.

    LEFT -> JOINING -> MEMBER <-> RECONCILING        any -> FENCED -> JOINING, any -> LEFT

The broker assigns the partitions: its answer to a heartbeat may carry a new target. The user's
thread reconciles inside poll: it commits, gives up and takes over partitions until it owns the
target, and calls the listener. The next heartbeat reports the owned partitions. A heartbeat has
only the fields that changed since the last answered heartbeat.

The user's thread calls `advance`; the membership duty calls `keep_alive` between the user's calls.
"""

from __future__ import annotations

from embedlog.client.backoff import Backoff, Retry
from embedlog.client.consumer.group.coordinator_lookup import LOST_COORDINATOR
from embedlog.client.consumer.group.group_offsets import CloseOptions, ConsumerGroupMetadata
from embedlog.client.consumer.group.heartbeat_news import HeartbeatNews
from embedlog.client.errors import CommitFailed
from embedlog.client.metadata import as_kafka_error
from embedlog.common import uuid_to_text
from embedlog.errors import error_for
from embedlog.logger import Logger
from wire.error_codes import ErrorCode
from wire.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_log = Logger("client")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.consumer.group.coordinator_lookup import CoordinatorLookup
    from embedlog.client.consumer.group.membership_duty import MembershipDuty
    from embedlog.client.consumer.group.reconciliation import Reconciliation
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

_JOIN_EPOCH = 0
_LEAVE_EPOCH = -1
_STATIC_LEAVE_EPOCH = -2
"""With this epoch a static member leaves for a while: its partitions stay reserved."""


class ConsumerMemberState:
    """The states of a member of the consumer protocol."""

    LEFT = 0
    JOINING = 1
    """The broker has not answered the first heartbeat yet."""
    MEMBER = 2
    RECONCILING = 3
    """The member's partitions differ from the target that the broker set."""
    FENCED = 4
    """The group removed this member: it loses all partitions and joins again."""


_S = ConsumerMemberState
_ACTIVE = frozenset((_S.JOINING, _S.MEMBER, _S.RECONCILING))
VALID_PREVIOUS = {
    _S.LEFT: frozenset(range(5)),
    _S.JOINING: frozenset((_S.LEFT, _S.FENCED)),
    _S.MEMBER: frozenset((_S.JOINING, _S.RECONCILING)),
    _S.RECONCILING: frozenset((_S.JOINING, _S.MEMBER)),
    _S.FENCED: _ACTIVE,
}

_FENCED = frozenset((ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH))


class ConsumerMembership:
    """A `GroupMember` of the consumer protocol. Used by the thread that holds the consumer."""

    def __init__(
        self,
        parts: ConsumerParts,
        lookup: CoordinatorLookup,
        reconciliation: Reconciliation,
        duty: MembershipDuty,
    ) -> None:
        settings = parts.settings
        self._parts = parts
        self._lookup = lookup
        self._duty = duty
        self._retry = Retry(Backoff.of_retries(settings, parts.transport.runtime.random))
        self.state = ConsumerMemberState.LEFT
        self.member_id = uuid_to_text(parts.transport.runtime.random.uuid())
        self.member_epoch = _JOIN_EPOCH
        self.error: KafkaError | None = None
        """The error that the next poll raises."""
        self.heartbeat_sent_ms: int | None = None
        self._interval_ms: int = parts.heartbeat_interval_ms
        self._next_ms = 0
        self._polled_ms = 0
        self._pending: Pending[ConsumerGroupHeartbeatResponse] | None = None
        self._news = HeartbeatNews(parts)
        self._reconciliation = reconciliation

    @property
    def is_joined(self) -> bool:
        return self.state in _ACTIVE

    @property
    def is_waiting(self) -> bool:
        return self._pending is not None

    def transition_to(self, state: int) -> None:
        """Enter `state`. All changes of the state go through this method."""
        if state == self.state:
            return
        assert self.state in VALID_PREVIOUS[state], (self.state, state)
        self.state = state

    def subscription_changed(self) -> None:
        """Report the new subscription in a heartbeat at once, not only after the interval."""
        self._news.is_urgent = True

    def request_rejoin(self, reason: str) -> None:
        """Do nothing: in this protocol only the broker decides when to rebalance."""

    # In the user's thread

    def polled(self, now_ms: int) -> None:
        self._polled_ms = now_ms

    def advance(self, now_ms: int) -> int | None:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        if self.state == ConsumerMemberState.FENCED:
            self._reconciliation.give_up_all(is_member=False)
        if self.state in (ConsumerMemberState.LEFT, ConsumerMemberState.FENCED):
            self.transition_to(ConsumerMemberState.JOINING)
            self.member_epoch = _JOIN_EPOCH
            self._reconciliation.abandon()
            self._news.doubt()
        delay = self._beat(now_ms)
        if self.state == ConsumerMemberState.RECONCILING:
            left = self._reconciliation.advance(now_ms)
            if left is not None:
                return min(delay, left)
            self._news.is_urgent = True
            if not self._reconciliation.is_over:
                return min(delay, self._interval_ms)
            self.transition_to(ConsumerMemberState.MEMBER)
            return self._beat(now_ms)
        return 0 if self.error is not None or not self.is_joined else delay

    # Heartbeats

    def keep_alive(self, now_ms: int) -> int | None:
        if not self.is_joined:
            return None
        settings = self._parts.settings
        overdue_ms: int = now_ms - self._polled_ms - settings["max.poll.interval.ms"]
        if overdue_ms > 0:
            _log.warning(
                "member %s leaves group %s: poll was not called for max.poll.interval.ms",
                self.member_id,
                settings["group.id"],
            )
            self.leave("consumer poll timeout has expired.")
            return None
        return min(self._beat(now_ms), 1 - overdue_ms)

    def _beat(self, now_ms: int) -> int:
        """Take the answer, send a heartbeat if it is due; return milliseconds to the next step."""
        self._take_arrived(now_ms)
        if not self.is_joined:
            return 0
        left = self._retry.left_ms(now_ms)
        is_due = self._news.is_urgent or now_ms >= self._next_ms
        if self._pending is None and is_due and not left:
            node_id = self._lookup.node_id
            if node_id is None:
                self._lookup.need()
                return self._interval_ms
            self._send(node_id, now_ms)
            self._take_arrived(now_ms)
        if self._pending is not None:
            return self._interval_ms
        return left if self._news.is_urgent else max(self._next_ms - now_ms, left, 0)

    def _send(self, node_id: int, now_ms: int) -> None:
        self.heartbeat_sent_ms = now_ms
        self._next_ms = now_ms + self._interval_ms
        self._parts.counts["heartbeat-total"] += 1
        news = self._news.take(owns=self.member_epoch != _JOIN_EPOCH)
        request = self._request(self.member_epoch, news)
        self._pending = self._parts.send(node_id, request)

    def _take_arrived(self, now_ms: int) -> None:
        if self._pending is None or not self._pending.done():
            return
        pending, self._pending = self._pending, None
        error = pending.error()
        if error is not None:
            self._refused(as_kafka_error(error), now_ms)
            return
        answer = pending.result()
        if answer.error_code:
            self._refused(error_for(answer.error_code, answer.error_message), now_ms)
            return
        self._retry.succeeded()
        self._news.answered()
        self.member_epoch = answer.member_epoch
        self._interval_ms = answer.heartbeat_interval_ms
        self._duty.beat_every(self._interval_ms)
        self._next_ms = now_ms + self._interval_ms
        if answer.assignment is not None:
            self._reconciliation.begin(answer.assignment)
            self.transition_to(ConsumerMemberState.RECONCILING)
        elif self.state == ConsumerMemberState.JOINING:
            self.transition_to(ConsumerMemberState.MEMBER)

    def _refused(self, error: KafkaError, now_ms: int) -> None:
        self._news.doubt()
        if error.code in _FENCED:
            group_id = self._parts.settings["group.id"]
            _log.warning("member %s was removed from group %s", self.member_id, group_id)
            self.transition_to(ConsumerMemberState.FENCED)
        elif error.retriable or error.code in LOST_COORDINATOR:
            self._retry.failed(now_ms)
            if error.code in LOST_COORDINATOR:
                self._lookup.lost()
        else:
            self.transition_to(ConsumerMemberState.FENCED)
            self.error = error

    # Leaving

    def leave(self, reason: str) -> Pending[ConsumerGroupHeartbeatResponse] | None:
        """Leave without a word to the user's listener; the next poll joins again."""
        is_static = self._parts.settings["group.instance.id"] is not None
        answer = self._send_leave(is_final=not is_static)
        self.transition_to(ConsumerMemberState.FENCED)
        return answer

    def depart(self, reason: str, operation: int) -> Pending[ConsumerGroupHeartbeatResponse] | None:
        self.error = None  # it was about this membership
        is_member = self.state != ConsumerMemberState.FENCED and self.member_epoch != _JOIN_EPOCH
        self._reconciliation.give_up_all(is_member=is_member)
        is_static = self._parts.settings["group.instance.id"] is not None
        answer = None
        if self.is_joined and (is_static or operation != CloseOptions.REMAIN_IN_GROUP):
            is_final = not is_static or operation == CloseOptions.LEAVE_GROUP
            answer = self._send_leave(is_final=is_final)
        self.transition_to(ConsumerMemberState.LEFT)
        return answer

    def _send_leave(self, *, is_final: bool) -> Pending[ConsumerGroupHeartbeatResponse] | None:
        node_id = self._lookup.node_id
        self._pending = None
        self._reconciliation.abandon()
        if node_id is None or (self.member_epoch == _JOIN_EPOCH and not self._news.telling):
            return None
        request = self._request(_LEAVE_EPOCH if is_final else _STATIC_LEAVE_EPOCH, {})
        return self._parts.send(node_id, request)

    def _request(self, member_epoch: int, news: dict[str, Any]) -> ConsumerGroupHeartbeatRequest:
        settings = self._parts.settings
        return ConsumerGroupHeartbeatRequest(
            group_id=settings["group.id"],
            member_id=self.member_id,
            member_epoch=member_epoch,
            instance_id=settings["group.instance.id"],
            **news,
        )

    # For commits

    def metadata(self) -> ConsumerGroupMetadata:
        """Return the member's identity. Its epoch is -1 if the consumer is no member."""
        is_member = self.state in (ConsumerMemberState.MEMBER, ConsumerMemberState.RECONCILING)
        settings = self._parts.settings
        return ConsumerGroupMetadata(
            settings["group.id"],
            self.member_epoch if is_member else -1,
            self.member_id if is_member else "",
            settings["group.instance.id"],
        )

    def identity(self) -> ConsumerGroupMetadata:
        found = self.metadata()
        if found.generation_id < 0:
            raise CommitFailed("the consumer is not a member of the group: the next polls join")
        return found

    def commit_refused(self, error: KafkaError, sent_by: ConsumerGroupMetadata) -> Exception:
        """Return the exception for a refused commit. The next heartbeat updates the membership."""
        if error.code == ErrorCode.FENCED_INSTANCE_ID:
            return error
        return CommitFailed(
            "the group has gone on without this member and reassigned its partitions: poll more "
            "often, or set a longer max.poll.interval.ms or a smaller max.poll.records"
        )
