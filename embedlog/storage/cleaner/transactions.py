"""Transactions as compaction meets them, batch by batch in offset order.

    a batch of an aborted transaction     goes at once
    a marker with batches before it       stays: it tells their outcome
    a marker without                      may go, once readers have had time to see it (KIP-534)

A batch counts even if this round drops it, or an earlier one emptied it: its marker goes in a later
round, so that no crash leaves the batch without the marker.
"""

from __future__ import annotations

from collections.abc import Iterable

from embedlog.storage.segments.indexes.transaction import AbortedTransaction, TransactionIndex
from wire.records.batch import RecordBatch
from wire.records.control import ControlType, control_type_of
from wire.records.format import CONTROL_BIT, TRANSACTIONAL_BIT

_CONCERNED = TRANSACTIONAL_BIT | CONTROL_BIT


class CleanedTransactions:
    """The open transactions at the point that a pass over a log has reached."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """`aborted` has every aborted transaction with a batch in the segments to be read."""
        self._aborted = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        """Transactions that have not begun yet, the next one last."""
        self._aborting: dict[int, AbortedTransaction] = {}
        """Producer id -> its present transaction, which will be aborted."""
        self._seen: set[int] = set()
        """Producers that have written a batch since their last marker."""
        self.index = TransactionIndex()
        """The aborted transactions of the batches read since `begin_segment`."""

    def begin_segment(self) -> TransactionIndex:
        """Begin another index; return it."""
        self.index = TransactionIndex()
        return self.index

    def read(self, batch: RecordBatch) -> bool:
        """Take the next batch; return whether transactions no longer need its records.

        Raises:
            InvalidRecord: a control record without a control key.
        """
        if not batch.attributes & _CONCERNED:
            return False
        aborted = self._aborted
        last_offset = batch.last_offset
        while aborted and aborted[-1].first_offset <= last_offset:
            begun = aborted.pop()
            self._aborting[begun.producer_id] = begun
        if batch.is_control:
            return self._read_marker(batch)
        self._seen.add(batch.producer_id)
        aborting = self._aborting.get(batch.producer_id)
        return aborting is not None and last_offset < aborting.last_offset

    def _read_marker(self, batch: RecordBatch) -> bool:
        if batch.record_count == 0:
            return True  # emptied in an earlier round, and kept for its producer's epoch
        control_type = control_type_of(batch)
        if control_type not in (ControlType.ABORT, ControlType.COMMIT):
            return False
        producer_id = batch.producer_id
        was_seen = producer_id in self._seen
        self._seen.discard(producer_id)
        if control_type == ControlType.ABORT:
            aborted = self._aborting.pop(producer_id, None)
            if aborted is not None and was_seen:
                self.index.append(aborted)
        return not was_seen
