"""Membership of a group of the consumer protocol (KIP-848): the heartbeat does it all.

    LEFT -> JOINING -> MEMBER <-> RECONCILING        any -> FENCED -> JOINING, any -> LEFT

The broker assigns. An answer that carries an assignment sets the target; the user's thread goes
there inside poll (commits, gives up, takes over, calls the listener), and the next heartbeat says
what is owned. Only what has changed since the last answered heartbeat is sent.

`advance` is called by the user's thread, `keep_alive` by whoever is at hand meanwhile.
"""

from __future__ import annotations

from embedlog.client.backoff import Backoff, Retry
from embedlog.client.consumer.subscription_state import SubscriptionType
from embedlog.client.errors import CommitFailed
from embedlog.client.group.coordinator_lookup import LOST_COORDINATOR
from embedlog.client.group.group_offsets import CloseOptions, ConsumerGroupMetadata
from embedlog.client.metadata import as_kafka_error
from embedlog.common import TopicPartition, uuid_to_text
from embedlog.errors import error_for
from embedlog.logs import Log
from wire.error_codes import ErrorCode
from wire.schemas.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

_log = Log("client")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.group.member import Group
    from embedlog.client.group.offset_commits import Commit
    from embedlog.errors import KafkaError
    from embedlog.pending import Pending
    from wire.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

_JOIN_EPOCH = 0
_LEAVE_EPOCH = -1
_STATIC_LEAVE_EPOCH = -2
"""A static member goes and will be back: its partitions wait for it."""


class ConsumerMemberState:
    """How far a member is."""

    LEFT = 0
    JOINING = 1
    """The next heartbeat, or the one under way, is the first."""
    MEMBER = 2
    RECONCILING = 3
    """The target differs from what is read."""
    FENCED = 4
    """The group went on without this member: everything is lost, and it joins anew."""


VALID_PREVIOUS = {
    ConsumerMemberState.LEFT: frozenset(range(5)),
    ConsumerMemberState.JOINING: frozenset((ConsumerMemberState.LEFT, ConsumerMemberState.FENCED)),
    ConsumerMemberState.MEMBER: frozenset(
        (ConsumerMemberState.JOINING, ConsumerMemberState.RECONCILING)
    ),
    ConsumerMemberState.RECONCILING: frozenset(
        (ConsumerMemberState.JOINING, ConsumerMemberState.MEMBER)
    ),
    ConsumerMemberState.FENCED: frozenset(
        (
            ConsumerMemberState.JOINING,
            ConsumerMemberState.MEMBER,
            ConsumerMemberState.RECONCILING,
        )
    ),
}

_FENCED = frozenset((ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH))
_ACTIVE = frozenset(
    (
        ConsumerMemberState.JOINING,
        ConsumerMemberState.MEMBER,
        ConsumerMemberState.RECONCILING,
    )
)


class ConsumerMembership:
    """One member. Its thread is the one that holds the consumer."""

    def __init__(self, group: Group) -> None:
        parts = group.parts
        settings = parts.settings
        self._group = group
        self._parts = parts
        self._subscription = parts.subscription
        self._lookup = group.lookup
        self._instance_id: str | None = settings["group.instance.id"]
        self._poll_interval_ms: int = settings["max.poll.interval.ms"]
        self._retry = Retry(Backoff.of_retries(settings, parts.transport.runtime.random))
        self.state = ConsumerMemberState.LEFT
        self.member_id = uuid_to_text(parts.transport.runtime.random.uuid())
        self.member_epoch = _JOIN_EPOCH
        self.error: KafkaError | None = None
        """What the next poll raises."""
        self.heartbeat_sent_ms: int | None = None
        self._interval_ms: int = parts.heartbeat_interval_ms
        self._next_ms = 0
        self._polled_ms = 0
        self._pending: Pending[ConsumerGroupHeartbeatResponse] | None = None
        self._is_news = False
        """The coordinator is to hear something before the interval is over."""
        self._told: dict[str, object] = {}
        """What it has been told, by field; empty when that is in doubt."""
        self._telling: dict[str, object] = {}
        self._target: dict[bytes, list[int]] | None = None
        """The assignment to go to; None when it is reached."""
        self._commit: Commit | None = None
        self._commit_deadline = 0

    @property
    def is_joined(self) -> bool:
        """Is it, or is it becoming, a member?"""
        return self.state in _ACTIVE

    @property
    def is_waiting(self) -> bool:
        """Is the answer to a heartbeat on its way?"""
        return self._pending is not None

    def transition_to(self, state: int) -> None:
        """Enter `state`. The only place that assigns it."""
        if state == self.state:
            return
        assert self.state in VALID_PREVIOUS[state], (self.state, state)
        self.state = state

    def subscription_changed(self) -> None:
        """Tell the coordinator soon."""
        self._is_news = True

    def request_rejoin(self, reason: str) -> None:
        """In this protocol the broker alone decides when to rebalance."""

    # In the user's thread

    def polled(self, now_ms: int) -> None:
        """The user polls."""
        self._polled_ms = now_ms

    def advance(self, now_ms: int) -> int | None:
        """Join if need be, go to the target; milliseconds until time makes more possible.

        Raises:
            KafkaError: the coordinator refuses this member for good.
        """
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        if self.state == ConsumerMemberState.FENCED:
            self._give_up_lost()
        if self.state in (ConsumerMemberState.LEFT, ConsumerMemberState.FENCED):
            self._begin()
        delay = self._beat(now_ms)
        if self.state == ConsumerMemberState.RECONCILING:
            left = self._reconcile(now_ms)
            if left is None:
                return self._beat(now_ms)
            return min(delay, left)
        return 0 if self.error is not None or not self.is_joined else delay

    def _begin(self) -> None:
        self.transition_to(ConsumerMemberState.JOINING)
        self.member_epoch = _JOIN_EPOCH
        self._told = {}
        self._target = None
        self._is_news = True

    def _give_up_lost(self) -> None:
        self._abandon_commit()
        self._group.calls.lost(self._subscription.partitions)
        self._subscription.assign_from_group([])

    # Heartbeats

    def keep_alive(self, now_ms: int) -> int | None:
        """Send the heartbeat that is due; leave when the user did not poll for too long.

        Milliseconds until it must be called again, None when this is no member; never raises.
        """
        if not self.is_joined:
            return None
        overdue_ms = now_ms - self._polled_ms - self._poll_interval_ms
        if overdue_ms > 0:
            self._send_leave(is_final=self._instance_id is None)
            self.transition_to(ConsumerMemberState.FENCED)
            return None
        return min(self._beat(now_ms), 1 - overdue_ms)

    def _beat(self, now_ms: int) -> int:
        """Take the answer, send what is due; milliseconds to the next step."""
        self._take_arrived(now_ms)
        if not self.is_joined:
            return 0
        left = self._retry.left_ms(now_ms)
        is_due = self._is_news or now_ms >= self._next_ms
        if self._pending is None and is_due and not left:
            node_id = self._lookup.node_id
            if node_id is None:
                self._lookup.need()
                return self._interval_ms
            self._send(node_id, now_ms)
            self._take_arrived(now_ms)
        if self._pending is not None:
            return self._interval_ms
        return left if self._is_news else max(self._next_ms - now_ms, left, 0)

    def _send(self, node_id: int, now_ms: int) -> None:
        self.heartbeat_sent_ms = now_ms
        self._next_ms = now_ms + self._interval_ms
        self._is_news = False
        self._parts.count("heartbeat-total")
        self._telling = self._facts()
        news: dict[str, Any] = {
            key: fact for key, fact in self._telling.items() if self._told.get(key) != fact
        }
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group.group_id,
            member_id=self.member_id,
            member_epoch=self.member_epoch,
            instance_id=self._instance_id,
            **news,
        )
        self._pending = self._parts.send(node_id, request)

    def _facts(self) -> dict[str, object]:
        """What the coordinator has to know, by field."""
        subscription = self._subscription
        settings = self._parts.settings
        facts: dict[str, object] = {
            "rebalance_timeout_ms": self._poll_interval_ms,
            "subscribed_topic_names": sorted(subscription.topics),
            "topic_partitions": self._owned(),
        }
        if subscription.type == SubscriptionType.SERVER_PATTERN:
            facts["subscribed_topic_regex"] = subscription.server_pattern
        elif "subscribed_topic_regex" in self._told:
            facts["subscribed_topic_regex"] = ""
        if settings["client.rack"]:
            facts["rack_id"] = settings["client.rack"]
        if settings["group.remote.assignor"] is not None:
            facts["server_assignor"] = settings["group.remote.assignor"]
        return facts

    def _owned(self) -> list[TopicPartitions]:
        if self.member_epoch == _JOIN_EPOCH:
            return []
        by_id: dict[bytes, list[int]] = {}
        known = self._parts.metadata.topics
        for topic, number in sorted(self._subscription.partitions):
            if topic in known:
                by_id.setdefault(known[topic].topic_id, []).append(number)
        return [
            TopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in by_id.items()
        ]

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
        self._told = self._telling
        self.member_epoch = answer.member_epoch
        self._interval_ms = answer.heartbeat_interval_ms
        self._next_ms = now_ms + self._interval_ms
        if answer.assignment is not None:
            self._target = {
                each.topic_id: list(each.partitions) for each in answer.assignment.topic_partitions
            }
            self.transition_to(ConsumerMemberState.RECONCILING)
        elif self.state == ConsumerMemberState.JOINING:
            self.transition_to(ConsumerMemberState.MEMBER)

    def _refused(self, error: KafkaError, now_ms: int) -> None:
        self._told = {}  # nobody knows what the coordinator made of the last one
        self._is_news = True
        if error.code in _FENCED:
            group_id = self._group.group_id
            _log.warning("member %s was removed from group %s", self.member_id, group_id)
            self.transition_to(ConsumerMemberState.FENCED)
        elif error.retriable or error.code in LOST_COORDINATOR:
            self._retry.failed(now_ms)
            if error.code in LOST_COORDINATOR:
                self._lookup.lost()
        else:
            self.transition_to(ConsumerMemberState.FENCED)
            self.error = error

    # Reconciliation

    def _reconcile(self, now_ms: int) -> int | None:
        """Go to the target, or as far as its topics are known. Milliseconds until it can go on;
        None when what is owned is to be told.
        """
        assert self._target is not None, self
        metadata = self._parts.metadata
        names = metadata.names_by_id
        unknown = [topic_id for topic_id in self._target if topic_id not in names]
        if unknown:
            metadata.request_update()
        target = [
            TopicPartition(names[topic_id], number)
            for topic_id, numbers in self._target.items()
            if topic_id in names
            for number in numbers
        ]
        owned = list(self._subscription.partitions)
        revoked = [each for each in owned if each not in set(target)]
        left = self._commit_before(revoked, now_ms)
        if left is not None:
            return left
        added = [each for each in target if each not in set(owned)]
        if revoked:
            self._group.calls.revoked(revoked)
        self._subscription.assign_from_group(target)
        if added or revoked:
            self._parts.count("rebalance-total")
            self._group.calls.assigned(added)
        self._is_news = True
        if unknown:
            return self._interval_ms
        self._target = None
        self.transition_to(ConsumerMemberState.MEMBER)
        return None

    def _commit_before(self, revoked: list[TopicPartition], now_ms: int) -> int | None:
        """Auto commit what is about to go; milliseconds it may still take, None when done."""
        if not revoked:
            self._abandon_commit()
            return None
        commits = self._group.commits
        if self._commit is None:
            self._subscription.mark_revoking(revoked)
            if not self._group.auto_commit.is_on:
                return None
            self._commit = self._group.auto_commit.begin(retries=True)
            self._commit_deadline = now_ms + self._poll_interval_ms
            commits.advance(now_ms)
        if not self._commit.is_done and now_ms < self._commit_deadline:
            return self._commit_deadline - now_ms
        self._abandon_commit()
        return None

    def _abandon_commit(self) -> None:
        commit, self._commit = self._commit, None
        if commit is not None:
            self._group.commits.give_up(commit)

    # Leaving

    def depart(self, reason: str, operation: int) -> Pending[ConsumerGroupHeartbeatResponse] | None:
        """The user leaves: give everything up, and tell the coordinator; its answer, then."""
        if self.state == ConsumerMemberState.FENCED or self.member_epoch == _JOIN_EPOCH:
            self._give_up_lost()
        else:
            owned = list(self._subscription.partitions)
            if owned:
                self._group.calls.revoked(owned)
            self._subscription.assign_from_group([])
        is_static = self._instance_id is not None
        answer = None
        if self.is_joined and (is_static or operation != CloseOptions.REMAIN_IN_GROUP):
            is_final = not is_static or operation == CloseOptions.LEAVE_GROUP
            answer = self._send_leave(is_final=is_final)
        self.transition_to(ConsumerMemberState.LEFT)
        return answer

    def _send_leave(self, *, is_final: bool) -> Pending[ConsumerGroupHeartbeatResponse] | None:
        node_id = self._lookup.node_id
        self._pending = None
        self._target = None
        self._abandon_commit()
        if node_id is None or (self.member_epoch == _JOIN_EPOCH and not self._telling):
            return None
        return self._parts.send(
            node_id,
            ConsumerGroupHeartbeatRequest(
                group_id=self._group.group_id,
                member_id=self.member_id,
                member_epoch=_LEAVE_EPOCH if is_final else _STATIC_LEAVE_EPOCH,
                instance_id=self._instance_id,
            ),
        )

    # For commits

    def metadata(self) -> ConsumerGroupMetadata:
        """Who this is to the group; outside it, -1 in place of the epoch."""
        is_member = self.state in (ConsumerMemberState.MEMBER, ConsumerMemberState.RECONCILING)
        return ConsumerGroupMetadata(
            self._group.group_id,
            self.member_epoch if is_member else -1,
            self.member_id if is_member else "",
            self._instance_id,
        )

    def identity(self) -> ConsumerGroupMetadata:
        """As `metadata`; raises CommitFailed outside the group."""
        found = self.metadata()
        if found.generation_id < 0:
            raise CommitFailed("the consumer is not a member of the group: the next polls join")
        return found

    def commit_refused(self, error: KafkaError, sent_by: ConsumerGroupMetadata) -> Exception:
        """What a refused commit means; the next heartbeat will tell what became of the member."""
        if error.code == ErrorCode.FENCED_INSTANCE_ID:
            return error
        return CommitFailed(
            "the group has gone on without this member, and its partitions are others' now: poll "
            "more often, or set a longer max.poll.interval.ms or a smaller max.poll.records"
        )
