"""The consumer's calls about its group: what it reads by agreement, and the offsets it stores."""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.consumer.consumer_core import ConsumerCore
from embedlog.client.consumer.subscription_state import SubscriptionType
from embedlog.client.errors import IllegalState, because
from embedlog.common import TopicPartition
from embedlog.errors import TimedOut

LISTENER_METHODS = ("on_partitions_revoked", "on_partitions_assigned", "on_partitions_lost")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from embedlog.client.consumer.subscription_state import Pattern, SubscriptionPattern
    from embedlog.client.group.group_offsets import ConsumerGroupMetadata, OffsetAndMetadata
    from embedlog.client.group.offset_commits import Callback
    from embedlog.client.group.rebalance_listener import ConsumerRebalanceListener

    GivenOffsets = (
        Mapping[TopicPartition, OffsetAndMetadata | int]
        | Mapping[tuple[str, int], OffsetAndMetadata | int]
    )


class GroupCalls(ConsumerCore):
    """Subscribing and committing; everything here needs a group.id."""

    # What to read

    def subscribe(
        self,
        topics: Iterable[str] | Pattern | SubscriptionPattern | None = None,
        *,
        pattern: str | Pattern | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Read these topics together with the other members of the group.

        Topics are names; or a regular expression of Python's (`pattern`, or compiled) that whole
        names are matched with, here; or a `SubscriptionPattern`, which the broker matches. The next
        polls join the group. A later call replaces this one; no names at all are `unsubscribe`.

        Raises:
            IllegalState: partitions were assigned, or another kind of subscription is in force.
            KafkaError: InvalidGroupId, without a group.id.
            TypeError, ValueError: the topics are no names, one str among them, or the listener is
                none.
        """
        _check_listener(listener)
        with self._guard:
            coordinator = self._group()
            server_pattern = getattr(topics, "server_pattern", None)
            chosen = _compiled(pattern) if topics is None else _pattern(topics)
            old = self._subscription.topics
            if server_pattern is not None:
                if coordinator.is_classic:
                    raise IllegalState("a SubscriptionPattern needs group.protocol=consumer")
                self._subscription.subscribe_server_pattern(server_pattern, listener)
            elif chosen is not None:
                self._subscription.subscribe_pattern(chosen, listener)
            else:
                names = _names(topics)
                if not names:
                    self.unsubscribe()
                    return
                self._subscription.subscribe(names, listener)
                for name in names:
                    self._metadata.want(name)
                self._metadata.forget(old - set(names))
            if server_pattern is not None or chosen is not None:
                self._metadata.follows_all = True
                self._metadata.request_update()
            coordinator.subscription_changed()

    def unsubscribe(self) -> None:
        """Read nothing, and leave the group."""
        with self._guard:
            subscription = self._subscription
            coordinator = self._coordinator
            if coordinator is not None and subscription.is_automatic:
                coordinator.depart("the consumer unsubscribed from all topics")
            self._metadata.forget([*subscription.topics, *subscription.group_topics])
            self._metadata.forget(topic for topic, _ in subscription.partitions)
            self._metadata.follows_all = False
            subscription.unsubscribe()
            if coordinator is not None:
                coordinator.calls.raise_first()

    def subscription(self) -> set[str]:
        """The topics asked for; with a pattern those that match, as far as known here."""
        with self._guard:
            subscription = self._subscription
            if subscription.type == SubscriptionType.SERVER_PATTERN:
                return {topic for topic, _ in subscription.partitions}
            return set(subscription.topics)

    # Offsets

    def commit(self, offsets: GivenOffsets | None = None, timeout_ms: int | None = None) -> None:
        """Store offsets for the group, by default the positions; returns when they are stored.

        An offset is that of the next record to read. Commits made before, asynchronously, have
        ended too when this returns.

        Raises:
            CommitFailed: the group has gone on without this consumer: poll, and read again.
            KafkaError: RebalanceInProgress: poll, then try again; FencedInstanceId; others that
                would come again.
            TimedOut: the coordinator did not answer in time.
        """
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, "commit")
        with self._guard:
            coordinator = self._group()
            commits = coordinator.commits
            earlier = commits.open()
            commit = commits.begin(self._to_commit(offsets, "commit"), retries=True)
            try:
                done = self._drive(
                    lambda: commit.is_done and all(each.is_done for each in earlier),
                    timeout_ms,
                    coordinator.keep,
                )
            finally:
                commits.give_up(commit)
            commits.settle()
            if commit.error is not None:
                raise commit.error
            if not done:
                text = "the coordinator did not store the offsets in time"
                raise TimedOut(text + because(commit.last_refusal or coordinator.lookup.last_error))

    def commit_async(
        self, offsets: GivenOffsets | None = None, callback: Callback | None = None
    ) -> None:
        """Begin a commit and return; it is not retried, as a later one may overtake it.

        `callback(offsets, error)` is called inside a later poll, commit or close, in order. An
        error that another attempt may cure is a `RetriableCommitFailed`.
        """
        arguments.callback(callback, "commit_async", "callback", "a function (offsets, error)")
        with self._guard:
            coordinator = self._group()
            coordinator.commits.settle()
            wanted = self._to_commit(offsets, "commit_async")
            coordinator.commits.begin(wanted, retries=False, callback=callback)
            coordinator.keep(self._clock.monotonic_ms())

    def committed(
        self,
        partitions: Iterable[TopicPartition | tuple[str, int]],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has stored for these partitions, None where nothing.

        Raises:
            KafkaError: the coordinator refuses to say; TimedOut: it did not answer in time.
        """
        keys = arguments.partitions(partitions, "committed")
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, "committed")
        with self._guard:
            coordinator = self._group()
            lookup = coordinator.fetch_committed(keys)
            if not self._drive(lambda: lookup.is_done, timeout_ms, coordinator.keep):
                text = "the coordinator did not tell the committed offsets in time"
                raise TimedOut(text + because(lookup.last_refusal or coordinator.lookup.last_error))
            if lookup.error is not None:
                raise lookup.error
            return lookup.found

    # The group

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Who this consumer is to its group, for a transactional producer."""
        with self._guard:
            return self._group().member.metadata()

    def enforce_rebalance(self, reason: str = "rebalance enforced by user") -> None:
        """Have the group rebalance; the next poll begins. In vain while one is under way.

        Without effect with group.protocol=consumer, where the broker alone decides.
        """
        arguments.name(reason, "enforce_rebalance", "reason", what="a text")
        with self._guard:
            coordinator = self._group()
            if not self._subscription.is_automatic:
                raise IllegalState("nothing is subscribed: there is no assignment to rebalance")
            coordinator.member.request_rejoin(reason)

    def consumed_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What `commit` would store: the positions, each with the leader epoch it was read in.

        For a transactional producer, which commits them with what was made of the records.

        Raises:
            IllegalState: enable.auto.commit is on: what the consumer commits by itself would count
                also if the transaction does not.
        """
        with self._guard:
            if self._group().auto_commit.is_on:
                raise IllegalState(
                    "consumed_offsets: enable.auto.commit is on, so that offsets are committed "
                    "whatever becomes of a transaction; turn it off"
                )
            return self._to_commit(None, "consumed_offsets")

    def _to_commit(
        self, offsets: GivenOffsets | None, call: str
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        from embedlog.client.group.auto_commit import consumed_offsets
        from embedlog.client.group.group_offsets import offsets_of

        return (
            consumed_offsets(self._subscription) if offsets is None else offsets_of(offsets, call)
        )


def _compiled(given: str | Pattern | None) -> Pattern | None:
    if given is None or hasattr(given, "fullmatch"):
        return given
    arguments.name(given, "subscribe", "pattern", what="a regular expression")
    from re import compile as compile_pattern

    compiled: Pattern = compile_pattern(given)
    return compiled


def _pattern(given: Any) -> Pattern | None:
    """A compiled regular expression, if that is what was given."""
    compiled: Pattern | None = given if hasattr(given, "fullmatch") else None
    return compiled


def _names(topics: Any) -> list[str]:
    if isinstance(topics, str):
        raise arguments.WrongType(
            f"subscribe(topics={topics!r}): expected a list of topic names, got one str; write "
            f"[{topics!r}], or pattern={topics!r} for a regular expression"
        )
    return arguments.names(() if topics is None else topics, "subscribe", "topics")


def _check_listener(listener: Any) -> None:
    if listener is None:
        return
    is_class = isinstance(listener, type)
    if is_class or not any(hasattr(listener, name) for name in LISTENER_METHODS):
        kind = "a class" if is_class else type(listener).__name__
        raise arguments.WrongType(
            f"subscribe(listener={arguments.shown(listener)}): expected an object with methods as "
            f"ConsumerRebalanceListener has, got {kind}"
        )
