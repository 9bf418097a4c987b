"""`ShareMembership`: a member of a share group, which sends only heartbeats (KIP-932).

    LEFT -> JOINING -> MEMBER        JOINING, MEMBER -> FENCED -> JOINING, any -> LEFT

The broker assigns partitions in its answers. A member may use an assignment at once and gives
nothing up: several members may have the same partition. Until it has a partition of each topic, a
member sends some heartbeats earlier than the broker asks for, because a group gets the partitions
of a topic a moment after the first heartbeat that names it.

The user's thread calls `advance`; the membership duty calls `keep_alive` between the user's calls.
"""

from __future__ import annotations

from embedlog.client.backoff import Backoff, Retry
from embedlog.client.consumer.group.coordinator_lookup import LOST_COORDINATOR
from embedlog.client.metadata import as_kafka_error
from embedlog.errors import error_for
from embedlog.logger import Logger
from wire.error_codes import ErrorCode
from wire.schemas.share_group_heartbeat import ShareGroupHeartbeatRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.consumer.group.coordinator_lookup import CoordinatorLookup
    from embedlog.client.share.parts import ShareParts
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.share_group_heartbeat import ShareGroupHeartbeatResponse

_log = Logger("client")
_JOIN_EPOCH = 0
_LEAVE_EPOCH = -1
_FIRST_INTERVAL_MS = 5_000
"""Used until the broker has named its interval."""
_EARLY_MS = 50
_EARLY_MAX_MS = 500
"""The first pause before an early heartbeat, and the longest; each is twice the one before."""
_EARLY_COUNT_MAX = 25
"""Number of early heartbeats after a change of the subscription: they take ten seconds."""


class ShareMemberState:
    """The states of a member of a share group."""

    LEFT = 0
    JOINING = 1
    """The broker has not answered the first heartbeat yet."""
    MEMBER = 2
    FENCED = 3
    """The group removed this member: it joins again with the same id."""


_S = ShareMemberState
_ACTIVE = frozenset((_S.JOINING, _S.MEMBER))
VALID_PREVIOUS = {
    _S.LEFT: frozenset(range(4)),
    _S.JOINING: frozenset((_S.LEFT, _S.FENCED)),
    _S.MEMBER: frozenset((_S.JOINING,)),
    _S.FENCED: _ACTIVE,
}

_FENCED = frozenset((ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH))


class ShareMembership:
    """The membership of one share consumer. Used by the thread that holds the consumer."""

    def __init__(self, parts: ShareParts, lookup: CoordinatorLookup) -> None:
        self._parts = parts
        self._lookup = lookup
        self._assignment = parts.assignment
        self._retry = Retry(Backoff.of_retries(parts.settings, parts.transport.runtime.random))
        self.state = ShareMemberState.LEFT
        self.member_epoch = _JOIN_EPOCH
        self.error: KafkaError | None = None
        """The error that the next poll raises."""
        self.heartbeat_sent_ms: int | None = None
        self.interval_ms = _FIRST_INTERVAL_MS
        self._early_count = 0
        self._next_ms = 0
        self._polled_ms = 0
        self._pending: Pending[ShareGroupHeartbeatResponse] | None = None
        self._known: tuple[str, ...] | None = None
        """The topics that the coordinator knows from an answered heartbeat; None if uncertain."""
        self._told: tuple[str, ...] | None = None
        """The topics that it will know once it has answered the last heartbeat."""

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

    # In the user's thread

    def polled(self, now_ms: int) -> None:
        self._polled_ms = now_ms

    def advance(self, now_ms: int) -> int:
        """Join the group if necessary, and send a heartbeat that is due.

        Returns milliseconds to the next step. Raises the error with which the group refused.
        """
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        if not self.is_joined:
            self.transition_to(ShareMemberState.JOINING)
            self.member_epoch = _JOIN_EPOCH
            self._known = None  # the coordinator may know none of the topics
        delay = self._beat(now_ms)
        return delay if self.error is None and self.is_joined else 0

    # Heartbeats

    def keep_alive(self, now_ms: int) -> int | None:
        """Send a heartbeat that is due, or leave if the user has not polled for too long.

        Returns milliseconds to the next step; None if the consumer is no member.
        """
        if not self.is_joined:
            return None
        settings = self._parts.settings
        overdue_ms: int = now_ms - self._polled_ms - settings["max.poll.interval.ms"]
        if overdue_ms > 0:
            _log.warning(
                "member %s leaves share group %s: poll was not called for max.poll.interval.ms",
                self._parts.member_id,
                settings["group.id"],
            )
            self.leave()
            return None
        return min(self._beat(now_ms), 1 - overdue_ms)

    def _beat(self, now_ms: int) -> int:
        """Take the answer, send a heartbeat if it is due; return milliseconds to the next step."""
        self._take_arrived(now_ms)
        if not self.is_joined:
            return 0
        left = self._retry.left_ms(now_ms)
        is_urgent = self._known != self._assignment.topics
        if self._pending is None and (is_urgent or now_ms >= self._next_ms) and not left:
            node_id = self._lookup.node_id
            if node_id is None:
                self._lookup.need()
                return self.interval_ms
            self._send(node_id, now_ms)
            self._take_arrived(now_ms)
            left = self._retry.left_ms(now_ms)
        if self._pending is not None:
            return self.interval_ms
        is_urgent = self._known != self._assignment.topics  # or the heartbeat has failed
        return left if is_urgent else max(left, self._next_ms - now_ms, 0)

    def _send(self, node_id: int, now_ms: int) -> None:
        self.heartbeat_sent_ms = now_ms
        self._next_ms = now_ms + self.interval_ms
        self._parts.counts["heartbeat-total"] += 1
        self._told = topics = self._assignment.topics
        if topics != self._known:
            self._early_count = 0
        joins = self.member_epoch == _JOIN_EPOCH
        request = ShareGroupHeartbeatRequest(
            group_id=self._parts.settings["group.id"],
            member_id=self._parts.member_id,
            member_epoch=self.member_epoch,
            rack_id=(self._parts.settings["client.rack"] or None) if joins else None,
            subscribed_topic_names=list(topics) if joins or self._known != topics else None,
        )
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
        self._known = self._told
        self.member_epoch = answer.member_epoch
        self.interval_ms = answer.heartbeat_interval_ms
        self.transition_to(ShareMemberState.MEMBER)
        if answer.assignment is not None:
            self._parts.counts["rebalance-total"] += 1
            self._assignment.set(answer.assignment.topic_partitions)
        self._next_ms = now_ms + self._pause_ms()

    def _pause_ms(self) -> int:
        """Return the time to the next heartbeat: early while a topic has no partition."""
        if self._early_count >= _EARLY_COUNT_MAX or self._assignment.has_all_topics:
            return self.interval_ms
        pause_ms = min(_EARLY_MS << self._early_count, _EARLY_MAX_MS, self.interval_ms)
        self._early_count += 1
        return pause_ms

    def _refused(self, error: KafkaError, now_ms: int) -> None:
        self._known = None
        group_id = self._parts.settings["group.id"]
        is_deleted = error.code == ErrorCode.GROUP_ID_NOT_FOUND and self.member_epoch > 0
        if error.code in _FENCED or is_deleted:
            _log.warning("member %s was removed from %s", self._parts.member_id, group_id)
            self._fence()
        elif error.retriable or error.code in LOST_COORDINATOR:
            self._retry.failed(now_ms)
            if error.code in LOST_COORDINATOR:
                self._lookup.lost()
        else:
            self._fence()
            self.error = error

    def _fence(self) -> None:
        self._assignment.clear()
        self.transition_to(ShareMemberState.FENCED)

    # Leaving

    def leave(self) -> Pending[ShareGroupHeartbeatResponse] | None:
        """Leave because of a time-out; the next poll joins again."""
        answer = self._send_leave()
        self._fence()
        return answer

    def depart(self) -> Pending[ShareGroupHeartbeatResponse] | None:
        """Leave because the user says so; return the answer if there will be one."""
        self.error = None  # it was about this membership
        answer = self._send_leave() if self.is_joined else None
        self._assignment.clear()
        self.transition_to(ShareMemberState.LEFT)
        return answer

    def _send_leave(self) -> Pending[ShareGroupHeartbeatResponse] | None:
        node_id = self._lookup.node_id
        was_told, self._told, self._pending = self._told, None, None
        if node_id is None or (self.member_epoch == _JOIN_EPOCH and was_told is None):
            return None
        request = ShareGroupHeartbeatRequest(
            group_id=self._parts.settings["group.id"],
            member_id=self._parts.member_id,
            member_epoch=_LEAVE_EPOCH,
            subscribed_topic_names=[],
        )
        return self._parts.send(node_id, request)
