"""The transaction index: Kafka's 34-byte entries, the search for aborts, truncation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedlog.errors import CorruptRecord
from embedlog.storage.segments.indexes.transaction import (
    ENTRY_SIZE,
    AbortedTransaction,
    TransactionIndex,
)


def aborted(producer_id: int, first: int, last: int, stable: int) -> AbortedTransaction:
    return AbortedTransaction(
        producer_id=producer_id, first_offset=first, last_offset=last, last_stable_offset=stable
    )


ENTRIES = [aborted(1, 0, 10, 11), aborted(2, 3, 20, 12), aborted(3, 22, 30, 31)]


def test_an_entry_is_34_big_endian_bytes():
    index = TransactionIndex()
    written = index.append(aborted(0x0102, 5, 9, 10))
    assert written.hex() == ("0000000000000000010200000000000000050000000000000009000000000000000a")
    assert index.size == ENTRY_SIZE == 34


@pytest.mark.parametrize(
    ("fetch_offset", "upper_bound", "producers", "complete"),
    [
        (0, 100, [1, 2, 3], False),
        (0, 31, [1, 2, 3], True),
        (11, 100, [2, 3], False),
        (10, 100, [1, 2, 3], False),
        (31, 100, [], False),
        (0, 3, [1], True),  # the first entry was stable beyond 3
        (0, 12, [1, 2], True),
        (12, 22, [2], True),
        (21, 22, [], True),
    ],
)
def test_collect_aborted(fetch_offset, upper_bound, producers, complete):
    found, is_complete = TransactionIndex(ENTRIES).collect_aborted(fetch_offset, upper_bound)
    assert [entry.producer_id for entry in found] == producers
    assert is_complete is complete


@pytest.mark.parametrize(("offset", "left"), [(31, 3), (30, 2), (20, 1), (21, 2), (0, 0)])
def test_truncate_drops_markers_at_or_after_the_offset(offset, left):
    index = TransactionIndex(ENTRIES)
    assert index.truncate_to(offset) == left * ENTRY_SIZE == index.size
    assert list(index) == ENTRIES[:left]


def test_markers_come_in_order():
    index = TransactionIndex(ENTRIES)
    with pytest.raises(AssertionError):
        index.append(aborted(9, 0, 30, 31))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=20))
def test_the_file_round_trips(steps):
    index = TransactionIndex()
    written = b""
    last = 0
    for back, step in steps:
        last += step
        written += index.append(aborted(back, max(0, last - back), last, last + 1))
    assert index.encode() == written
    assert list(TransactionIndex.decode(written)) == list(index)


@pytest.mark.parametrize(
    ("content", "position"),
    [
        (TransactionIndex(ENTRIES).encode()[:-1], 68),
        (b"\x00\x01" + TransactionIndex(ENTRIES).encode()[2:], 0),
        (TransactionIndex(ENTRIES).encode()[:34] * 2, 34),
        (TransactionIndex([aborted(1, 12, 11, 12)]).encode(), 0),
    ],
)
def test_a_damaged_file_is_a_typed_error(content, position):
    with pytest.raises(CorruptRecord) as caught:
        TransactionIndex.decode(content)
    assert caught.value.position == position


def test_a_marker_before_its_segment_is_damage():
    content = TransactionIndex(ENTRIES).encode()
    assert len(TransactionIndex.decode(content, base_offset=10)) == 3
    with pytest.raises(CorruptRecord):
        TransactionIndex.decode(content, base_offset=11)
