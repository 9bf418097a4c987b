"""The rest of one batch, rule by rule."""

from __future__ import annotations

import pytest

from embedlog.storage.cleaner.filter import COLUMNS_COUNT_MIN, BatchFilter, read_fields
from embedlog.storage.cleaner.offset_map import OffsetMap
from embedlog.storage.cleaner.transactions import CleanedTransactions
from embedlog.storage.segments.indexes.transaction import AbortedTransaction
from tests.storage.logs import NOW, batch
from wire.records.batch import RecordBatch, stamp
from wire.records.control import ControlType, build_end_transaction_marker

RETENTION_MS = 1000


def _batch(
    *pairs: tuple[bytes | None, bytes | None], base_offset: int = 0, **fields
) -> RecordBatch:
    made = bytearray(batch(*(v for _, v in pairs), keys=[k for k, _ in pairs], **fields))
    stamp(made, base_offset=base_offset, leader_epoch=0)
    return RecordBatch(made)


def _filter(
    latest: dict[bytes, int],
    *,
    end: int = 1000,
    now_ms: int = NOW,
    transactions: CleanedTransactions | None = None,
) -> BatchFilter:
    offset_map = OffsetMap(1 << 20)
    offset_map.add(list(latest), latest.values())
    return BatchFilter(
        offset_map,
        transactions or CleanedTransactions([]),
        end=end,
        now_ms=now_ms,
        delete_retention_ms=RETENTION_MS,
    )


def _left(found: memoryview | bytes | None) -> list[tuple[int, bytes | None, bytes | None]]:
    assert found is not None
    return [(r.offset, r.key, r.value) for r in RecordBatch(found).records()]


def test_a_batch_that_keeps_all_is_its_own_bytes() -> None:
    one = _batch((b"a", b"1"), (b"b", b"2"))
    assert _filter({b"a": 0}).filter(one) is one.buffer


@pytest.mark.parametrize("count", [3, COLUMNS_COUNT_MIN - 1, COLUMNS_COUNT_MIN, 700])
@pytest.mark.parametrize("codec", [0, 1, 4])
def test_small_and_large_batches_follow_the_same_rules(count: int, codec: int) -> None:
    pairs = [
        (None if n % 7 == 3 else b"key-%d" % (n % 100), None if n % 5 == 4 else b"v" * (n % 9))
        for n in range(count)
    ]
    one = _batch(*pairs, base_offset=50, codec=codec)
    latest = {b"key-%d" % n: 50 + n + 1 for n in range(0, 100, 3)}
    expected = [
        (50 + n, key, value)
        for n, (key, value) in enumerate(pairs)
        if key is not None and 50 + n >= latest.get(key, -1)
    ]
    found = _filter(latest).filter(one)
    assert _left(found) == expected
    if any(value is None for _, _, value in expected):
        assert found is not None
        marked = RecordBatch(found)
        assert marked.delete_horizon_ms == NOW + RETENTION_MS
        late = _filter(latest, now_ms=NOW + RETENTION_MS).filter(marked)
        assert _left(late) == [row for row in expected if row[2] is not None]
        early = _filter(latest, now_ms=NOW + RETENTION_MS - 1).filter(marked)
        assert early is marked.buffer


def test_what_lies_at_or_above_the_end_is_not_touched() -> None:
    one = _batch((b"a", None), (None, b"v"), base_offset=7)
    assert _filter({b"a": 90}, end=7).filter(one) is one.buffer
    assert _filter({b"a": 90}, end=20).filter(one) is None


def test_of_the_batch_at_the_end_a_header_stays() -> None:
    one = _batch((b"a", b"1"), (b"a", b"2"), base_offset=7)
    assert _filter({b"a": 90}, end=10).filter(one) is None
    found = _filter({b"a": 90}, end=9).filter(one)
    assert found is not None
    empty = RecordBatch(found)
    assert (empty.record_count, empty.base_offset, empty.next_offset) == (0, 7, 9)


def test_of_a_producers_last_batch_a_header_stays() -> None:
    first = _batch((b"a", b"1"), base_offset=7, producer=(5, 2, 0))
    second = _batch((b"a", b"1"), base_offset=8, producer=(5, 2, 1))
    filtered = _filter({b"a": 90})
    filtered.protect({5: (8, 2)})
    assert filtered.filter(first) is None
    found = filtered.filter(second)
    assert found is not None
    assert RecordBatch(found).base_sequence == 1
    filtered.protect({})
    assert filtered.filter(RecordBatch(found)) is None


def _marker(kind: int, offset: int, producer_id: int = 5, epoch: int = 2) -> RecordBatch:
    return RecordBatch(
        build_end_transaction_marker(
            kind,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=0,
            timestamp=NOW,
            base_offset=offset,
        )
    )


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
def test_a_marker_without_data_is_marked_then_goes(kind: int) -> None:
    found = _filter({}).filter(_marker(kind, 4))
    assert found is not None
    marked = RecordBatch(found)
    assert marked.delete_horizon_ms == NOW + RETENTION_MS
    assert marked.record_count == 1
    assert marked.is_control
    assert _filter({}, now_ms=NOW + RETENTION_MS - 1).filter(marked) is marked.buffer
    assert _filter({}, now_ms=NOW + RETENTION_MS).filter(marked) is None


def test_the_marker_that_is_a_producers_last_word_is_emptied_and_stays() -> None:
    marked = RecordBatch(_filter({}).filter(_marker(ControlType.COMMIT, 4)) or b"")
    filtered = _filter({}, now_ms=NOW + RETENTION_MS)
    filtered.protect({5: (-1, 2)})
    found = filtered.filter(marked)
    assert found is not None
    emptied = RecordBatch(found)
    assert (emptied.record_count, emptied.is_control, emptied.producer_epoch) == (0, True, 2)
    filtered.protect({5: (-1, 3)})
    assert filtered.filter(emptied) is None


def test_aborted_data_goes_and_its_marker_stays_for_that_round() -> None:
    aborted = AbortedTransaction(producer_id=5, first_offset=3, last_offset=6, last_stable_offset=7)
    transactions = CleanedTransactions([aborted])
    filtered = _filter({}, transactions=transactions)
    data = _batch((b"a", b"1"), base_offset=3, producer=(5, 2, 0), transactional=True)
    other = _batch((b"b", b"1"), base_offset=4, producer=(6, 0, 0), transactional=True)
    plain = _batch((b"c", b"1"), base_offset=5)
    marker = _marker(ControlType.ABORT, 6)
    later = _batch((b"d", b"1"), base_offset=7, producer=(5, 2, 1), transactional=True)
    assert filtered.filter(data) is None
    assert filtered.filter(other) is other.buffer
    assert filtered.filter(plain) is plain.buffer
    assert filtered.filter(marker) is marker.buffer
    assert filtered.filter(later) is later.buffer
    assert list(transactions.index) == [aborted]
    assert list(transactions.begin_segment()) == []


def test_other_control_records_are_none_of_compactions_business() -> None:
    made = bytearray(batch(b"x", keys=[b"\0\0\0\2"], control=True))
    change = RecordBatch(made)
    assert _filter({}).filter(change) is change.buffer


def test_log_append_time_survives_a_delete_horizon() -> None:
    one = _batch((b"a", None), (b"a", b"x"), (b"b", None), timestamp_type=1)
    found = _filter({b"a": 1}).filter(one)
    assert found is not None
    left = RecordBatch(found)
    assert [record.timestamp for record in left.records()] == [NOW, NOW]
    assert (left.timestamp_type, left.max_timestamp) == (1, NOW)


def test_keys_tell_apart_what_hashes_alike_and_none_is_no_key() -> None:
    offset_map = OffsetMap(1000)
    offset_map.add([b"", b"\0", None, b"\0\0", b""], range(5))
    latest = offset_map.latest
    assert [latest(key, -1) for key in (b"", b"\0", b"\0\0", b"x")] == [4, 1, 3, -1]
    assert latest(None, -1) > 1 << 62
    assert len(offset_map) == 3
    assert not offset_map.is_full
    offset_map.add([b"%d" % n for n in range(10)], range(5, 15))
    assert offset_map.is_full


def test_a_map_keeps_to_its_memory() -> None:
    import tracemalloc

    size_max = 4 << 20
    keys = [b"%016d" % n for n in range(60_000)]
    tracemalloc.start()
    try:
        offset_map = OffsetMap(size_max)
        for start in range(0, len(keys), 100):
            if offset_map.is_full:
                break
            # The keys of a batch are its own objects.
            own = [bytes(bytearray(key)) for key in keys[start : start + 100]]
            offset_map.add(own, range(start, start + 100))
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert offset_map.is_full
    assert size_max // 2 < used < size_max * 1.2


def test_fields_are_the_same_for_a_batch_of_any_form() -> None:
    for count in (1, 40):
        one = _batch(*[(b"k%d" % n, None if n == 0 else b"v") for n in range(count)])
        keys, offsets, tombstones = read_fields(one, 1 << 20)
        assert list(keys) == [b"k%d" % n for n in range(count)]
        assert list(offsets) == list(range(count))
        assert list(tombstones) == [0]
