"""Appended records that wait to be committed: by the replicas, by the disk, or by both.

`DelayedProduce` belongs to a request, `DelayedAppend` to a producer in this process.

On topics with the durability `fsync` every acknowledgement waits for the sync of its records; with
acks=1 the sync on this broker is enough, with acks=-1 the high watermark must have passed them. On
other topics only acks=-1 waits, until the high watermark has passed the records.
"""

from __future__ import annotations

from embedlog.errors import error_for
from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.runtime.pending import Pending
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.replication.partition import Partition
    from embedlog.storage.log_values import LogAppendInfo
    from wire.schemas.produce import PartitionProduceResponse, ProduceResponse


class AppendedPartition:
    """A partition of a Produce request whose records are appended but not committed.

    `answer` is its part of the response; it says REQUEST_TIMED_OUT until the outcome is known.
    """

    __slots__ = ("answer", "is_local", "partition", "required_offset")

    def __init__(
        self,
        partition: Partition,
        required_offset: int,
        answer: PartitionProduceResponse,
        *,
        is_local: bool = False,
    ) -> None:
        self.partition = partition
        self.required_offset = required_offset
        """The offset after the last record of the append. The append is committed once the high
        watermark has reached it.
        """
        self.answer = answer
        self.is_local = is_local
        """Whether a sync on this broker is enough, without the other replicas (acks=1)."""


class DelayedProduce(DelayedOperation):
    """One waiting Produce request; `response` holds the answers of all its partitions."""

    __slots__ = ("_has_moved", "_on_moved", "_response", "_storage_error", "_waiting", "pending")

    def __init__(
        self,
        timeout_ms: int,
        appended: Sequence[AppendedPartition],
        response: ProduceResponse,
        storage_error: int = ErrorCode.KAFKA_STORAGE_ERROR,
        on_moved: Callable[[ProduceResponse], None] | None = None,
    ) -> None:
        super().__init__(timeout_ms)
        self._storage_error = storage_error
        self._on_moved = on_moved
        self._has_moved = False
        self._waiting = list(appended)
        self._response = response
        self.pending: Pending[ProduceResponse] = Pending()
        for waiting in appended:
            waiting.answer.error_code = ErrorCode.REQUEST_TIMED_OUT

    def try_complete(self) -> bool:
        """Fill in the answers of partitions with a known outcome. Complete once all are known."""
        undecided = []
        for waiting in self._waiting:
            code = commit_state(
                waiting.partition, waiting.required_offset, is_local=waiting.is_local
            )
            if code is None:
                undecided.append(waiting)
                continue
            if code == ErrorCode.KAFKA_STORAGE_ERROR:
                code = self._storage_error
                waiting.answer.error_message = str(waiting.partition.log.failure)
            elif code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                self._has_moved = True
            waiting.answer.error_code = code
        self._waiting = undecided
        return not undecided and self.complete_held()

    def on_complete(self) -> None:
        """Send the answer. The records of timed-out partitions stay in the log."""
        if self._has_moved and self._on_moved is not None:
            self._on_moved(self._response)
        self.pending.complete(self._response)


class DelayedAppend(DelayedOperation):
    """One append of a producer in this process. It fails with the errors of a Produce answer."""

    __slots__ = ("_code", "_info", "_is_local", "_partition", "pending")

    def __init__(
        self, timeout_ms: int, partition: Partition, info: LogAppendInfo, *, is_local: bool = False
    ) -> None:
        super().__init__(timeout_ms)
        self._partition = partition
        self._info = info
        self._is_local = is_local
        self._code: int = ErrorCode.REQUEST_TIMED_OUT
        self.pending: Pending[LogAppendInfo] = Pending()

    def try_complete(self) -> bool:
        code = commit_state(self._partition, self._info.last_offset + 1, is_local=self._is_local)
        if code is None:
            return False
        self._code = code
        return self.complete_held()

    def on_complete(self) -> None:
        """Report the outcome. Records that timed out stay in the log."""
        code = self._code
        if code == ErrorCode.NONE:
            self.pending.complete(self._info)
        elif code == ErrorCode.KAFKA_STORAGE_ERROR:
            self.pending.fail(error_for(code, str(self._partition.log.failure)))
        else:
            self.pending.fail(error_for(code))


def commit_state(
    partition: Partition, required_offset: int, *, is_local: bool = False
) -> int | None:
    """Return the error code of an append up to `required_offset`, or None until it is known.

    With `is_local` (acks=1) the sync on this broker is enough, without the other replicas.
    """
    if partition.retired_with:
        return partition.retired_with.code
    if not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if is_local and partition.remote_replicas is not None:
        if partition.log.durability.synced_offset >= required_offset:
            return ErrorCode.NONE
    elif partition.log.offsets.high_watermark >= required_offset:
        if len(partition.isr) < partition.min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE
    if partition.log.failure is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return None
