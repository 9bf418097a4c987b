"""A classic member's session, which ends if the member is silent for too long."""

from __future__ import annotations

from embedlog.coordinator.group.classic.group_operation import GroupOperation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.coordinator.result import Result
    from embedlog.coordinator.shard_context import ShardContext


class DelayedHeartbeat(GroupOperation):
    """One session of a member, or of an id that has not joined yet (KIP-394).

    A heartbeat only moves `deadline_ms`: one store, where a new operation for each heartbeat would
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
        # Store the deadline, then read the wake-up; `watch` uses the opposite order.
        self.deadline_ms = deadline_ms = self.context.monotonic_ms() + timeout_ms
        if deadline_ms < self._wakes_at_ms:
            self.context.defer(self.watch)

    def watch(self) -> None:
        """Enter the purgatory, or the timer again, so that the timer wakes at the deadline."""
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
        """Check the deadline first: a session that was kept alive costs no look at the shard."""
        if self.deadline_ms > self.context.monotonic_ms():
            self.watch()
        else:
            super().run()
