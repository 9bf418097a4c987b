"""`PendingWrite`: an operation on a shard that writes, on its way to its answer.

The answer is given once its records are committed; the operation may have been told before that
they are in the log, or why they are not.
"""

from __future__ import annotations

from embedlog.common import Generic
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from embedlog.coordinator.result import Result
    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.errors import KafkaError

    S = TypeVar("S")
    T = TypeVar("T")
else:
    S = T = None


class PendingWrite(Generic[S, T]):
    """`operation(shard)` says what to write. Requires the shard's lock, but to answer."""

    __slots__ = ("context", "end_offset", "is_committed", "operation", "pending", "result")

    def __init__(self, operation: Callable[[S], Result[T]], context: ShardContext | None) -> None:
        self.operation = operation
        self.context = context
        self.pending: Pending[T] = Pending()
        self.result: Result[T] | None = None
        self.end_offset = 0
        self.is_committed = False

    def appended(self, error: KafkaError | None) -> None:
        """Tell the operation, if it wants to know. Requires: the shard's lock."""
        assert self.result is not None, self.operation
        if self.result.on_append is not None:
            self.result.on_append(error)

    def answer(self) -> None:
        """Give the operation's own answer."""
        assert self.result is not None, self.operation
        response: Any = self.result.response
        if isinstance(response, Pending):
            response.add_callback(self._pass_on)
        else:
            self.pending.complete(response)

    def answer_error(self, error: KafkaError) -> None:
        """Fail, unless `on_append` has given an answer of its own."""
        response = None if self.result is None else self.result.response
        if isinstance(response, Pending) and response.done():
            self._pass_on(response)
        else:
            self.pending.fail(error)

    def _pass_on(self, response: Pending[T]) -> None:
        error = response.error()
        if error is None:
            self.pending.complete(response.result())
        else:
            self.pending.fail(error)
