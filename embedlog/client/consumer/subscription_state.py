"""`SubscriptionState`: the subscription of a consumer, its partitions and its position in each.

    INITIALIZING -> AWAIT_RESET -> FETCHING <-> AWAIT_VALIDATION

A partition is fetched while it is FETCHING, not paused and not being revoked. It goes back to
AWAIT_RESET when its offset is out of range, and to AWAIT_VALIDATION when another leader, whose log
may differ, took over (KIP-320).
"""

from __future__ import annotations

from embedlog.client.errors import IllegalState
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from re import Pattern

    from embedlog.client.consumer.rebalance_listener import ConsumerRebalanceListener
    from embedlog.common import TopicPartition

EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1


class FetchState:
    """The states of a partition's position."""

    INITIALIZING = 0
    """No position yet. The committed offset becomes the position, or the reset policy sets it."""
    AWAIT_RESET = 1
    """The position is being looked up by `reset_timestamp`."""
    FETCHING = 2
    AWAIT_VALIDATION = 3
    """The leader is being asked whether its log has the position."""


_ANY = frozenset(range(4))
VALID_PREVIOUS = {
    FetchState.INITIALIZING: frozenset(),
    FetchState.AWAIT_RESET: _ANY,
    FetchState.FETCHING: _ANY,
    FetchState.AWAIT_VALIDATION: frozenset((FetchState.FETCHING, FetchState.AWAIT_VALIDATION)),
}


class PartitionState:
    """One assigned partition. `offset` belongs to the next record to hand out; -1 if unknown."""

    __slots__ = (
        "generation",
        "high_watermark",
        "is_paused",
        "is_revoking",
        "last_stable_offset",
        "leader",
        "offset",
        "offset_epoch",
        "read_replica",
        "reset_timestamp",
        "retry_at_ms",
        "state",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.state = FetchState.INITIALIZING
        self.offset = -1
        self.offset_epoch = -1
        """Leader epoch of the last record that was handed out."""
        self.generation = 0
        """The number of seeks and resets. Each makes the records fetched so far stale."""
        self.leader: tuple[int, int] | None = None
        """(node id, leader epoch) of the leader that confirmed the position."""
        self.read_replica: tuple[int, int] | None = None
        """Follower to fetch from, chosen by the leader (KIP-392): (node id, valid until ms)."""
        self.reset_timestamp: int | None = None
        self.is_paused = False
        self.is_revoking = False
        """True while the consumer is giving the partition up: its position no longer moves."""
        self.retry_at_ms = 0
        self.high_watermark = -1
        self.last_stable_offset = -1

    @property
    def is_fetchable(self) -> bool:
        """True if the position is valid and the partition is neither paused nor being revoked."""
        return self.state == FetchState.FETCHING and not self.is_paused and not self.is_revoking

    @property
    def has_position(self) -> bool:
        """Whether there is an offset to read from, validated or not."""
        return self.state in (FetchState.FETCHING, FetchState.AWAIT_VALIDATION)

    def transition_to(self, state: int) -> None:
        """Enter `state`. All changes of the state go through this method."""
        assert self.state in VALID_PREVIOUS[state], (self.state, state)
        self.state = state

    def seek(self, offset: int, offset_epoch: int = -1) -> None:
        """Read from `offset` on; buffered records become stale."""
        self.offset = offset
        self.offset_epoch = offset_epoch
        self.retry_at_ms = 0
        self.generation += 1
        self.transition_to(FetchState.FETCHING)
        self.reset_timestamp = None

    def seek_unproven(self, offset: int, offset_epoch: int) -> None:
        """`seek` to an offset that the user gave or the group has committed.

        If a leader epoch comes with it, the leader must validate the offset before the next fetch.
        """
        self.seek(offset, offset_epoch)
        if offset_epoch >= 0:
            self.leader = None
            self.transition_to(FetchState.AWAIT_VALIDATION)

    def read_from(self, node_id: int, until_ms: int) -> None:
        """Read from follower `node_id` until `until_ms`.

        If the leader chooses the same follower again, the earlier `until_ms` stays.
        """
        if self.read_replica is None or self.read_replica[0] != node_id:
            self.read_replica = node_id, until_ms

    def read_from_leader(self) -> bool:
        """Read from the leader again; True if the partition was read from a follower."""
        had, self.read_replica = self.read_replica is not None, None
        return had

    def reset_to(self, timestamp: int) -> None:
        """Look the position up by a timestamp; -2 is the earliest offset, -1 the latest."""
        self.reset_timestamp = timestamp
        self.generation += 1
        self.transition_to(FetchState.AWAIT_RESET)


class ResetPolicy:
    """auto.offset.reset: chooses the position of a partition that has no valid position."""

    __slots__ = ("_duration_ms", "name")

    def __init__(self, text: str) -> None:
        """Raise ConfigError unless `text` is one of Kafka's policies."""
        self.name = text
        self._duration_ms = 0
        if text.startswith("by_duration:"):
            self._duration_ms = parse_duration_ms(text.removeprefix("by_duration:"))
        elif text not in {"latest", "earliest", "none"}:
            raise ConfigError(
                f"auto.offset.reset={text!r}: must be latest, earliest, none or "
                f"by_duration:PnDTnHnMnS"
            )

    def timestamp(self, wall_ms: int) -> int | None:
        """Return the timestamp to look up; None if the policy is none."""
        if self.name == "latest":
            return LATEST_TIMESTAMP
        if self.name == "earliest":
            return EARLIEST_TIMESTAMP
        if self.name == "none":
            return None
        return max(wall_ms - self._duration_ms, 0)


class SubscriptionType:
    """The ways to get partitions. A consumer uses only one at a time."""

    NONE = 0
    TOPICS = 1
    """The group assigns partitions of named topics."""
    PATTERN = 2
    """The group assigns partitions of topics whose names the consumer matches with a pattern."""
    SERVER_PATTERN = 3
    """The group assigns partitions of topics whose names the broker matches (KIP-848)."""
    ASSIGNED = 4
    """The user named the partitions."""


class SubscriptionPattern:
    """A regular expression in RE2 syntax; the broker matches topic names with it (KIP-848).

    >>> embedlog.SubscriptionPattern("orders-.*")
    SubscriptionPattern('orders-.*')
    """

    __slots__ = ("server_pattern",)

    def __init__(self, pattern: str) -> None:
        self.server_pattern = pattern

    def __repr__(self) -> str:
        return f"SubscriptionPattern({self.server_pattern!r})"


class SubscriptionState:
    """The subscription and the assigned partitions of one consumer."""

    def __init__(self) -> None:
        self.type = SubscriptionType.NONE
        self.topics: frozenset[str] = frozenset()
        """The subscribed topics, named by the user or matched by `pattern`."""
        self.pattern: Pattern[str] | None = None
        self.server_pattern: str | None = None
        self.listener: ConsumerRebalanceListener | None = None
        self.group_topics: frozenset[str] = frozenset()
        """If this consumer leads the group, the topics of all members: the leader watches them."""
        self.partitions: dict[TopicPartition, PartitionState] = {}

    @property
    def is_automatic(self) -> bool:
        """Whether the group assigns the partitions."""
        return SubscriptionType.NONE < self.type < SubscriptionType.ASSIGNED

    # Subscription

    def subscribe(self, topics: Iterable[str], listener: ConsumerRebalanceListener | None) -> None:
        """Subscribe to topics. Raises IllegalState if another kind of subscription exists."""
        self._become(SubscriptionType.TOPICS)
        self.topics = frozenset(topics)
        self.listener = listener

    def subscribe_pattern(
        self, pattern: Pattern[str], listener: ConsumerRebalanceListener | None
    ) -> None:
        """Subscribe to the topics that `match` finds. Raises IllegalState as `subscribe` does."""
        self._become(SubscriptionType.PATTERN)
        self.pattern = pattern
        self.listener = listener

    def subscribe_server_pattern(
        self, pattern: str, listener: ConsumerRebalanceListener | None
    ) -> None:
        """Subscribe to the topics that the broker matches. Raises IllegalState as `subscribe`."""
        self._become(SubscriptionType.SERVER_PATTERN)
        self.server_pattern = pattern
        self.listener = listener

    def assign_by_user(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions. Raises IllegalState if topics are subscribed."""
        self._become(SubscriptionType.ASSIGNED)
        self._assign(topic_partitions)

    def unsubscribe(self) -> None:
        self.type = SubscriptionType.NONE
        self.topics = self.group_topics = frozenset()
        self.pattern = self.server_pattern = self.listener = None
        self.partitions = {}

    def match(self, names: Iterable[str]) -> bool:
        """Subscribe to the `names` that match the pattern; True if the topics changed."""
        assert self.pattern is not None, self
        found = frozenset(name for name in names if self.pattern.fullmatch(name))
        changed = found != self.topics
        self.topics = found
        return changed

    # Assigned partitions

    def assign_from_group(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Replace the assigned partitions by these, which the group assigned."""
        assert self.is_automatic, self.type
        self._assign(topic_partitions)

    def is_asked_for(self, topic: str) -> bool:
        """Whether the group may assign partitions of this topic."""
        if self.type == SubscriptionType.PATTERN:
            assert self.pattern is not None, self
            return self.pattern.fullmatch(topic) is not None
        return self.type == SubscriptionType.SERVER_PATTERN or topic in self.topics

    def mark_revoking(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Hand out no more records of these partitions, because the consumer gives them up."""
        for each in topic_partitions:
            self.partitions[each].is_revoking = True

    def positions(self) -> dict[TopicPartition, PartitionState]:
        return {key: state for key, state in self.partitions.items() if state.has_position}

    def uses(self, topic: str) -> bool:
        """Whether the topic is subscribed to, or one of its partitions is assigned."""
        asked = topic in self.topics or topic in self.group_topics
        return asked or any(name == topic for name, _ in self.partitions)

    def state(self, topic_partition: TopicPartition) -> PartitionState:
        """Return the state of an assigned partition; raise IllegalState for any other."""
        found = self.partitions.get(topic_partition)
        if found is None:
            raise IllegalState(f"{topic_partition} is not assigned to this consumer")
        return found

    def _assign(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Assign partitions. If one was assigned before, it keeps its position and its pause."""
        old = self.partitions
        self.partitions = {
            each: old[each] if each in old else PartitionState(each) for each in topic_partitions
        }
        for state in self.partitions.values():
            state.is_revoking = False

    def _become(self, kind: int) -> None:
        if self.type not in (SubscriptionType.NONE, kind):
            raise IllegalState(
                "topics, a pattern and assigned partitions exclude each other: unsubscribe first"
            )
        self.type = kind


_DURATION = r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"


def parse_duration_ms(text: str) -> int:
    """Return the milliseconds of an ISO-8601 duration of days, hours, minutes and seconds.

    >>> parse_duration_ms("P1DT2H")
    93600000

    Raises:
        ConfigError: the text is no such duration.
    """
    import re

    match = re.fullmatch(_DURATION, text.strip().upper())
    if match is None or not any(match.groups()):
        raise ConfigError(f"auto.offset.reset: {text!r} is not a duration such as PT1H30M")
    days, hours, minutes = (int(each or 0) for each in match.groups()[:3])
    return ((days * 24 + hours) * 60 + minutes) * 60_000 + round(float(match[4] or 0) * 1000)
