"""`ShareDriver`: the loop in which a share consumer's calls wait."""

from __future__ import annotations

from embedlog.client.consumer.guard import Guard
from embedlog.client.consumer.waking import Wakeable
from embedlog.client.errors import IllegalState
from embedlog.client.share.record import ShareRecords
from embedlog.client.share.settings import EXPLICIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.share.acknowledgements import ShareCommit
    from embedlog.client.share.coordinator import ShareCoordinator
    from embedlog.client.share.hand_out import ShareHandOut
    from embedlog.client.share.leaders import ShareLeaders
    from embedlog.client.share.parts import ShareParts
    from embedlog.client.waiting import Waiter
    from embedlog.runtime.scheduler import Scheduler


class ShareGuard(Guard):
    """A guard that also refuses calls inside the callback for acknowledgements."""

    __slots__ = ("is_calling",)

    def __init__(self, scheduler: Scheduler | None) -> None:
        super().__init__(scheduler)
        self.is_calling = False
        """True while the callback runs."""

    def __enter__(self) -> None:
        if self.is_calling:
            raise IllegalState("the callback for acknowledgements cannot use its consumer")
        super().__enter__()


class ShareDriver(Wakeable):
    """Advances the metadata, the group, the acknowledgements and the fetches of one consumer."""

    guard: ShareGuard

    def __init__(
        self,
        parts: ShareParts,
        waiter: Waiter,
        leaders: ShareLeaders,
        hand_out: ShareHandOut,
        coordinator: ShareCoordinator,
    ) -> None:
        transport = parts.transport
        guard = ShareGuard(transport.runtime.scheduler if transport.in_process else None)
        super().__init__(transport, waiter, guard)
        self._parts = parts
        self._clock = parts.transport.runtime.clock
        self._assignment = parts.assignment
        self.in_flight = parts.in_flight
        self.leaders = leaders
        self.hand_out = hand_out
        self.coordinator = coordinator
        self._outcomes = parts.outcomes
        self.is_explicit: bool = parts.settings["share.acknowledgement.mode"] == EXPLICIT

    # Polling

    def poll(self, timeout_ms: int) -> ShareRecords:
        """Make passes until there are records, and return them; without records on timeout.

        Requires: inside the guard.
        """
        if not self._assignment.topics:
            raise IllegalState("nothing to read: call subscribe first")
        if self.is_woken:
            self.raise_woken()
        now_ms = self._clock.monotonic_ms()
        self._queue_former(now_ms)
        self.settle()
        self.coordinate(now_ms)
        found = None
        if self._is_ready:
            # Send the acknowledgements first: if Ctrl-C came while they are sent, records that are
            # on their way to the application would be lost.
            self.leaders.advance(now_ms, fetches=False)
            found = self.hand_out.records()
        if found is None:
            found = self._fetch_and_collect(timeout_ms, now_ms)
        if found is not None:
            # The callback waits for the next call: if it raised now, the records would be lost.
            return found
        self.settle()
        return ShareRecords({})

    @property
    def _is_ready(self) -> bool:
        return self.hand_out.has_some or self.in_flight.has_again

    def _queue_former(self, now_ms: int) -> None:
        """Acknowledge the records of former polls.

        Raises:
            IllegalState: in the explicit mode a record is not acknowledged.
        """
        self.begin_commit(None, now_ms)
        if self.is_explicit and (count := self.in_flight.open_count):
            self.leaders.advance(now_ms, fetches=False)
            raise IllegalState(
                f"poll: {count} records of the last poll are not acknowledged; with "
                "share.acknowledgement.mode=explicit each record must be"
            )

    def _fetch_and_collect(self, timeout_ms: int, now_ms: int) -> ShareRecords | None:
        deadline = now_ms + timeout_ms
        while True:
            delay = self.waiter.advance(now_ms, self.coordinate, self._fetch)
            found = self._collect(now_ms)
            if found is not None:
                return found
            # Check after the pass, because the pass resets the waiter's signal. A later wakeup sets
            # the signal again and ends the wait.
            if self.is_woken:
                self.raise_woken()
            self.settle()
            self.waiter.wait(delay, deadline, now_ms)
            if self.is_woken:
                self.raise_woken()
            now_ms = self._clock.monotonic_ms()
            if now_ms >= deadline:
                # Time is over: one more pass takes records that arrived at the last moment.
                self.waiter.advance(now_ms, self.coordinate, self._keep)
                return self._collect(now_ms)

    def _collect(self, now_ms: int) -> ShareRecords | None:
        found = self.hand_out.records()
        if found is None:
            # Acknowledge the gaps of answers without records.
            self.begin_commit(None, now_ms, accepts=False)
        return found

    def _fetch(self, now_ms: int) -> int | None:
        self.leaders.take_arrived(now_ms)
        fetches = not self.in_flight.is_renewing and not self._is_ready
        return self.leaders.advance(now_ms, fetches=fetches)

    def _keep(self, now_ms: int) -> int | None:
        return self.leaders.advance(now_ms, fetches=False)

    def coordinate(self, now_ms: int) -> int | None:
        coordinator = self.coordinator
        delay = coordinator.poll(now_ms)
        if coordinator.member.is_joined and not coordinator.duty.is_running:
            self.guard.share(coordinator.duty.turn)
            coordinator.duty.start()
        return delay

    # Acknowledging

    def begin_commit(
        self, commit: ShareCommit | None, now_ms: int, *, accepts: bool | None = None
    ) -> None:
        """Queue all acknowledgements; the implicit mode by default accepts all other records."""
        chosen = not self.is_explicit if accepts is None else accepts
        taken = self.in_flight.take(accepts=chosen)
        if taken:
            patience_ms: int = self._parts.settings["default.api.timeout.ms"]
            self.leaders.queue(taken, now_ms + patience_ms, commit)

    def commit(self, commit: ShareCommit, timeout_ms: int | None) -> None:
        """Send all acknowledgements and wait for their outcomes, which `commit` has then."""
        now_ms = self._clock.monotonic_ms()
        self.begin_commit(commit, now_ms)

        def is_over() -> bool:
            if self.is_woken:
                self.raise_woken()
            return commit.is_done

        limit = self._parts.settings["default.api.timeout.ms"] if timeout_ms is None else timeout_ms
        self.waiter.until(is_over, limit, self.coordinator.keep, self._keep)
        commit.give_up()
        self.settle()

    def commit_now(self) -> None:
        """Send all acknowledgements that can be sent now."""
        now_ms = self._clock.monotonic_ms()
        self.begin_commit(None, now_ms)
        self.leaders.advance(now_ms, fetches=False)
        self.settle()

    def settle(self) -> None:
        """Call the user's callback for the outcomes that are there."""
        self.guard.is_calling = True
        try:
            self._outcomes.settle()
        finally:
            self.guard.is_calling = False
