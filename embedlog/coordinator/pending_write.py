"""`PendingWrite`: a shard's operation on the way from its append to its answer.

The answer waits until the records are committed. The operation itself may learn earlier that its
records are appended, or why they are not.
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
    """`operation(shard)` returns the records to write. Answering needs no lock, the rest the
    shard's.
    """

    __slots__ = ("context", "end_offset", "is_committed", "operation", "pending", "result")

    def __init__(self, operation: Callable[[S], Result[T]], context: ShardContext | None) -> None:
        self.operation = operation
        self.context = context
        self.pending: Pending[T] = Pending()
        self.result: Result[T] | None = None
        self.end_offset = 0
        self.is_committed = False

    def appended(self, error: KafkaError | None) -> None:
        """Call the operation's `on_append`, if it has one. Requires: the shard's lock."""
        assert self.result is not None, self.operation
        if self.result.on_append is not None:
            self.result.on_append(error)

    def answer(self) -> None:
        """Answer with the operation's response."""
        assert self.result is not None, self.operation
        response: Any = self.result.response
        if isinstance(response, Pending):
            response.add_callback(self._pass_on)
        else:
            self.pending.complete(response)

    def answer_error(self, error: KafkaError) -> None:
        """Fail, unless `on_append` has already completed the operation's own response."""
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
