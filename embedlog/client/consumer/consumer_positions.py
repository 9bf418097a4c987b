"""The consumer's calls about positions, offsets and what there is to read."""

from __future__ import annotations

from embedlog.client.consumer.consumer_core import ConsumerCore
from embedlog.client.consumer.offset_lookup import OffsetLookup
from embedlog.client.consumer.subscription_state import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    FetchState,
)
from embedlog.common import TopicPartition
from embedlog.errors import TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from embedlog.client.consumer.offset_lookup import OffsetAndTimestamp
    from embedlog.client.group.group_offsets import OffsetAndMetadata
    from embedlog.client.metadata import PartitionInfo, TopicInfo


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
        if isinstance(offset, int):
            number, leader_epoch = offset, -1
        else:
            number, _, leader_epoch = offset
        if number < 0:
            raise ValueError(f"offset {number}: must not be negative")
        with self._guard:
            self._state(partition).seek_unproven(number, leader_epoch)

    def seek_to_beginning(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on at the first record, of all assigned partitions when none is named."""
        self._seek_to(partitions, EARLIEST_TIMESTAMP)

    def seek_to_end(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on at the end (with read_committed: before open transactions)."""
        self._seek_to(partitions, LATEST_TIMESTAMP)

    def position(
        self, partition: TopicPartition | tuple[str, int], timeout_ms: int | None = None
    ) -> int:
        """The offset of the next record to read, looked up if there is none yet.

        Raises:
            TimedOut: it could not be found in time; NoOffsetForPartition: none may be chosen.
        """
        with self._guard:
            state = self._state(partition)
            found = self._until(lambda: state.state == FetchState.FETCHING, timeout_ms)
            if not found:
                raise TimedOut(f"the position of {state.topic_partition} was not found in time")
            return state.offset

    def pause(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Stop handing out records of these partitions; what was fetched is kept.

        A rebalance ends it, unless the partition stays here throughout.
        """
        with self._guard:
            for each in partitions:
                self._state(each).is_paused = True

    def resume(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Hand out records of these partitions again."""
        with self._guard:
            for each in partitions:
                self._state(each).is_paused = False

    def paused(self) -> set[TopicPartition]:
        """The paused partitions."""
        with self._guard:
            return {key for key, state in self._subscription.partitions.items() if state.is_paused}

    def current_lag(self, partition: TopicPartition | tuple[str, int]) -> int | None:
        """Records between the position and the end as of the last fetch; None if not known."""
        with self._guard:
            return self._fetcher.lag(self._state(partition))

    # Looking around

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition, assigned or not."""
        return self._edge_offsets(partitions, EARLIEST_TIMESTAMP, timeout_ms)

    def end_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last readable record of each partition, assigned or not."""
        return self._edge_offsets(partitions, LATEST_TIMESTAMP, timeout_ms)

    def offsets_for_times(
        self,
        timestamps: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a timestamp (ms) in each partition; None if there is none.

        Raises:
            ValueError: a timestamp is negative.
        """
        asked = {TopicPartition(*key): stamp for key, stamp in timestamps.items()}
        for key, stamp in asked.items():
            if stamp < 0:
                raise ValueError(f"timestamp {stamp} for {key}: must not be negative")
        with self._guard:
            return self._look_up(asked, timeout_ms)

    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> list[PartitionInfo]:
        """The partitions of a topic; empty when there is no such topic."""
        with self._guard:
            metadata = self._metadata
            metadata.want(topic)
            self._drive(lambda: topic in metadata.topics or topic in metadata.errors, timeout_ms)
            error = metadata.topic_error(topic)
            if error is not None:
                raise error
            info = metadata.topics.get(topic)
            return [] if info is None else list(info.partitions)

    def list_topics(self, timeout_ms: int | None = None) -> dict[str, TopicInfo]:
        """Every topic of the cluster."""
        with self._guard:
            metadata = self._metadata
            before = metadata.full_version
            metadata.want_all()
            if not self._drive(lambda: metadata.full_version > before, timeout_ms):
                raise TimedOut("the cluster did not describe its topics in time")
            return dict(metadata.topics)

    # Inside

    def _seek_to(self, partitions: tuple[Any, ...], timestamp: int) -> None:
        with self._guard:
            for each in partitions or tuple(self._subscription.partitions):
                self._state(each).reset_to(timestamp)

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
        self, partitions: Iterable[Any], timestamp: int, timeout_ms: int | None
    ) -> dict[TopicPartition, int]:
        keys = [TopicPartition(*each) for each in partitions]
        with self._guard:
            found = self._look_up(dict.fromkeys(keys, timestamp), timeout_ms)
        return {key: 0 if offset is None else offset.offset for key, offset in found.items()}
