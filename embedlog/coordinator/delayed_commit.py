"""The wait for a coordinator's appended records to be committed."""

from __future__ import annotations

from embedlog.coordinator.append_errors import commit_error
from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.replication.delayed_produce import commit_state
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.errors import KafkaError
    from embedlog.replication.partition import Partition


class DelayedCommit(DelayedOperation):
    """Calls `when_decided(error)` once, without a shard's lock.

    `error` is None if the records are committed.
    """

    __slots__ = ("_end_offset", "_error_code", "_partition", "_when_decided")

    def __init__(
        self,
        timeout_ms: int,
        partition: Partition,
        end_offset: int,
        when_decided: Callable[[KafkaError | None], None],
    ) -> None:
        super().__init__(timeout_ms)
        self._partition = partition
        self._end_offset = end_offset
        self._when_decided = when_decided
        self._error_code: int = ErrorCode.REQUEST_TIMED_OUT

    def try_complete(self) -> bool:
        code = commit_state(self._partition, self._end_offset)
        if code is None:
            return False
        self._error_code = code
        return self.complete_held()

    def on_complete(self) -> None:
        """Report the outcome. After a time-out the records stay in the log all the same."""
        self._when_decided(commit_error(self._error_code) if self._error_code else None)
