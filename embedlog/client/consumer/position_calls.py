"""The consumer's calls about positions, offsets and what there is to read."""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.consumer.consumer_core import ConsumerCore
from embedlog.client.consumer.offset_lookup import OffsetLookup
from embedlog.client.consumer.subscription_state import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    FetchState,
)
from embedlog.client.errors import because
from embedlog.common import TopicPartition
from embedlog.errors import TimedOut
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from embedlog.client.consumer.offset_lookup import OffsetAndTimestamp
    from embedlog.client.group.group_offsets import OffsetAndMetadata
    from embedlog.client.metadata import PartitionInfo, TopicInfo


_OFFSET_FIELDS = 3
"""Of an `OffsetAndMetadata`."""


class PositionCalls(ConsumerCore):
    """Seeking, pausing, and looking around."""

    # Positions

    def seek(
        self, partition: TopicPartition | tuple[str, int], offset: int | OffsetAndMetadata
    ) -> None:
        """Go on at `offset` of an assigned partition.

        With an `OffsetAndMetadata` that has a leader epoch the log is first asked whether it still
        has what was read before that offset (KIP-320).
        """
        given: Any = offset
        leader_epoch = -1
        if isinstance(given, tuple) and len(given) == _OFFSET_FIELDS:
            given, _, leader_epoch = given
        number = arguments.offset(given, "seek")
        with self._guard:
            self._state(partition, "seek").seek_unproven(number, leader_epoch)

    def seek_to_beginning(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on at the first record, of all assigned partitions when none is named."""
        self._seek_to(partitions, EARLIEST_TIMESTAMP, "seek_to_beginning")

    def seek_to_end(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on at the end (with read_committed: before open transactions)."""
        self._seek_to(partitions, LATEST_TIMESTAMP, "seek_to_end")

    def position(
        self, partition: TopicPartition | tuple[str, int], timeout_ms: int | None = None
    ) -> int:
        """The offset of the next record to read, looked up if there is none yet.

        Raises:
            TimedOut: it could not be found in time; NoOffsetForPartition: none may be chosen.
        """
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, "position")
        with self._guard:
            state = self._state(partition, "position")
            found = self._until(lambda: state.state == FetchState.FETCHING, timeout_ms)
            if not found:
                raise TimedOut(f"the position of {state.topic_partition} was not found in time")
            return state.offset

    def pause(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Stop handing out records of these partitions; what was fetched is kept.

        A rebalance ends it, unless the partition stays here throughout.
        """
        with self._guard:
            for state in self._states(partitions, "pause"):
                state.is_paused = True

    def resume(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Hand out records of these partitions again."""
        with self._guard:
            for state in self._states(partitions, "resume"):
                state.is_paused = False

    def paused(self) -> set[TopicPartition]:
        """The paused partitions."""
        with self._guard:
            return {key for key, state in self._subscription.partitions.items() if state.is_paused}

    def current_lag(self, partition: TopicPartition | tuple[str, int]) -> int | None:
        """Records between the position and the end as of the last fetch; None if not known."""
        with self._guard:
            return self._fetcher.lag(self._state(partition, "current_lag"))

    # Looking around

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition, assigned or not."""
        return self._edge_offsets(partitions, EARLIEST_TIMESTAMP, timeout_ms, "beginning_offsets")

    def end_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last readable record of each partition, assigned or not."""
        return self._edge_offsets(partitions, LATEST_TIMESTAMP, timeout_ms, "end_offsets")

    def offsets_for_times(
        self,
        timestamps: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a timestamp (ms) in each partition; None if there is none.

        Raises:
            ValueError: a timestamp is negative.
        """
        call = "offsets_for_times"
        given = arguments.by_partition(timestamps, call, "timestamps", "timestamp in ms")
        asked = {
            key: arguments.timestamp_ms(stamp, call, f"timestamps: {key}")
            for key, stamp in given.items()
        }
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, call)
        with self._guard:
            return self._look_up(asked, timeout_ms)

    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> list[PartitionInfo]:
        """The partitions of a topic; empty when there is no such topic.

        A topic that was not there is asked for again by every call.

        Raises:
            TimedOut: the cluster did not tell in time; KafkaError: it refused.
        """
        arguments.topic_name(topic, "partitions_for")
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, "partitions_for")
        with self._guard:
            metadata = self._metadata
            metadata.want(topic)
            try:
                if not self._drive(self._asked_anew(topic), timeout_ms):
                    text = f"the cluster did not describe topic {topic!r} in time"
                    raise TimedOut(f"{text}{because(metadata.last_error)}")
            finally:
                if topic not in metadata.topics and not self._subscription.uses(topic):
                    metadata.forget([topic])
            error = metadata.topic_error(topic)
            if error is not None:
                raise error
            info = metadata.topics.get(topic)
            return [] if info is None else list(info.partitions)

    def list_topics(self, timeout_ms: int | None = None) -> dict[str, TopicInfo]:
        """Every topic of the cluster."""
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, "list_topics")
        with self._guard:
            metadata = self._metadata
            before = metadata.full_version
            metadata.want_all()
            if not self._drive(lambda: metadata.full_version > before, timeout_ms):
                text = "the cluster did not describe its topics in time"
                raise TimedOut(f"{text}{because(metadata.last_error)}")
            return dict(metadata.topics)

    # Inside

    def _asked_anew(self, topic: str) -> Callable[[], bool]:
        """Says whether the topic is known, or a request that begins here was answered without."""
        metadata = self._metadata
        earlier = metadata.pending

        def ask() -> None:
            metadata.unlearn([topic])
            metadata.want_now()
            metadata.request_update()

        def is_described() -> bool:
            nonlocal earlier
            if topic in metadata.topics:
                return True
            if earlier is not None:
                if metadata.pending is not earlier:
                    earlier = None  # what it said may be old news
                    ask()
                return False
            error = metadata.errors.get(topic)
            # Without a leader it is being made.
            return error is not None and error.code != ErrorCode.LEADER_NOT_AVAILABLE

        if topic not in metadata.topics and earlier is None:
            ask()
        return is_described

    def _seek_to(self, partitions: tuple[Any, ...], timestamp: int, call: str) -> None:
        with self._guard:
            chosen = partitions or tuple(self._subscription.partitions)
            for state in self._states(chosen, call):
                state.reset_to(timestamp)

    def _look_up(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        lookup = OffsetLookup(
            self._transport, self._metadata, self._settings, timestamps, self._waiter.arrived
        )
        if not self._drive(lambda: lookup.is_done, timeout_ms, lookup.advance):
            missing = ", ".join(str(key) for key in timestamps if key not in lookup.found)
            raise TimedOut(f"no offsets in time for {missing}: do these partitions exist?")
        for error in lookup.failed.values():
            raise error
        return lookup.found

    def _edge_offsets(
        self, partitions: Iterable[Any], timestamp: int, timeout_ms: int | None, call: str
    ) -> dict[TopicPartition, int]:
        keys = arguments.partitions(partitions, call)
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, call)
        with self._guard:
            found = self._look_up(dict.fromkeys(keys, timestamp), timeout_ms)
        return {key: 0 if offset is None else offset.offset for key, offset in found.items()}
