"""Batches with a shape are read as by the plain loop, with any content."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from tests.support import sizes
from tests.wire.records.batches import NOW, batch_of_payload, build, columns
from tests.wire.records.decode.test_reading import assert_all_forms_agree
from wire.records import RecordBatch, RecordsError, build_batch, scan, tuples
from wire.records.decode import scan as facts
from wire.records.decode.scan import ScanResult
from wire.records.decode.uniform import COUNT_AT_ONCE, COUNT_MAX, cut, known_shape
from wire.records.known import KNOWN


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    KNOWN.forget()


def batch_of(
    count: int, value_size: int, deltas: list[int], key: bytes | None = None, **more: Any
) -> RecordBatch:
    values = [bytes([index % 256]) * value_size for index in range(count)]
    keys = None if key is None else [key] * count
    stamps = [NOW + delta for delta in deltas]
    return RecordBatch(build_batch(values, keys=keys, timestamps=stamps, **more))


def has_shape(batch: RecordBatch) -> bool:
    payload = batch.payload()
    known = known_shape(len(payload), batch.record_count)
    return known is not None and known.deltas(payload, 0) is not None


def outcome(batch: RecordBatch, read: Any) -> ScanResult | str:
    try:
        return read(batch)  # type: ignore[no-any-return]
    except RecordsError as error:
        return repr(error)


def scan_plainly(batch: RecordBatch) -> ScanResult:
    return facts.scan_plainly(bytes(batch.payload()), batch.record_count, batch.base_timestamp)


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, b"", b"key"])
@pytest.mark.parametrize("count", [1, 2, 8, 63, 64, 65, COUNT_MAX])
@pytest.mark.parametrize("value_size", [0, 1, 53, 57, 58, 100, 8200])
def test_times_within_63_ms_of_the_first_have_a_shape(
    value_size: int, count: int, key: bytes | None
) -> None:
    for round_number in range(3):
        # Timestamps may decrease: a delta of -64 still has one byte.
        deltas = [0] + [(index * 7 + round_number) % 128 - 64 for index in range(1, count)]
        batch = batch_of(count, value_size, deltas, key, base_offset=round_number)
        assert_all_forms_agree(batch)
        assert has_shape(batch) or (count < COUNT_AT_ONCE and round_number == 0)
    payload = batch.payload()
    found = cut(payload, 0, len(payload), count)
    assert found is not None
    keys, values, raw = found
    assert keys is None if key is None else list(keys or ()) == [key] * count
    assert list(values) == [bytes([index % 256]) * value_size for index in range(count)]
    assert len(raw) == (count if any(deltas) else 0)


def test_a_time_further_off_is_read_in_another_way() -> None:
    for deltas in ([0] * 20, [0] * 19 + [63], [0] * 19 + [64], [0] * 19 + [-65], [0] * 20):
        for _ in range(3):
            assert_all_forms_agree(batch_of(20, 33, deltas))


def test_the_time_of_the_log_is_that_of_the_batch() -> None:
    for _ in range(3):
        batch = batch_of(20, 34, [*range(20)], timestamp_type=1)
        assert {record[1] for record in tuples(batch)} == {batch.max_timestamp}


@pytest.mark.parametrize("base_timestamp", [(1 << 63) - 1, (1 << 63) - 64, -(1 << 63), -1])
def test_times_at_the_end_of_time_wrap_around_as_in_java(base_timestamp: int) -> None:
    few = ([0, 1] + [0] * 7, [0, -1] + [0] * 7, [0] * 9)
    many = ([0] * 20 + [1] * 20, [0] * 20 + [-1] * 20, [0, 1] * 20)
    for deltas in (*few, *many):
        for _ in range(3):
            batch = batch_of(len(deltas), 3, deltas)
            batch.base_timestamp = base_timestamp
            assert_all_forms_agree(batch)
            assert scan(batch) == scan_plainly(batch)


@pytest.mark.slow
@given(columns(count_max=150), columns(count_max=150))
@settings(max_examples=sizes.size(60, full=150), deadline=None)
def test_no_answer_depends_on_what_was_met(first: dict[str, Any], second: dict[str, Any]) -> None:
    for arguments in (first, second):
        batch = RecordBatch(build(arguments))
        for _ in range(4):
            assert_all_forms_agree(batch)


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, b"key", b""])
@pytest.mark.parametrize("count", [1, 2, 8, 64, 65, 100])
def test_no_byte_around_keys_and_values_is_overlooked(count: int, key: bytes | None) -> None:
    good = batch_of(count, 9, [index // 5 for index in range(count)], key)
    payload = bytes(good.payload())
    scan(good)
    scan(good)
    assert has_shape(good)
    for at in range(0, len(payload), 1 if count < 50 else 7):
        for change in (0x01, 0x02, 0x80):
            changed = bytearray(payload)
            changed[at] ^= change
            batch = RecordBatch(batch_of_payload(bytes(changed), count))
            assert outcome(batch, scan) == outcome(batch, scan_plainly), (at, change)
            assert_all_forms_agree(batch)


@pytest.mark.slow
@pytest.mark.parametrize("count", [8, 64, 65, COUNT_MAX + 1, 1000])
@pytest.mark.parametrize("value_size", [0, 1, 3, 53, 57, 58, 200])
def test_columns_of_times_within_63_ms_of_the_first(count: int, value_size: int) -> None:
    for round_number in range(3):
        deltas = [0] + [(index * 7 + round_number) % 128 - 64 for index in range(1, count)]
        batch = batch_of(count, value_size, deltas)
        assert_all_forms_agree(batch)
    payload = bytes(batch.payload())
    random = Random(count)
    for _ in range(20):
        changed = bytearray(payload)
        changed[random.randrange(len(payload))] ^= 1 << random.randrange(8)
        assert_all_forms_agree(RecordBatch(batch_of_payload(bytes(changed), count)))
    for last in (64, 63, 0):
        assert_all_forms_agree(batch_of(count, value_size, [0] * (count - 1) + [last]))


def test_other_batches_of_the_same_size_and_number() -> None:
    keyed = build_batch([b"v" * 18] * 20, keys=[b"kk"] * 20, timestamps=NOW)
    plain = build_batch([b"v" * 20] * 20, timestamps=NOW)
    assert len(keyed) == len(plain)
    for data in (keyed, plain, plain, keyed, plain, keyed):
        assert_all_forms_agree(RecordBatch(data))


def test_the_unusual_has_no_shape() -> None:
    odd_offset = bytearray(batch_of(3, 1, [0, 0, 0]).payload())
    odd_offset[3] = 4  # the first record's offset delta
    for data in (
        build_batch([b"v"] * 3, headers=[[("a", b"")]] * 3, timestamps=NOW),
        build_batch([b"v", None, b"v"], timestamps=NOW),
        build_batch([b"v"] * 3, keys=[b"", None, b""], timestamps=NOW),
        build_batch([b"v", b"vv", b""], timestamps=NOW),
        batch_of_payload(bytes(odd_offset), 3),
        build_batch([b"v"] * (COUNT_MAX + 1), timestamps=NOW),
    ):
        batch = RecordBatch(data)
        for _ in range(5):
            assert scan(batch) == scan_plainly(batch)
            assert_all_forms_agree(batch)
        assert not has_shape(batch)


def test_a_batch_that_had_none_is_tried_again_later() -> None:
    # A timestamp has one byte more, and its value one byte less.
    stamps = [NOW] * 19 + [NOW + 70]
    slow = RecordBatch(build_batch([b"v" * 6] + [b"v" * 7] * 19, timestamps=stamps))
    quick = batch_of(20, 7, [0] * 20)
    assert len(slow.payload()) == len(quick.payload())
    for _ in range(3):
        assert_all_forms_agree(slow)
    for _ in range(8):
        assert_all_forms_agree(quick)
    assert has_shape(quick)


def test_what_is_kept_is_bounded() -> None:
    for size in range(KNOWN.shape_sightings.count_max + 100):
        batch = RecordBatch(build_batch([b"v" * size], timestamps=NOW))
        scan(batch)
        scan(batch)
        assert len(KNOWN.shape_sightings) <= KNOWN.shape_sightings.count_max
    for size in range(KNOWN.shapes.count_max + 5):
        scan(batch_of(8, size, [0] * 8))
        assert 0 < len(KNOWN.shapes) <= KNOWN.shapes.count_max


@pytest.mark.parametrize("count", [0, -1, COUNT_MAX + 1])
def test_a_strange_number_of_records_has_no_shape(count: int) -> None:
    payload = batch_of(10, 3, [0] * 10).payload()
    for _ in range(4):
        assert cut(payload, 0, 0, count) is None
        assert cut(payload, 0, len(payload), count) is None
