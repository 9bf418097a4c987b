"""Finding the batches of a segment."""

from __future__ import annotations

import pytest

from embedlog.errors import CorruptRecord
from embedlog.storage.log.log import Log
from embedlog.storage.segments.indexes.aborted import AbortedTransactions
from embedlog.storage.segments.indexes.offset import OffsetIndex
from embedlog.storage.segments.indexes.time import TimeIndex
from embedlog.storage.segments.indexes.transaction import AbortedTransaction, TransactionIndex
from embedlog.storage.segments.scan import scan_segment
from embedlog.storage.segments.segment_indexes import HINTS_MAX
from tests.storage.logs import NOW, append, batches, new_log


def _log(*timestamps: int) -> Log:
    log = new_log()
    for timestamp in timestamps:
        append(log, b"a", timestamps=NOW + timestamp)
    log.segments[0].indexes.hints.clear()
    return log


def test_no_position_that_was_found_in_damaged_batches_outlives_a_scan() -> None:
    log = new_log()
    for value in (b"a", b"b", b"c"):
        append(log, value)
    segment, size = log.segments[0], log.size
    first, second, _ = batches(log)
    segment.indexes.hints.clear()
    segment.file.get().write([(1).to_bytes(8, "big")], 0)  # the first batch seems to hold offset 1
    assert segment.indexes.position_of(1, size) == 0
    segment.file.get().write([bytes(8)], 0)
    scan = scan_segment(
        segment.file.view(0, size),
        path=segment.path,
        base_offset=0,
        epochs=None,
        gaps_below=0,
        index_interval=4096,
    )
    segment.adopt(scan)
    assert segment.indexes.position_of(1, size) == first.size
    assert segment.indexes.position_of(2, size) == first.size + second.size
    assert segment.synced_size == 0, "nobody knows whether its bytes were synced"


def test_an_offset_entry_that_names_no_batch_misleads_nobody() -> None:
    log = _log(0, 1, 2)
    index = OffsetIndex(0)
    index.append(1, 5)
    log.segments[0].indexes.adopt(index, TimeIndex(0))
    first, second, _ = batches(log)
    assert log.segments[0].indexes.position_of(2, log.size) == first.size + second.size


def test_a_time_entry_of_another_batch_misleads_nobody() -> None:
    log = _log(0, 1, 2)
    index = TimeIndex(0)
    index.append(NOW, 2)
    log.segments[0].indexes.adopt(OffsetIndex(0), index)
    found = log.reader.fetch_offset(NOW)
    assert found is not None
    assert found[:2] == (NOW, 0)


def test_the_largest_timestamp_is_found_though_the_index_is_wrong() -> None:
    log = _log(50, 1, 2)
    index = TimeIndex(0)
    index.append(NOW + 1, 2)
    indexes = log.segments[0].indexes
    indexes.adopt(OffsetIndex(0), index)
    assert indexes.largest(log.size) == (NOW + 50, 0)


def test_no_index_is_made_of_offsets_that_fall() -> None:
    log = _log(0, 1, 2)
    segment = log.segments[0]
    segment.file.get().write([(7).to_bytes(8, "big")], 0)
    with pytest.raises(CorruptRecord, match="expected 8 or later"):
        segment.indexes.rebuild(log.size)


def test_the_positions_of_readers_are_kept_up_to_a_limit() -> None:
    indexes = _log(0).segments[0].indexes
    for offset in range(2 * HINTS_MAX + 1):
        indexes.remember(offset, 0)
        assert len(indexes.hints) <= HINTS_MAX


def test_a_transaction_that_aborts_during_the_search_for_others_is_known() -> None:
    first, second = (
        AbortedTransaction(
            producer_id=7, first_offset=at, last_offset=at + 1, last_stable_offset=at + 2
        )
        for at in (0, 2)
    )
    aborted = AbortedTransactions()
    aborted.note(second)
    assert aborted.is_stored
    assert list(aborted.adopt(TransactionIndex([first]))) == [first, second]
    assert not aborted.is_stored, "Kafka needs it in the file"
    aborted.note(second)
    assert list(aborted.adopt(TransactionIndex())) == [first, second]
