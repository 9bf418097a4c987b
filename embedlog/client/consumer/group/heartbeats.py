"""`Heartbeats`: the heartbeats of a classic member, and the three settings that time them.

heartbeat.interval.ms   time between two heartbeats
session.timeout.ms      without an answer for this long, the coordinator is looked up again
max.poll.interval.ms    without a poll for this long, the member leaves
"""

from __future__ import annotations

from embedlog.client.consumer.group.coordinator_lookup import LOST_COORDINATOR
from embedlog.client.metadata import as_kafka_error
from embedlog.errors import error_for
from wire.schemas.heartbeat import HeartbeatRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.client.consumer.group.classic_identity import ClassicIdentity
    from embedlog.client.consumer.group.coordinator_lookup import CoordinatorLookup
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.heartbeat import HeartbeatResponse


class Heartbeats:
    """Sends the heartbeats; at most one is open. Times are monotonic milliseconds."""

    def __init__(
        self,
        parts: ConsumerParts,
        lookup: CoordinatorLookup,
        me: ClassicIdentity,
        refused: Callable[[KafkaError, int], None],
    ) -> None:
        """`refused(error, generation_id)` is called for each failed heartbeat."""
        settings = parts.settings
        self._parts = parts
        self._lookup = lookup
        self._me = me
        self._refused = refused
        self._interval_ms: int = parts.heartbeat_interval_ms
        self._session_timeout_ms: int = settings["session.timeout.ms"]
        self._poll_interval_ms: int = settings["max.poll.interval.ms"]
        self._backoff_ms: int = settings["retry.backoff.ms"]
        self._pending: Pending[HeartbeatResponse] | None = None
        self._generation_id = -1
        self._next_ms = 0
        self._heard_ms = 0
        self._polled_ms = 0
        self._advanced_ms = 0
        self.sent_ms: int | None = None

    @property
    def is_waiting(self) -> bool:
        return self._pending is not None

    def polled(self, now_ms: int) -> None:
        self._polled_ms = now_ms

    def restart(self, now_ms: int) -> None:
        """Start a new interval: the coordinator has just answered another request."""
        self._pending = None
        self._heard_ms = now_ms
        self._next_ms = now_ms + self._interval_ms

    def is_poll_overdue(self, now_ms: int) -> bool:
        return now_ms - self._polled_ms > self._poll_interval_ms

    def poll_left_ms(self, now_ms: int) -> int:
        return max(self._polled_ms + self._poll_interval_ms + 1 - now_ms, 0)

    def advance(self, now_ms: int) -> int:
        """Send a heartbeat if it is due, take the answer; return milliseconds to the next step."""
        self._take_arrived(now_ms)
        if now_ms - self._advanced_ms > self._session_timeout_ms - self._interval_ms:
            # No thread drove this member for long: the coordinator had nothing to answer.
            self._heard_ms = now_ms
        self._advanced_ms = now_ms
        node_id = self._lookup.node_id
        if node_id is not None and now_ms - self._heard_ms > self._session_timeout_ms:
            # The coordinator does not answer; perhaps it is another node by now.
            self._lookup.lost()
            self._pending = node_id = None
            self._heard_ms = now_ms
        if node_id is None:
            self._lookup.need()
            return self._backoff_ms
        if self._pending is None and now_ms >= self._next_ms:
            self._send(node_id, now_ms)
            self._take_arrived(now_ms)
        if self._pending is not None:
            return self._heard_ms + self._session_timeout_ms + 1 - now_ms
        return max(self._next_ms - now_ms, 0)

    def _send(self, node_id: int, now_ms: int) -> None:
        me = self._me
        self._next_ms = now_ms + self._interval_ms
        self._generation_id = me.generation_id
        self.sent_ms = now_ms
        self._parts.counts["heartbeat-total"] += 1
        self._pending = self._parts.send(
            node_id,
            HeartbeatRequest(
                group_id=me.group_id,
                generation_id=me.generation_id,
                member_id=me.member_id,
                group_instance_id=me.group_instance_id,
            ),
        )

    def _take_arrived(self, now_ms: int) -> None:
        if self._pending is None or not self._pending.done():
            return
        pending, self._pending = self._pending, None
        error = pending.error()
        if error is None:
            self._heard_ms = now_ms
            code = pending.result().error_code
            if not code:
                return
            error = error_for(code, f"heartbeat of group {self._me.group_id!r}")
        refusal = as_kafka_error(error)
        if refusal.code in LOST_COORDINATOR:
            self._lookup.lost()
        if refusal.retriable:
            self._next_ms = min(self._next_ms, now_ms + self._backoff_ms)
        self._refused(refusal, self._generation_id)
