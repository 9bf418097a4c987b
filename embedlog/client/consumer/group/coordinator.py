"""`ConsumerCoordinator`: a consumer's side of its group: coordinator, membership and offsets.

The parts are state machines that never wait. `poll` is a full pass, in which the user's callbacks
may run. `keep` is a pass without rebalances and callbacks, for calls that wait for something else.
`keep_alive` is the pass of the membership duty between calls.
"""

from __future__ import annotations

from embedlog.client.backoff import sooner
from embedlog.client.consumer.group.auto_commit import AutoCommit
from embedlog.client.consumer.group.committed_offsets import CommittedLookup
from embedlog.client.consumer.group.coordinator_lookup import CoordinatorLookup
from embedlog.client.consumer.group.group_offsets import CloseOptions, ConsumerGroupMetadata
from embedlog.client.consumer.group.listener_calls import ListenerCalls
from embedlog.client.consumer.group.membership_duty import MembershipDuty
from embedlog.client.consumer.group.offset_commits import OffsetCommits
from embedlog.client.consumer.subscription_state import SubscriptionType
from embedlog.errors import again

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from embedlog.client.consumer.group.member import GroupMember
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.common import TopicPartition
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending


_ANSWER_DELAY_MS = 50
"""Over a network, the membership duty looks for answers this often between the user's calls."""


class ConsumerCoordinator:
    """The group-related parts of a consumer with a group.id."""

    def __init__(self, parts: ConsumerParts) -> None:
        settings = parts.settings
        self._parts = parts
        self._subscription = parts.subscription
        self.group_id: str = settings["group.id"]
        self.calls = ListenerCalls(parts.subscription)
        self.lookup = CoordinatorLookup(parts, self.group_id)
        self.is_classic = settings["group.protocol"] == "classic"
        self.commits = OffsetCommits(parts, self.lookup, self._identity, self._commit_refused)
        self.auto_commit = AutoCommit(parts, self.commits)
        self._lookups: list[CommittedLookup] = []
        self._matched_answers = 0
        self._checked_answers = 0
        in_process = parts.transport.in_process
        self._answer_delay_ms = (
            parts.settings["retry.backoff.ms"] if in_process else _ANSWER_DELAY_MS
        )
        interval_ms: int = parts.heartbeat_interval_ms
        self.duty = MembershipDuty(
            parts.transport,
            self.keep_alive,
            interval_ms,
            leave=self._leave,
        )
        self.member = self._member()

    def _member(self) -> GroupMember:
        if self.is_classic:
            from embedlog.client.consumer.group.classic_membership import ClassicMembership
            from embedlog.client.consumer.group.classic_rebalance import ClassicRebalance

            rebalance = ClassicRebalance(self._parts, self.calls, self.commits, self.auto_commit)
            return ClassicMembership(self._parts, self.lookup, self.group_id, rebalance)
        from embedlog.client.consumer.group.consumer_membership import ConsumerMembership
        from embedlog.client.consumer.group.reconciliation import Reconciliation

        reconciliation = Reconciliation(self._parts, self.calls, self.commits, self.auto_commit)
        return ConsumerMembership(self._parts, self.lookup, reconciliation, self.duty)

    def _leave(self, reason: str) -> Pending[Any] | None:
        return self.member.leave(reason)

    # Passes

    def poll(self, now_ms: int) -> int | None:
        """Make a full pass; return milliseconds to the next useful pass, if known.

        Raises:
            KafkaError: the coordinator refused the group or the member, a topic's name is
                invalid, or the user may not read the topic.
            Exception: a callback of the user raised it.
        """
        self.member.polled(now_ms)
        delay = self.keep(now_ms)
        if self.calls.is_calling:
            return delay
        self.commits.settle()
        if self._subscription.is_automatic:
            self._check_topics()
            if not self._is_subscription_known():
                return delay
            delay = sooner(delay, self.member.advance(now_ms))
            delay = sooner(delay, self.lookup.advance(now_ms))
        delay = sooner(delay, self.auto_commit.advance(now_ms))
        self.calls.raise_first()
        return delay

    def keep(self, now_ms: int) -> int | None:
        """Make a pass without rebalances and callbacks. Returns a delay as `poll` does.

        Raises:
            KafkaError: the cluster refused to name the coordinator.
        """
        delay = self.lookup.advance(now_ms)
        error = self.lookup.take_error()
        if error is not None:
            self._fail_all(error)
            raise error
        delay = sooner(delay, self.commits.advance(now_ms))
        if self._subscription.is_automatic:
            delay = sooner(delay, self.member.keep_alive(now_ms))
        for lookup in self._lookups:
            delay = sooner(delay, lookup.advance(now_ms))
        self._lookups = [each for each in self._lookups if not each.is_done]
        # Once more, because the parts above may have requested a look-up of the coordinator.
        return sooner(delay, self.lookup.advance(now_ms))

    def keep_alive(self, now_ms: int) -> int | None:
        """Make a pass of the membership duty, between the user's calls.

        Returns milliseconds to the next useful pass, or None if the consumer is no member.
        """
        delay = self.lookup.advance(now_ms)
        self.commits.advance(now_ms)
        later = self.member.keep_alive(now_ms)
        if later is None:
            return None
        delay = sooner(delay, self.lookup.advance(now_ms))
        if self.member.is_waiting or self.commits.open():
            later = min(later, self._answer_delay_ms)
        return sooner(delay, later)

    def _fail_all(self, error: KafkaError) -> None:
        self.commits.fail_all(error)
        for lookup in self._lookups:
            lookup.fail(error)
        self._lookups = []

    def _check_topics(self) -> None:
        """Raise the error of a subscribed topic, once for each metadata answer with an error."""
        metadata = self._parts.metadata
        if not metadata.errors or metadata.answer_count == self._checked_answers:
            return
        self._checked_answers = metadata.answer_count
        for topic in sorted(self._subscription.topics):
            error = metadata.topic_error(topic)
            if error is not None:
                raise again(error)

    def subscription_changed(self) -> None:
        self._matched_answers = 0
        self.member.subscription_changed()

    def _is_subscription_known(self) -> bool:
        """Match the pattern with the topics of the newest metadata; False if there is none yet."""
        if self._subscription.type != SubscriptionType.PATTERN:
            return True
        metadata = self._parts.metadata
        if metadata.full_version == self._matched_answers:
            return metadata.full_version > 0
        self._matched_answers = metadata.full_version
        hides_internal = self._parts.settings["exclude.internal.topics"]
        names = [
            name
            for name, topic in metadata.topics.items()
            if not (topic.is_internal and hides_internal)
        ]
        if self._subscription.match(names):
            self.member.subscription_changed()
        return True

    # Offsets

    def _identity(self) -> ConsumerGroupMetadata:
        """Return the identity to send with a commit.

        If the user assigned the partitions, the identity has only the group id.
        """
        if self._subscription.is_automatic:
            return self.member.identity()
        return ConsumerGroupMetadata(self.group_id)

    def _commit_refused(self, error: KafkaError, sent_by: ConsumerGroupMetadata) -> Exception:
        return self.member.commit_refused(error, sent_by)

    def fetch_committed(self, partitions: Iterable[TopicPartition]) -> CommittedLookup:
        """Begin a look-up of committed offsets; `keep` drives it until it is done."""
        found = CommittedLookup(self._parts, self.lookup, self._asker, partitions)
        self._lookups.append(found)
        return found

    def _asker(self) -> ConsumerGroupMetadata:
        if self._subscription.is_automatic and not self.is_classic:
            return self.member.metadata()
        return ConsumerGroupMetadata(self.group_id)

    def commit_consumed(self, *, retries: bool = False) -> None:
        """Commit the positions if auto commit is on. Call this before the positions are dropped."""
        if self.auto_commit.is_on:
            self.auto_commit.begin(retries=retries)
            self.commits.advance(self._parts.transport.runtime.clock.monotonic_ms())

    # Leaving

    def depart(self, reason: str, operation: int = CloseOptions.DEFAULT) -> Pending[Any] | None:
        answer = self.member.depart(reason, operation)
        if self.duty.is_running:
            self.duty.stop()
        return answer
