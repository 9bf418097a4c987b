"""A DeleteRecords request that waits until every live replica has deleted the records."""

from __future__ import annotations

from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.runtime.pending import Pending
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.replication.partition import Partition
    from wire.schemas.delete_records import (
        DeleteRecordsPartitionResult,
        DeleteRecordsResponse,
    )

NO_WATERMARK = -1


class DeletedPartition:
    """A partition whose leader has deleted the records below `offset`."""

    __slots__ = ("answer", "offset", "partition")

    def __init__(
        self, partition: Partition, offset: int, answer: DeleteRecordsPartitionResult
    ) -> None:
        self.partition = partition
        self.offset = offset
        self.answer = answer


class DelayedDeleteRecords(DelayedOperation):
    """One waiting request; `response` holds the answers of all its partitions."""

    __slots__ = ("_response", "_waiting", "pending")

    def __init__(
        self, timeout_ms: int, deleted: Sequence[DeletedPartition], response: DeleteRecordsResponse
    ) -> None:
        super().__init__(timeout_ms)
        self._waiting = list(deleted)
        self._response = response
        self.pending: Pending[DeleteRecordsResponse] = Pending()
        for waiting in deleted:
            waiting.answer.error_code = ErrorCode.REQUEST_TIMED_OUT

    def try_complete(self) -> bool:
        """Fill in the answers of finished partitions. Complete once all partitions are finished."""
        self._waiting = [waiting for waiting in self._waiting if not _settle(waiting)]
        return not self._waiting and self.complete_held()

    def on_complete(self) -> None:
        """Send the answer, in which unfinished partitions have REQUEST_TIMED_OUT."""
        self.pending.complete(self._response)


def _settle(waiting: DeletedPartition) -> bool:
    """Return whether the outcome of a partition is known; fill in its answer if so."""
    partition, answer = waiting.partition, waiting.answer
    if partition.retired_with:
        code = partition.retired_with.code
    elif not partition.is_leader:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    elif partition.low_watermark >= waiting.offset:
        answer.error_code = ErrorCode.NONE
        answer.low_watermark = partition.low_watermark
        return True
    else:
        return False
    answer.error_code = code
    answer.low_watermark = NO_WATERMARK
    return True
