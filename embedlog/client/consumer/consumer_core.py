"""What all calls of a consumer are made of: its parts, and the passes that drive them."""

from __future__ import annotations

from embedlog import errors
from embedlog.client import arguments
from embedlog.client.connect import connect
from embedlog.client.consumer.consumer_guard import Guard
from embedlog.client.consumer.consumer_parts import ConsumerParts
from embedlog.client.consumer.consumer_settings import CONSUMER, complete
from embedlog.client.consumer.fetcher import Fetcher
from embedlog.client.consumer.positions import Positions
from embedlog.client.consumer.subscription_state import (
    ResetPolicy,
    SubscriptionState,
    SubscriptionType,
)
from embedlog.client.errors import IllegalState, WakeupError
from embedlog.client.metadata import Metadata
from embedlog.client.parse_settings import parse
from embedlog.client.waiting import Waiter
from embedlog.common import TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from embedlog.client.connect import Target
    from embedlog.client.consumer.subscription_state import PartitionState
    from embedlog.client.group.consumer_coordinator import ConsumerCoordinator

    T = TypeVar("T")


class ConsumerCore:
    """The state of a consumer; `Consumer` has the calls."""

    def __init__(
        self, target: Target = None, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        self._settings = complete(parse(CONSUMER, config, settings))
        policy = ResetPolicy(self._settings["auto.offset.reset"])
        self._transport = connect(self, target, self._settings)
        try:
            self._build(policy)
        except BaseException:
            self._transport.close()
            raise

    def _build(self, policy: ResetPolicy) -> None:
        self._clock = self._transport.runtime.clock
        self._api_timeout_ms: int = self._settings["default.api.timeout.ms"]
        self._poll_count_max: int = self._settings["max.poll.records"]
        self._metadata = Metadata(
            self._transport,
            self._settings,
            create_topics=self._settings["allow.auto.create.topics"],
        )
        self._waiter = Waiter(self._transport, self._metadata)
        self._subscription = SubscriptionState()
        self._parts = ConsumerParts(
            self._transport,
            self._metadata,
            self._subscription,
            self._settings,
            self._waiter.arrived,
        )
        self._fetcher = Fetcher(self._parts, policy)
        self._positions = Positions(self._parts, policy)
        self._coordinator: ConsumerCoordinator | None = None
        self._is_woken = False
        self._is_closing = False
        self._guard = Guard()
        if self._settings["interceptor.classes"]:
            from embedlog.client.interceptors import InterceptorChain

            chosen = self._settings["interceptor.classes"]
            self._parts.interceptors = InterceptorChain(chosen, self._settings)
        if self._settings["group.id"] is not None:
            from embedlog.client.group.consumer_coordinator import ConsumerCoordinator

            self._coordinator = self._positions.coordinator = ConsumerCoordinator(self._parts)

    # Polling

    def _poll(self, timeout_ms: int, collect: Callable[[], T | None]) -> T | None:
        if type(timeout_ms) is not int or timeout_ms < 0:
            timeout_ms = arguments.timeout_ms(timeout_ms, "poll")
        with self._guard:
            if self._subscription.type == SubscriptionType.NONE:
                raise IllegalState("nothing to read: call subscribe or assign first")
            if self._is_woken:
                self._raise_woken()
            if self._coordinator is not None:
                self._coordinate(self._clock.monotonic_ms())
            found = collect()
            if found is None:
                found = self._fetch_and_collect(timeout_ms, collect)
            if found is not None and not self._transport.in_process and self._fetcher.is_behind:
                # The next fetch is under way while the application works on these records.
                self._fetcher.advance(self._clock.monotonic_ms())
            return found

    def _fetch_and_collect(self, timeout_ms: int, collect: Callable[[], T | None]) -> T | None:
        now_ms = self._clock.monotonic_ms()
        deadline = now_ms + timeout_ms
        while True:
            delay = self._advance(now_ms)
            found = collect()
            if found is not None:
                return found
            # After the pass, which begins a new signal: from here on a wakeup ends the wait.
            if self._is_woken:
                self._raise_woken()
            self._waiter.wait(delay, deadline, now_ms)
            if self._is_woken:
                self._raise_woken()
            now_ms = self._clock.monotonic_ms()
            if self._fetcher.take_arrived(now_ms):
                # Records, most likely: they need not wait for a whole pass.
                found = collect()
                if found is not None:
                    return found
            if now_ms >= deadline:
                # What came at the last moment still counts.
                self._advance(now_ms)
                return collect()

    def _advance(self, now_ms: int) -> int | None:
        """A pass of everything."""
        if self._coordinator is None:
            return self._waiter.advance(now_ms, self._positions.advance, self._fetcher.advance)
        return self._waiter.advance(
            now_ms, self._coordinate, self._positions.advance, self._fetcher.advance
        )

    def _coordinate(self, now_ms: int) -> int | None:
        """The group's part of a pass; callbacks of the user's may run in it."""
        coordinator = self._coordinator
        assert coordinator is not None, self
        delay = coordinator.poll(now_ms)
        if coordinator.member.is_joined and not coordinator.duty.is_running:
            self._guard.share(coordinator.duty.turn)
            coordinator.duty.start()
        return delay

    # Waiting for something else

    def _until(self, is_done: Callable[[], bool], timeout_ms: int | None) -> bool:
        """Drive everything but rebalances and callbacks until `is_done()`; False: not in time."""
        steps = [self._positions.advance, self._fetcher.advance]
        if self._coordinator is not None:
            steps.insert(0, self._coordinator.keep)
        return self._drive(is_done, timeout_ms, *steps)

    def _drive(
        self,
        is_done: Callable[[], bool],
        timeout_ms: int | None,
        *steps: Callable[[int], int | None],
    ) -> bool:
        """Metadata and `steps` until `is_done()`; False: not in time. The member stays one."""

        def is_over() -> bool:
            if self._is_woken and not self._is_protected:
                self._raise_woken()
            return is_done()

        coordinator = self._coordinator
        if coordinator is not None and coordinator.keep not in steps:
            # What has nothing to do with the group does not fail by it: see `keep`.
            steps = (coordinator.keep_alive, *steps)
        limit = self._api_timeout_ms if timeout_ms is None else timeout_ms
        return self._waiter.until(is_over, limit, *steps)

    @property
    def _is_protected(self) -> bool:
        """Does a wakeup have to wait? A callback and a close are not cut short."""
        coordinator = self._coordinator
        return self._is_closing or (coordinator is not None and coordinator.calls.is_calling)

    def _raise_woken(self) -> None:
        self._is_woken = False
        raise WakeupError("wakeup was called")

    # Small things

    def _group(self) -> ConsumerCoordinator:
        if self._coordinator is None:
            raise errors.InvalidGroupId("the consumer has no group.id")
        return self._coordinator

    def _state(self, partition: TopicPartition | tuple[str, int], call: str) -> PartitionState:
        return self._subscription.state(arguments.partition(partition, call))

    def _states(self, partitions: tuple[Any, ...], call: str) -> list[PartitionState]:
        """Those of all partitions named, before anything becomes of one."""
        named = arguments.each_partition(partitions, call)
        return [self._subscription.state(each) for each in named]

    def _count_max(self, max_records: int | None) -> int:
        if max_records is None:
            return self._poll_count_max
        return arguments.count(max_records, "poll", "max_records")
