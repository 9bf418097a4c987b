"""`ConsumerDriver`: the loop in which a consumer's calls wait. Each pass advances every part."""

from __future__ import annotations

from _thread import get_ident

from embedlog import errors
from embedlog.client import arguments
from embedlog.client.consumer.guard import Guard
from embedlog.client.consumer.subscription_state import FetchState, SubscriptionType
from embedlog.client.consumer.waking import Wakeable
from embedlog.client.errors import IllegalState, because
from embedlog.client.lacks import is_missing, lack_of
from embedlog.errors import ClosedError, EmbedlogError
from embedlog.runtime.outer_call import (
    INSIDE,
    PUT_OFF,
    closed_during,
    end_calls,
    nested,
)
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from embedlog.client.consumer.fetcher import Fetcher
    from embedlog.client.consumer.group.coordinator import ConsumerCoordinator
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.client.consumer.positions import Positions
    from embedlog.client.consumer.subscription_state import PartitionState
    from embedlog.client.waiting import Waiter

    T = TypeVar("T")


_LEADER_PATIENCE_MS = 5_000
"""An election may leave a partition without a leader for this long."""


class ConsumerDriver(Wakeable):
    """Advances the metadata, the group, the positions and the fetches of one consumer."""

    def __init__(
        self,
        parts: ConsumerParts,
        waiter: Waiter,
        fetcher: Fetcher,
        positions: Positions,
        coordinator: ConsumerCoordinator | None,
    ) -> None:
        transport = parts.transport
        guard = Guard(transport.runtime.scheduler if transport.in_process else None)
        super().__init__(transport, waiter, guard)
        self._clock = parts.transport.runtime.clock
        self._metadata = parts.metadata
        self._subscription = parts.subscription
        self._api_timeout_ms: int = parts.settings["default.api.timeout.ms"]
        self._buffer = fetcher.buffer
        self._fetcher = fetcher
        self._positions = positions
        self.coordinator = coordinator
        """None if the consumer has no group.id."""
        self.is_closing = False
        self._checked_answers = 0
        """The number of the metadata answer in which missing partitions were sought."""

    @property
    def group(self) -> ConsumerCoordinator:
        """The object that handles the consumer's group.

        Raises:
            InvalidGroupId: the consumer has no group.id.
        """
        if self.coordinator is None:
            raise errors.InvalidGroupId("the consumer has no group.id")
        return self.coordinator

    # Polling

    def poll(self, timeout_ms: int, collect: Callable[[], T | None]) -> T | None:
        """Make passes until `collect` returns a result, and return it; None on timeout."""
        if type(timeout_ms) is not int or timeout_ms < 0:
            timeout_ms = arguments.timeout_ms(timeout_ms, "poll")
        me = get_ident()
        if me in INSIDE:
            raise nested("Consumer.poll")
        INSIDE[me] = "Consumer.poll"
        try:
            with self.guard:
                if self._subscription.type == SubscriptionType.NONE:
                    raise IllegalState("nothing to read: call subscribe or assign first")
                if self.is_woken:
                    self.raise_woken()
                if self.coordinator is not None:
                    self._coordinate(self._clock.monotonic_ms())
                buffer = self._buffer
                found = collect() if buffer.first or buffer.errors else None
                if found is None:
                    found = self._fetch_and_collect(timeout_ms, collect)
                if found is not None and not self._transport.in_process and buffer.is_behind:
                    # Send the next fetch now, for the time in which the application works.
                    self._fetcher.advance(self._clock.monotonic_ms())
                return found
        except EmbedlogError as error:
            if self.is_gone() and type(error) is not ClosedError:
                raise closed_during("Consumer.poll") from error
            raise
        finally:
            del INSIDE[me]
            if PUT_OFF:
                end_calls()

    def _fetch_and_collect(self, timeout_ms: int, collect: Callable[[], T | None]) -> T | None:
        now_ms = self._clock.monotonic_ms()
        deadline = now_ms + timeout_ms
        while True:
            delay = self._advance(now_ms)
            found = collect()
            if found is not None:
                return found
            # Check after the pass, because the pass resets the waiter's signal. A later wakeup sets
            # the signal again and ends the wait.
            if self.is_woken:
                self.raise_woken()
            if self._metadata.answer_count != self._checked_answers:
                self._tell_missing(now_ms)
            self.waiter.wait(delay, deadline, now_ms)
            if self.is_woken:
                self.raise_woken()
            now_ms = self._clock.monotonic_ms()
            if self._fetcher.take_arrived(now_ms):
                # The answers most likely have records: collect them before the next pass.
                found = collect()
                if found is not None:
                    return found
            if now_ms >= deadline:
                # Time is over: one more pass takes records that arrived at the last moment.
                self._advance(now_ms)
                return collect()

    def _advance(self, now_ms: int) -> int | None:
        """Advance every part once; return milliseconds until the next useful pass, if known."""
        if self.coordinator is None:
            return self.waiter.advance(now_ms, self._positions.advance, self._fetcher.advance)
        return self.waiter.advance(
            now_ms, self._coordinate, self._positions.advance, self._fetcher.advance
        )

    def _coordinate(self, now_ms: int) -> int | None:
        """Advance the group. May call the user's callbacks."""
        coordinator = self.coordinator
        assert coordinator is not None, self
        delay = coordinator.poll(now_ms)
        if coordinator.member.is_joined and not coordinator.duty.is_running:
            self.guard.share(coordinator.duty.turn)
            coordinator.duty.start()
        return delay

    def _tell_missing(self, now_ms: int) -> None:
        """Warn of assigned partitions without a leader, and of a pattern that matches nothing.

        The metadata itself warns of missing topics.
        """
        metadata, subscription = self._metadata, self._subscription
        self._checked_answers = metadata.answer_count
        warnings = metadata.wanted.warnings
        for key in subscription.partitions:
            if key[0] not in metadata.topics or metadata.leader(*key) is not None:
                warnings.is_over(key)
                continue
            lack = lack_of(metadata, *key)
            patience_ms = (
                _LEADER_PATIENCE_MS if key[1] < len(metadata.topics[key[0]].partitions) else 0
            )
            warnings.warn_if_lasting(
                key, now_ms, "nothing is read of %s: %s", key, lack, patience_ms=patience_ms
            )
        pattern = subscription.pattern
        if pattern is not None and metadata.full_version and not subscription.topics:
            warnings.warn_if_lasting(
                pattern, now_ms, "no topic of the cluster matches the pattern %r", pattern.pattern
            )

    # Calls that wait for anything but records

    def until(self, is_done: Callable[[], bool], timeout_ms: int | None) -> bool:
        """Advance positions and fetches, but no rebalance, until `is_done()`; False on timeout."""
        steps = [self._positions.advance, self._fetcher.advance]
        if self.coordinator is not None:
            steps.insert(0, self.coordinator.keep)
        return self.drive(is_done, timeout_ms, *steps)

    def find_position(self, state: PartitionState, timeout_ms: int | None) -> None:
        """Wait until a position is known.

        Raises:
            TimedOut: it was not found in time.
            UnknownTopicOrPartition: in process, there is no such partition.
        """
        metadata, key = self._metadata, state.topic_partition
        since = metadata.answer_count
        is_final = self._transport.is_authority
        if metadata.leader(*key) is None:
            metadata.request_update()

        def is_lost() -> bool:
            return is_final and is_missing(metadata, *key, since=since)

        self.until(lambda: state.state == FetchState.FETCHING or is_lost(), timeout_ms)
        if state.state == FetchState.FETCHING:
            return
        cause = metadata.last_error or lack_of(metadata, *key)
        if cause is not None and is_lost():
            raise cause
        raise errors.TimedOut(f"the position of {key} was not found in time{because(cause)}")

    def drive(
        self,
        is_done: Callable[[], bool],
        timeout_ms: int | None,
        *steps: Callable[[int], int | None],
    ) -> bool:
        """Advance metadata and `steps` until `is_done()`, and send heartbeats; False on timeout."""

        def is_over() -> bool:
            if self.is_woken and not self._is_protected:
                self.raise_woken()
            return is_done()

        coordinator = self.coordinator
        if coordinator is not None and coordinator.keep not in steps:
            # Not `keep`, which raises the group's errors: this call does not concern the group.
            steps = (coordinator.keep_alive, *steps)
        limit = self._api_timeout_ms if timeout_ms is None else timeout_ms
        return self.waiter.until(is_over, limit, *steps)

    def describe(self, topic: str, timeout_ms: int | None) -> bool:
        """Request metadata unless the topic is known, and wait for the answer; False on timeout.

        The answer to an earlier request may be outdated: the driver waits for it and asks again.
        """
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
                    earlier = None
                    ask()
                return False
            error = metadata.errors.get(topic)
            # A topic without a leader is still being created: wait for the leader.
            return error is not None and error.code != ErrorCode.LEADER_NOT_AVAILABLE

        if topic not in metadata.topics and earlier is None:
            ask()
        return self.drive(is_described, timeout_ms)

    # Waking

    @property
    def _is_protected(self) -> bool:
        """True while a wakeup must wait, because `close` or a user's callback is running."""
        coordinator = self.coordinator
        return self.is_closing or (coordinator is not None and coordinator.calls.is_calling)
