"""Reading a foreign log as a read_committed consumer does: without aborted transactions."""

from __future__ import annotations

from embedlog.storage.foreign.tail import ends_transaction
from wire.records.batch import RecordBatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from embedlog.storage.foreign.log import ForeignLog
    from embedlog.storage.foreign.offset_range import ForeignRange
    from embedlog.storage.foreign.segment import Batch

    Log: TypeAlias = ForeignLog | ForeignRange


def data_batches(log: Log, offset: int, end_offset: int) -> Iterator[Batch]:
    """Yield all batches except control batches; aborted transactions are included."""
    for batch in log.batches(offset, end_offset):
        if not (isinstance(batch, RecordBatch) and batch.is_control):
            yield batch


def committed_batches(log: Log, offset: int, end_offset: int) -> Iterator[Batch]:
    """Yield committed data batches below `end_offset`, without control batches.

    Requires: `end_offset` is at most the last stable offset. The marker that ends a transaction
    lies behind the transaction's batches, so a second walk over the log searches ahead for markers.
    """
    markers = _Markers(log, end_offset)
    for batch in data_batches(log, offset, end_offset):
        is_open = isinstance(batch, RecordBatch) and batch.is_transactional
        if not is_open or markers.commits(batch):
            yield batch


class _Markers:
    """Searches ahead for the markers that end transactions."""

    def __init__(self, log: Log, end_offset: int) -> None:
        self._log = log
        self._end_offset = end_offset
        self._found: dict[int, list[tuple[int, bool]]] = {}
        """Producer id -> [(offset of a marker, whether it commits), ...], in offset order."""
        self._ahead: Iterator[Batch] | None = None

    def commits(self, batch: Batch) -> bool:
        """Return whether the marker behind `batch` says that its transaction was committed.

        Without a marker it was committed: compaction has removed the marker. It removes the marker
        of an aborted transaction only after the batches.
        """
        assert isinstance(batch, RecordBatch)
        known = self._found.setdefault(batch.producer_id, [])
        while known and known[0][0] < batch.base_offset:
            known.pop(0)
        if not known:
            self._look_for(batch)
        return known[0][1] if known else True

    def _look_for(self, batch: RecordBatch) -> None:
        if self._ahead is None:
            # Search up to the high watermark: a marker may lie at or behind the last stable offset.
            self._ahead = self._log.batches(batch.base_offset, self._log.high_watermark)
        for ahead in self._ahead:
            if isinstance(ahead, RecordBatch) and ahead.is_control:
                commits = ends_transaction(ahead)
                if commits is not None and ahead.base_offset > batch.base_offset:
                    self._found.setdefault(ahead.producer_id, []).append(
                        (ahead.base_offset, commits)
                    )
                    if ahead.producer_id == batch.producer_id:
                        return
