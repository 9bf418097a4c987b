"""Which batches of transactions compaction may remove, and which aborted ones stay known."""

from __future__ import annotations

from embedlog.storage.cleaner.transactions import CleanedTransactions
from embedlog.storage.segments.indexes.transaction import AbortedTransaction
from wire.records.batch import RecordBatch
from wire.records.encode.builder import build_batch

NOW = 1_700_000_000_000


def _data(offset: int, producer_id: int = 7) -> RecordBatch:
    return RecordBatch(
        build_batch(
            [b"a"],
            timestamps=NOW,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
    )


def _marker(offset: int, *, is_commit: bool, producer_id: int = 7) -> RecordBatch:
    return RecordBatch(
        build_batch(
            [bytes(6)],
            keys=[bytes(2) + int(is_commit).to_bytes(2, "big")],
            timestamps=NOW,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
    )


def _aborted(first: int, last: int) -> AbortedTransaction:
    return AbortedTransaction(
        producer_id=7, first_offset=first, last_offset=last, last_stable_offset=last + 1
    )


def test_a_second_marker_without_batches_of_its_own_is_settled() -> None:
    transactions = CleanedTransactions(())
    assert not transactions.read(_data(0))
    assert not transactions.read(_marker(1, is_commit=True))
    assert transactions.read(_marker(2, is_commit=True))


def test_an_aborted_transaction_without_batches_needs_no_entry() -> None:
    transactions = CleanedTransactions([_aborted(0, 2), _aborted(5, 6)])
    assert transactions.read(_marker(2, is_commit=False))
    assert not list(transactions.index)
    assert transactions.read(_data(5))
    assert not transactions.read(_marker(6, is_commit=False))
    assert list(transactions.index) == [_aborted(5, 6)]


def test_the_next_transaction_stays_though_the_abort_marker_is_gone() -> None:
    transactions = CleanedTransactions([_aborted(0, 2)])
    assert transactions.read(_data(1))
    assert not transactions.read(_data(5))
