"""`GroupOperation`: a classic group's wait for an event, with a time limit.

    wait for     ends when                         or after
    join         all members have joined           the rebalance time-out
    sync         all members have sent SyncGroup   the rebalance time-out
    heartbeat    the member is removed             the session time-out (`DelayedHeartbeat`)

`Rebalances` begins these waits and acts when their time is up: it removes a member whose session
expires.
"""

from __future__ import annotations

from embedlog.coordinator.result import Result
from embedlog.purgatory.delayed_operation import DelayedOperation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any

    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.purgatory.purgatory import DelayedOperationPurgatory


class GroupOperation(DelayedOperation):
    """Waits in `purgatory` for at most `delay_ms`.

    The shard's lock guards both ends of the wait. When the event occurs, the code that sees it
    calls `end`; if the time is up first, `time_is_up` runs as a write of the shard. A purgatory is
    touched only after the lock is released, so another thread may run between the decision and the
    purgatory; therefore `end` marks the operation first.

    Requires for `begin` and `end`: the shard's lock.
    """

    __slots__ = ("_time_is_up", "context", "is_over", "key", "purgatory")

    def __init__(
        self,
        context: ShardContext,
        purgatory: DelayedOperationPurgatory,
        key: Hashable,
        delay_ms: int,
        time_is_up: Callable[[], Result[Any]],
    ) -> None:
        super().__init__(delay_ms)
        self.context = context
        self.purgatory = purgatory
        self.key = key
        self.is_over = False
        self._time_is_up = time_is_up

    def begin(self) -> None:
        self.context.defer(self.watch)

    def end(self) -> None:
        """End the wait: `time_is_up` is not called any more."""
        if not self.is_over:
            self.is_over = True
            self.context.defer(self._forget)

    def watch(self) -> None:
        """Enter the purgatory, unless the wait is over already. Requires: no shard's lock."""
        self.purgatory.try_complete_else_watch(self, (self.key,))

    def try_complete(self) -> bool:
        return self.is_over and self.complete_held()

    def on_complete(self) -> None:
        """Do nothing: the code that called `end` has already acted."""

    def run(self) -> None:
        """Run `time_is_up` as a write of the shard, unless the wait is over."""
        if not self.is_over:
            self.context.write(self._decide)

    def _decide(self, _shard: Any) -> Result[Any]:
        return Result() if self.is_over else self._time_is_up()

    def _forget(self) -> None:
        self.purgatory.check_and_complete(self.key)


class DelayedHeartbeat(GroupOperation):
    """One session of a member, or of a client that got a member id but has not joined (KIP-394).

    A heartbeat only stores a new `deadline_ms`. A new operation for each heartbeat would have to
    enter and leave two lists and a timer. If the deadline has moved when the timer runs, the
    session enters the timer again for the rest: once per session time-out, not per heartbeat.
    """

    __slots__ = ("_is_watched", "_wakes_at_ms", "deadline_ms")

    def __init__(
        self,
        context: ShardContext,
        key: tuple[str, str],
        timeout_ms: int,
        time_is_up: Callable[[], Result[Any]],
    ) -> None:
        """`key` is (group id, member id).

        `time_is_up` may find that the session goes on, because the member was heard at the last
        moment or waits for an answer. Then it defers `watch` again.
        """
        super().__init__(context, context.heartbeat_purgatory, key, timeout_ms, time_is_up)
        self.deadline_ms = self._wakes_at_ms = context.monotonic_ms() + timeout_ms
        """The end of the session, on the monotonic clock."""
        self._is_watched = False

    def keep_alive(self, timeout_ms: int) -> None:
        """Let the session end in `timeout_ms`. Requires: the shard's lock."""
        # Store the deadline, then read the wake-up. `watch` uses the opposite order, so one of two
        # concurrent calls sees the value of the other.
        self.deadline_ms = deadline_ms = self.context.monotonic_ms() + timeout_ms
        if deadline_ms < self._wakes_at_ms:
            self.context.defer(self.watch)

    def expire(self) -> None:
        """Let the session end now. Requires: the shard's lock."""
        self.deadline_ms = self.context.monotonic_ms()
        self.context.defer(self.run)

    def watch(self) -> None:
        """Schedule `run` for the deadline. Only the first call enters the purgatory's lists."""
        with self._lock:
            while not self.is_completed:
                self._wakes_at_ms = deadline_ms = self.deadline_ms
                # At least 1 ms: a task without delay would run in this call.
                self.delay_ms = max(1, deadline_ms - self.context.monotonic_ms())
                if self._is_watched:
                    self.purgatory.timer.add(self)
                else:
                    self._is_watched = True
                    super().watch()
                if self.deadline_ms >= deadline_ms:
                    return

    def run(self) -> None:
        """If the session was kept alive, enter only the timer again: the shard is not written."""
        if self.deadline_ms > self.context.monotonic_ms():
            self.watch()
        else:
            super().run()
