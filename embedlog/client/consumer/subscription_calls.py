"""What a consumer reads: the topics it subscribed to, or the partitions it named."""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.consumer.subscription_state import SubscriptionType
from embedlog.client.errors import IllegalState

LISTENER_METHODS = ("on_partitions_revoked", "on_partitions_assigned", "on_partitions_lost")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from embedlog.client.consumer.driver import ConsumerDriver
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.client.consumer.rebalance_listener import ConsumerRebalanceListener
    from embedlog.client.consumer.subscription_state import Pattern, SubscriptionPattern
    from embedlog.common import TopicPartition


class SubscriptionCalls:
    """Assigning and subscribing: one excludes the other."""

    __slots__ = ("_driver", "_guard", "_metadata", "_subscription")

    def __init__(self, parts: ConsumerParts, driver: ConsumerDriver) -> None:
        self._driver = driver
        self._guard = driver.guard
        self._metadata = parts.metadata
        self._subscription = parts.subscription

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """See `Consumer.assign`."""
        with self._guard:
            keys = arguments.partitions(partitions, "assign")
            if not keys:
                self.unsubscribe()
                return
            if self._driver.coordinator is not None:
                # No rebalance follows that would commit what is not assigned any more.
                self._driver.coordinator.commit_consumed()
            old = {topic for topic, _ in self._subscription.partitions}
            self._subscription.assign_by_user(keys)
            topics = {topic for topic, _ in keys}
            for topic in topics:
                self._metadata.want(topic)
            self._metadata.wanted.forget(old - topics)

    def assignment(self) -> set[TopicPartition]:
        """See `Consumer.assignment`."""
        with self._guard:
            return set(self._subscription.partitions)

    def subscribe(
        self,
        topics: Iterable[str] | Pattern | SubscriptionPattern | None = None,
        *,
        pattern: str | Pattern | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """See `Consumer.subscribe`."""
        _check_listener(listener)
        with self._guard:
            coordinator = self._driver.group
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
                self._metadata.wanted.forget(old - set(names))
            if server_pattern is not None or chosen is not None:
                self._metadata.wanted.follows_all = True
                self._metadata.request_update()
            coordinator.subscription_changed()

    def unsubscribe(self) -> None:
        """See `Consumer.unsubscribe`."""
        with self._guard:
            subscription = self._subscription
            coordinator = self._driver.coordinator
            if coordinator is not None and subscription.is_automatic:
                coordinator.depart("the consumer unsubscribed from all topics")
            self._metadata.wanted.forget([*subscription.topics, *subscription.group_topics])
            self._metadata.wanted.forget(topic for topic, _ in subscription.partitions)
            self._metadata.wanted.follows_all = False
            subscription.unsubscribe()
            if coordinator is not None:
                coordinator.calls.raise_first()

    def subscription(self) -> set[str]:
        """See `Consumer.subscription`."""
        with self._guard:
            subscription = self._subscription
            if subscription.type == SubscriptionType.SERVER_PATTERN:
                return {topic for topic, _ in subscription.partitions}
            return set(subscription.topics)


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
