"""What a consumer reads: its partitions, where it is in each, and what is in the way.

    INITIALIZING -> AWAIT_RESET -> FETCHING, and back to AWAIT_RESET when the offset is gone

A partition is fetched while it is FETCHING and not paused.
"""

from __future__ import annotations

from embedlog.client.errors import IllegalState
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.common import TopicPartition

EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1


class FetchState:
    """What a partition waits for."""

    INITIALIZING = 0
    """No position yet, and nobody was asked for one."""
    AWAIT_RESET = 1
    """The position is being looked up, by `reset_timestamp`."""
    FETCHING = 2


VALID_PREVIOUS = {
    FetchState.INITIALIZING: frozenset(),
    FetchState.AWAIT_RESET: frozenset(
        (FetchState.INITIALIZING, FetchState.FETCHING, FetchState.AWAIT_RESET)
    ),
    FetchState.FETCHING: frozenset(
        (FetchState.INITIALIZING, FetchState.AWAIT_RESET, FetchState.FETCHING)
    ),
}


class PartitionState:
    """One assigned partition. `offset` is the next record to hand out; -1 while unknown."""

    __slots__ = (
        "generation",
        "high_watermark",
        "is_paused",
        "last_stable_offset",
        "log_start_offset",
        "offset",
        "offset_epoch",
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
        """Leader epoch of the last record handed out."""
        self.generation = 0
        """Counts seeks and resets: what was fetched for an older one is dropped."""
        self.reset_timestamp: int | None = None
        self.is_paused = False
        self.retry_at_ms = 0
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1

    @property
    def is_fetchable(self) -> bool:
        """May it be fetched, as far as the application has a say?"""
        return self.state == FetchState.FETCHING and not self.is_paused

    def transition_to(self, state: int) -> None:
        """Enter `state`. The only place that assigns it."""
        assert self.state in VALID_PREVIOUS[state], (self.state, state)
        self.state = state

    def seek(self, offset: int, offset_epoch: int = -1) -> None:
        """Read from `offset` on; what is buffered is stale."""
        self.offset = offset
        self.offset_epoch = offset_epoch
        self.reset_timestamp = None
        self.generation += 1
        self.transition_to(FetchState.FETCHING)

    def reset_to(self, timestamp: int) -> None:
        """Look the position up: by a timestamp, or -2 for the earliest, -1 for the latest."""
        self.reset_timestamp = timestamp
        self.generation += 1
        self.transition_to(FetchState.AWAIT_RESET)


class ResetPolicy:
    """auto.offset.reset: what to do without a valid position."""

    __slots__ = ("_duration_ms", "name")

    def __init__(self, text: str) -> None:
        """Raises ConfigError unless `text` is one of Kafka's policies."""
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
        """The timestamp to look up; None when no position may be chosen."""
        if self.name == "latest":
            return LATEST_TIMESTAMP
        if self.name == "earliest":
            return EARLIEST_TIMESTAMP
        if self.name == "none":
            return None
        return max(wall_ms - self._duration_ms, 0)


class SubscriptionState:
    """The assigned partitions of one consumer, by topic partition."""

    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, PartitionState] = {}

    def assign(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Replace the assignment; partitions that stay keep their position and pause."""
        old = self.partitions
        self.partitions = {
            each: old[each] if each in old else PartitionState(each) for each in topic_partitions
        }

    def state(self, topic_partition: TopicPartition) -> PartitionState:
        """The state of an assigned partition; raises IllegalState for any other."""
        found = self.partitions.get(topic_partition)
        if found is None:
            raise IllegalState(f"{topic_partition} is not assigned to this consumer")
        return found


_DURATION = r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"


def parse_duration_ms(text: str) -> int:
    """Milliseconds of an ISO-8601 duration of days, hours, minutes and seconds.

    >>> parse_duration_ms("P1DT2H")
    93600000

    Raises:
        ConfigError: it is not one.
    """
    import re

    match = re.fullmatch(_DURATION, text.strip().upper())
    if match is None or not any(match.groups()):
        raise ConfigError(f"auto.offset.reset: {text!r} is not a duration such as PT1H30M")
    days, hours, minutes = (int(each or 0) for each in match.groups()[:3])
    return ((days * 24 + hours) * 60 + minutes) * 60_000 + round(float(match[4] or 0) * 1000)
