"""What the delayed operations of classic groups have in common."""

from __future__ import annotations

from abc import abstractmethod

from embedlog.coordinator.result import Result
from embedlog.purgatory.delayed_operation import DelayedOperation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import Any

    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.purgatory.purgatory import DelayedOperationPurgatory


class GroupOperation(DelayedOperation):
    """Something a group waits for: it is over, or its time is up.

    Both are decided under the shard's lock. Who finds that the wait is over calls `end`; when the
    time is up and it is not over, `time_is_up` runs as a write of the shard. A purgatory is touched
    after the lock is released only, so between the decision and the purgatory another thread may
    come; that is why `end` marks the operation first.

    Requires for `begin` and `end`: the shard's lock.
    """

    __slots__ = ("context", "is_over", "key", "purgatory")

    def __init__(
        self,
        context: ShardContext,
        purgatory: DelayedOperationPurgatory,
        key: Hashable,
        delay_ms: int,
    ) -> None:
        super().__init__(delay_ms)
        self.context = context
        self.purgatory = purgatory
        self.key = key
        self.is_over = False

    def begin(self) -> None:
        """Wait from now on."""
        self.context.defer(self.watch)

    def end(self) -> None:
        """The wait is over: nothing more happens, and nothing of it is kept."""
        if not self.is_over:
            self.is_over = True
            self.context.defer(self._forget)

    @abstractmethod
    def time_is_up(self) -> Result[Any]:
        """The time came before the end. Requires: the shard's lock."""

    def watch(self) -> None:
        """Enter the purgatory, unless it is over by now. Requires: no shard's lock."""
        self.purgatory.try_complete_else_watch(self, (self.key,))

    def try_complete(self) -> bool:
        """Complete when it is over."""
        return self.is_over and self.complete_held()

    def on_complete(self) -> None:
        """Whoever ended it has done what was to be done."""

    def run(self) -> None:
        """The timer's call. An operation that is not over after this has entered the timer anew."""
        if not self.is_over:
            self.context.write(self._decide)

    def _decide(self, _shard: Any) -> Result[Any]:
        return Result() if self.is_over else self.time_is_up()

    def _forget(self) -> None:
        self.purgatory.check_and_complete(self.key)
