"""Where a consumer goes on in the partitions it reads."""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.consumer.subscription_state import FetchState
from embedlog.errors import TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.consumer.driver import ConsumerDriver
    from embedlog.client.consumer.fetch_buffer import FetchBuffer
    from embedlog.client.consumer.group.group_offsets import OffsetAndMetadata
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.client.consumer.subscription_state import PartitionState
    from embedlog.common import TopicPartition


_OFFSET_FIELDS = 3
"""Of an `OffsetAndMetadata`."""


class PositionCalls:
    """Seeking and pausing."""

    __slots__ = ("_buffer", "_driver", "_guard", "_subscription")

    def __init__(self, parts: ConsumerParts, driver: ConsumerDriver, buffer: FetchBuffer) -> None:
        self._driver = driver
        self._guard = driver.guard
        self._buffer = buffer
        self._subscription = parts.subscription

    def seek(
        self, partition: TopicPartition | tuple[str, int], offset: int | OffsetAndMetadata
    ) -> None:
        """See `Consumer.seek`."""
        given: Any = offset
        leader_epoch = -1
        if isinstance(given, tuple) and len(given) == _OFFSET_FIELDS:
            given, _, leader_epoch = given
        number = arguments.offset(given, "seek")
        with self._guard:
            self._state(partition, "seek").seek_unproven(number, leader_epoch)

    def seek_to(self, partitions: tuple[Any, ...], timestamp: int, call: str) -> None:
        """Go on where ListOffsets finds this timestamp, in all partitions when none is named."""
        with self._guard:
            chosen = partitions or tuple(self._subscription.partitions)
            for state in self._states(chosen, call):
                state.reset_to(timestamp)

    def position(
        self, partition: TopicPartition | tuple[str, int], timeout_ms: int | None = None
    ) -> int:
        """See `Consumer.position`."""
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, "position")
        with self._guard:
            state = self._state(partition, "position")
            found = self._driver.until(lambda: state.state == FetchState.FETCHING, timeout_ms)
            if not found:
                raise TimedOut(f"the position of {state.topic_partition} was not found in time")
            return state.offset

    def set_paused(self, partitions: tuple[Any, ...], *, is_paused: bool, call: str) -> None:
        """See `Consumer.pause` and `Consumer.resume`."""
        with self._guard:
            for state in self._states(partitions, call):
                state.is_paused = is_paused

    def paused(self) -> set[TopicPartition]:
        """See `Consumer.paused`."""
        with self._guard:
            return {key for key, state in self._subscription.partitions.items() if state.is_paused}

    def current_lag(self, partition: TopicPartition | tuple[str, int]) -> int | None:
        """See `Consumer.current_lag`."""
        with self._guard:
            return self._buffer.lag(self._state(partition, "current_lag"))

    def _state(self, partition: TopicPartition | tuple[str, int], call: str) -> PartitionState:
        return self._subscription.state(arguments.partition(partition, call))

    def _states(self, partitions: tuple[Any, ...], call: str) -> list[PartitionState]:
        """Those of all partitions named, before anything becomes of one."""
        named = arguments.each_partition(partitions, call)
        return [self._subscription.state(each) for each in named]
