"""The rules of compaction for batches of transactions, which it reads in offset order.

    a batch of an aborted transaction             is removed at once
    a marker with batches of its transaction      stays, because readers need the outcome
    a marker without such batches                 is removed at its delete horizon (KIP-534)

Any batch that this round has read counts, even if the round removes it or an earlier round emptied
it. So a marker is removed in a later round than its batches, and no crash leaves a batch without
its marker.
"""

from __future__ import annotations

from collections.abc import Iterable

from embedlog.storage.segments.indexes.transaction import AbortedTransaction, TransactionIndex
from wire.records.batch import RecordBatch
from wire.records.control import ControlType, control_type_of
from wire.records.format import CONTROL_BIT, TRANSACTIONAL_BIT

_CONCERNED = TRANSACTIONAL_BIT | CONTROL_BIT


class CleanedTransactions:
    """Tracks the transactions during a pass over a log, up to the last batch read."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """`aborted` has every aborted transaction with a batch in the segments of the pass."""
        self._aborted = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        """Transactions that begin behind the last batch read; reversed, so `pop` gives the next."""
        self._aborting: dict[int, AbortedTransaction] = {}
        """Producer id -> its transaction that is open at this point and will be aborted."""
        self._seen: set[int] = set()
        """Ids of the producers with a data batch since their last marker."""
        self.index = TransactionIndex()
        """Aborted transactions whose marker was read since `begin_segment`, and is still needed."""

    def begin_segment(self) -> TransactionIndex:
        """Return a new, empty index for the next output segment; `read` fills it from now on."""
        self.index = TransactionIndex()
        return self.index

    def read(self, batch: RecordBatch) -> bool:
        """Read the next batch; return whether its records may be removed.

        True for data of an aborted transaction, and for a marker whose transaction has no batches
        left.

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
            return True  # a marker emptied earlier: its header stayed for the producer's epoch
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
