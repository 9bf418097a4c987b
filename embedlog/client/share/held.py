"""`HeldRecords`: a share consumer for a caller that keeps records while it fetches more.

The application of a `ShareConsumer` acknowledges all records of a poll before the next poll. The
workers of a queue take records one by one, and finish them in any order.
"""

from __future__ import annotations

from _weakref import ref

from embedlog.client.share.consumer import shared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Protocol

    from embedlog.client.connect import Target
    from embedlog.client.share.acknowledgements import Callback
    from embedlog.client.share.record import ShareRecord
    from embedlog.common import TopicPartition
    from embedlog.errors import KafkaError
    from embedlog.runtime import Runtime

    class Holder(Protocol):
        """The caller that has the records."""

        def settled(
            self, offsets: dict[TopicPartition, set[int]], error: KafkaError | None
        ) -> None:
            """Take the outcome of acknowledgements."""

        def has(self, record: ShareRecord) -> bool:
            """Return whether `take` of `HeldRecords.drive` has got this record."""

        def lost(self, records: list[ShareRecord]) -> None:
            """Take records whose locks have ended: the session with their leader was lost."""


_PATIENCE_MS = 500
_GRACE_MS = 1000
"""The longest wait for the answer to a fetch after the end of a call's time."""
_PATIENCE_WITH_RECORDS_MS = 25
"""While a fetch waits at a leader, acknowledgements for this leader wait behind it."""


class HeldRecords:
    """The records that one member of a share group has, until they are acknowledged.

    Used by one thread at a time; any thread may call `stir`.
    """

    def __init__(
        self,
        target: Target,
        topics: Iterable[str],
        settings: Mapping[str, Any],
        holder: Holder,
    ) -> None:
        self._holder = holder
        given = {**settings, "share.acknowledgement.mode": "explicit"}
        self._consumer, self._parts, self._driver = shared(target, given, {})
        self.runtime: Runtime = self._parts.transport.runtime
        self._clock = self.runtime.clock
        self._in_flight = self._parts.in_flight
        self._leaders = self._driver.leaders
        self._turn = self._driver.coordinator.duty.turn
        self._fetches = False
        """Whether the present pass may fetch."""
        self._has_news = False
        """True if acknowledgements got outcomes in this pass."""
        self._parts.outcomes.callback = _weakly(self)
        self._consumer.subscribe(topics)

    @property
    def has_fetched(self) -> bool:
        """True once a leader has answered."""
        return self.lock_ms is not None

    @property
    def lock_ms(self) -> int | None:
        """How long a record is locked; None before the first answer."""
        return self._leaders.answers.lock_timeout_ms

    def drive(
        self,
        step: Callable[[], int | None],
        take: Callable[[list[ShareRecord]], None],
        until_ms: int,
    ) -> None:
        """Make passes until the monotonic time `until_ms`, or until `step` returns None.

        Each pass calls `step`. It may acknowledge records, and returns how many records to fetch
        now. `take` gets fetched records.

        Raises:
            RecordUnreadable: a batch is damaged; its records were rejected.
            KafkaError: a broker or the group's coordinator refused, and a retry cannot help.
            ClosedError: the cluster was closed.
        """
        driver = self._driver
        with driver.guard:
            now_ms = self._clock.monotonic_ms()
            while (wanted := step()) is not None:
                driver.begin_commit(None, now_ms)
                self._fetches = self._limit(wanted, until_ms - now_ms)
                self._check_woken()
                delay = driver.waiter.advance(now_ms, driver.coordinate, self._exchange)
                self._tell_lost()
                self._take_again(take)
                found = driver.hand_out.records() if driver.hand_out.has_some else None
                self._has_news = False
                driver.settle()
                if found:
                    take(list(found))
                if found or self._has_news:
                    continue
                last_ms = until_ms + _GRACE_MS if self._leaders.is_fetching else until_ms
                if now_ms >= last_ms:
                    return
                self._check_woken()
                driver.waiter.wait(delay, last_ms, now_ms)
                self._check_woken()
                now_ms = self._clock.monotonic_ms()

    def _tell_lost(self) -> None:
        """Tell the holder of the records whose locks have ended with a session."""
        for node_id in self._leaders.lost_sessions():
            lost = self._in_flight.lose(node_id)
            if lost:
                self._holder.lost(lost)

    def _take_again(self, take: Callable[[list[ShareRecord]], None]) -> None:
        """Give records that a Ctrl-C kept from `take`; renewed records stay with their holder."""
        again = [record for found in self._in_flight.take_again().values() for record in found]
        missed = [record for record in again if not self._holder.has(record)]
        if missed:
            take(missed)

    def _exchange(self, now_ms: int) -> int | None:
        if not self._leaders.take_arrived(now_ms):
            return self._leaders.advance(now_ms, fetches=self._fetches)
        # The next pass decides about the next fetch. A fetch without a waiting worker would lock a
        # record, and acknowledgements would wait for its answer.
        self._leaders.advance(now_ms, fetches=False)
        return 0

    def _check_woken(self) -> None:
        if self._driver.is_woken:
            self._driver.raise_woken()

    def outcome(self, offsets: dict[TopicPartition, set[int]], error: KafkaError | None) -> None:
        """Take the outcome of acknowledgements."""
        self._has_news = True
        self._holder.settled(offsets, error)

    def _limit(self, wanted: int, left_ms: int) -> bool:
        """Set the limits of the next fetch; return whether to fetch at all.

        A fetch waits no longer than its call: later it would lock records that no worker takes.
        """
        if not wanted:
            return False
        limits = self._leaders.limits
        limits.count_max = self._driver.hand_out.count_max = wanted
        patience_ms = _PATIENCE_WITH_RECORDS_MS if self._in_flight.open_count else _PATIENCE_MS
        if self._leaders.is_acknowledging:
            patience_ms = 0  # the outcomes come with the answer
        limits.max_wait_ms = max(0, min(patience_ms, left_ms))
        return True

    def acknowledge(self, record: ShareRecord, kind: int) -> bool:
        """Choose the type of a record; return False if the member does not have the record.

        Requires: inside `step` of `drive`, or of `keep`.
        """
        return self._in_flight.acknowledge((record.topic, record.partition), record.offset, kind)

    def keep(self, step: Callable[[], object]) -> bool:
        """Send acknowledgements that `step` makes, from a duty of the scheduler.

        Returns False if the turn belongs to another thread now; `step` is not called then.
        Requires: no thread is in `drive`.
        """
        if self._driver.guard.is_closed or not self._turn.acquire(blocking=False):
            return False
        try:
            step()
            now_ms = self._clock.monotonic_ms()
            self._driver.begin_commit(None, now_ms)
            self._leaders.advance(now_ms, fetches=False)
        finally:
            self._turn.release()
        return True

    def stir(self) -> None:
        """Let the thread in `drive` make another pass now."""
        self._driver.waiter.arrived()
        self._parts.transport.wake()

    def close(self, timeout_s: float | None = None) -> None:
        """Send the acknowledgements, release all other records, and leave the group."""
        self._consumer.close(timeout_s)


def _weakly(held: HeldRecords) -> Callback:
    """Return `held.outcome`, for the membership's duty, which must not keep `held` alive."""
    reference = ref(held)

    def outcome(offsets: dict[TopicPartition, set[int]], error: KafkaError | None) -> None:
        found = reference()
        if found is not None:
            found.outcome(offsets, error)

    return outcome
