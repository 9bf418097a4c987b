"""A session: it ends when its member has not shown itself for too long."""

from __future__ import annotations

from embedlog.coordinator.group.classic.group_operation import GroupOperation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.coordinator.result import Result
    from embedlog.coordinator.shard_context import ShardContext


class DelayedHeartbeat(GroupOperation):
    """One session of a member, or of an id that was given out and has not joined (KIP-394).

    A heartbeat only moves `deadline_ms`: that is one store, where a new operation for each would
    enter and leave two lists and a timer. When the timer runs and the deadline has moved on, the
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
        """`key`: group id and member id. `time_is_up` may find that the session goes on: the member
        showed itself at the last moment, or waits for an answer. Then it defers `watch` once more.
        """
        super().__init__(context, context.heartbeat_purgatory, key, timeout_ms, time_is_up)
        self.deadline_ms = self._wakes_at_ms = context.monotonic_ms() + timeout_ms
        """When the session ends, on the monotonic clock."""
        self._is_watched = False

    def keep_alive(self, timeout_ms: int) -> None:
        """The session ends in `timeout_ms`. Requires: the shard's lock."""
        # The deadline is stored before the wake-up is read; `watch` does it the other way round.
        self.deadline_ms = deadline_ms = self.context.monotonic_ms() + timeout_ms
        if deadline_ms < self._wakes_at_ms:
            self.context.defer(self.watch)

    def watch(self) -> None:
        """Enter the purgatory or, once there, the timer again, so that it wakes at the deadline."""
        with self._lock:
            while not self.is_completed:
                self._wakes_at_ms = deadline_ms = self.deadline_ms
                # At least 1 ms: a task that is due at once would run in this call.
                self.delay_ms = max(1, deadline_ms - self.context.monotonic_ms())
                if self._is_watched:
                    self.purgatory.timer.add(self)
                else:
                    self._is_watched = True
                    super().watch()
                if self.deadline_ms >= deadline_ms:
                    return

    def run(self) -> None:
        """The timer's call: a member that showed itself meanwhile costs no look at the shard."""
        if self.deadline_ms > self.context.monotonic_ms():
            self.watch()
        else:
            super().run()
