"""`GroupOperation`: something that a classic group waits for, until it is over or its time is up.

    join         the members are to join           until all have, or the rebalance time-out
    sync         they are to send SyncGroup        until all have, or the rebalance time-out
    heartbeat    a member is to show itself        `DelayedHeartbeat`: the session time-out

`Rebalances` begins them and says what happens when the time is up.
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

    That it is over and that its time is up are both decided under the shard's lock. Code that
    finds that the wait is over calls `end`; when the time is up first, `time_is_up` runs as a write
    of the shard. A purgatory is touched only after the lock is released, so another thread may come
    between the decision and the purgatory; that is why `end` marks the operation first.

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
        """`time_is_up` is called under the shard's lock."""
        super().__init__(delay_ms)
        self.context = context
        self.purgatory = purgatory
        self.key = key
        self.is_over = False
        self._time_is_up = time_is_up

    def begin(self) -> None:
        """Wait from now on."""
        self.context.defer(self.watch)

    def end(self) -> None:
        """The wait is over: nothing more happens, and nothing of it is kept."""
        if not self.is_over:
            self.is_over = True
            self.context.defer(self._forget)

    def watch(self) -> None:
        """Enter the purgatory, unless it is over by now. Requires: no shard's lock."""
        self.purgatory.try_complete_else_watch(self, (self.key,))

    def try_complete(self) -> bool:
        """Complete when it is over."""
        return self.is_over and self.complete_held()

    def on_complete(self) -> None:
        """Nothing: the code that ended it has done what was to be done."""

    def run(self) -> None:
        """The timer's call. An operation that is not over after this has entered the timer anew."""
        if not self.is_over:
            self.context.write(self._decide)

    def _decide(self, _shard: Any) -> Result[Any]:
        return Result() if self.is_over else self._time_is_up()

    def _forget(self) -> None:
        self.purgatory.check_and_complete(self.key)
