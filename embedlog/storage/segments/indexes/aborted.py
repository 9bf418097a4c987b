"""The aborted transactions of one segment, which may be unknown until a reader first needs them.

They are known for a segment that this process wrote. For a loaded segment the first reader searches
the batches (`producers.append.load_aborted`). A transaction that ends before the search is kept
aside, and added to the findings of the search.
"""

from __future__ import annotations

from embedlog.runtime.locks import Rank, process_wide, ranked_rlock
from embedlog.storage.segments.indexes.transaction import AbortedTransaction, TransactionIndex

_lock = process_wide(ranked_rlock(Rank.ABORTED))


class AbortedTransactions:
    """The aborted transactions of one segment. Thread-safe; `index` may be read without a lock."""

    __slots__ = ("_noted", "index", "is_stored")

    def __init__(self, index: TransactionIndex | None = None) -> None:
        """`index` is None if the transactions are unknown."""
        self.index = index
        self.is_stored = True
        """True if the segment's `.txnindex` file has all of them, or there are none."""
        self._noted: list[AbortedTransaction] = []
        """Transactions that ended while `index` was None."""

    def note(self, transaction: AbortedTransaction) -> None:
        """Add a transaction whose marker lies in the segment, unless `index` has it already."""
        with _lock:
            self._noted.append(transaction)
            self._add_noted()

    def adopt(self, index: TransactionIndex) -> TransactionIndex:
        """Take over the transactions that a reader found in the batches; add the noted ones."""
        with _lock:
            if self.index is None:
                self.index = index
            self._add_noted()
            return self.index

    def _add_noted(self) -> None:
        index = self.index
        if index is None:
            return
        for transaction in self._noted:
            known, _ = index.collect_aborted(transaction.last_offset, transaction.last_offset + 1)
            if not known:
                index.append(transaction)
                self.is_stored = False
        self._noted.clear()
