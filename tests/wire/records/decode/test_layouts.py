"""Batches read together have the same columns as each read alone."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import sizes
from tests.wire.records.batches import NOW, batch_of_payload, build, columns
from tests.wire.records.decode.test_reading import rows_of
from wire.records import RecordBatch, RecordsError, build_batch, iter_batches
from wire.records.batch import stamp
from wire.records.decode.layouts import AlikeColumns, find_alike
from wire.records.format import HEADER_SIZE
from wire.records.known import KNOWN

COUNT_MAX = 1 << 30


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    KNOWN.forget()


def learn(data: bytes) -> None:
    """Read such a batch twice, so that its layout is remembered."""
    for _ in range(2):
        RecordBatch(data).columns()


def joined(batches: list[bytes], *, epoch: int = 3, gap: int = 0) -> memoryview:
    """Return the batches as in a log, with `gap` offsets between them."""
    stamped = []
    offset = 0
    for data in batches:
        copy = bytearray(data)
        stamp(copy, base_offset=offset, leader_epoch=epoch)
        offset = RecordBatch(copy).next_offset + gap
        stamped.append(bytes(copy))
    return memoryview(b"".join(stamped))


def at_most(run_count: int) -> None:
    for layout in KNOWN.layouts.values():
        layout.run_count = run_count


def find(view: memoryview, position: int = 0, **more: Any) -> AlikeColumns | None:
    asked = {"offset": 0, "count_max": COUNT_MAX, "check_crcs": True, "known": KNOWN, **more}
    return find_alike(view, position, **asked)


def found_all(view: memoryview, **more: Any) -> tuple[list[Any], list[int]]:
    """Return the rows of all batches, and the number of batches in each read."""
    rows: list[Any] = []
    counts = []
    position = 0
    while position < len(view):
        found = find(view, position, **more)
        if found is None:
            batch = RecordBatch(view, position)
            assert not more.get("check_crcs", True) or batch.is_valid_crc()
            alone = batch.columns()
            rows += zip(rows_of(alone), alone.keys(), alone.values(), strict=True)
            position += batch.size
            counts.append(1)
            continue
        assert len(found) == found.count == len(found.offsets)
        assert bytes(found.buffer) == bytes(view[position + HEADER_SIZE : found.end])
        rows += zip(rows_of(found), found.keys(), found.values(), strict=True)
        counts.append((found.end - position) // RecordBatch(view, position).size)
        position = found.end
        assert found.next_offset == rows[-1][0][0] + 1
    return rows, counts


def rows_alone(view: memoryview) -> list[Any]:
    rows: list[Any] = []
    for batch in iter_batches(view):
        assert isinstance(batch, RecordBatch)
        found = batch.columns()
        rows += zip(rows_of(found), found.keys(), found.values(), strict=True)
    return rows


def batch_of(count: int, value_size: int, number: int, key: bytes | None = None) -> bytes:
    values = [bytes([(index + number) % 256]) * value_size for index in range(count)]
    keys = None if key is None else [bytes([number % 256]) + key] * count
    stamps = [NOW + number + (index * number) % 60 for index in range(count)]
    return build_batch(values, keys=keys, timestamps=stamps)


@pytest.mark.slow
@pytest.mark.parametrize("key", sizes.part([None, b"", b"key", b"k" * 70], 3))
@pytest.mark.parametrize("count", sizes.part([8, 63, 64, 65, 401, 8200], 3))
@pytest.mark.parametrize("value_size", sizes.part([0, 1, 57, 100], 3))
def test_a_known_layout_is_read_in_runs_that_grow(
    value_size: int, count: int, key: bytes | None
) -> None:
    batches = [batch_of(count, value_size, number, key) for number in range(8)]
    learn(batches[0])
    for gap in (0, 5):
        view = joined(batches, gap=gap)
        for check_crcs in (False, True):
            rows, counts = found_all(view, check_crcs=check_crcs)
            assert rows == rows_alone(view)
            assert count > 8000 or gap or counts != [1] * 8
    assert value_size > 60 or count > 1000 or counts == [8]


@pytest.mark.slow
@given(
    arguments=st.lists(columns(count_max=150), min_size=1, max_size=3),
    order=st.lists(st.integers(0, 2), min_size=1, max_size=12),
    gap=st.sampled_from([0, 0, 3]),
)
@settings(max_examples=sizes.size(40, full=100), deadline=None)
def test_any_batches_read_as_each_alone(arguments: Any, order: list[int], gap: int) -> None:
    batches = [build(each) for each in arguments]
    for data in batches:
        learn(data)
    view = joined([batches[index % len(batches)] for index in order], gap=gap)
    for _ in range(2):
        assert found_all(view)[0] == rows_alone(view)


def test_null_values_and_the_time_of_the_log() -> None:
    nulls = build_batch([None] * 20, keys=[b"k"] * 20, timestamps=NOW)
    by_log = build_batch([b"vv"] * 20, timestamps=[*range(NOW, NOW + 20)], timestamp_type=1)
    for data in (nulls, by_log):
        learn(data)
        view = joined([data] * 6)
        assert found_all(view)[0] == rows_alone(view)
        assert found_all(view)[1] != [1] * 6


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, b"key"])
@pytest.mark.parametrize("count", [8, 65])
def test_no_byte_is_overlooked(count: int, key: bytes | None) -> None:
    batches = [batch_of(count, 9, number, key) for number in range(4)]
    learn(batches[0])
    view = joined(batches)
    size = len(view) // 4
    for at in range(2 * size, 3 * size, 1 if count < 50 else 5):
        for change in (0x01, 0x02, 0x80):
            at_most(4)
            changed = bytearray(view)
            changed[at] ^= change
            damaged = memoryview(bytes(changed))
            if at >= 2 * size + HEADER_SIZE:
                found = find(damaged)
                assert found is not None
                assert found.end == 2 * size, "the checksum is wrong"
            # Without the check of checksums: the result equals reading each batch alone.
            position = 0
            while (found := find(damaged, position, check_crcs=False)) is not None:
                expected = rows_alone(damaged[position : found.end])
                rows = zip(rows_of(found), found.keys(), found.values(), strict=True)
                assert list(rows) == expected, (at, change)
                position = found.end
            assert position >= 2 * size


def test_what_a_run_ends_with() -> None:
    batch = batch_of(20, 10, 1)
    learn(batch)
    size = len(batch)
    view = joined([batch] * 8)

    def count_of(changed: memoryview | bytes, position: int = 0, **more: Any) -> int:
        at_most(8)
        found = find(memoryview(changed), position, **more)
        return 0 if found is None else found.count // 20

    assert count_of(view) == 8
    assert count_of(view, count_max=1) == 0, "a single batch is left to `columns`"
    assert count_of(view, count_max=20) == 0
    assert count_of(view, count_max=21) == 2, "the last batch may exceed the limit"
    assert count_of(view[:-1]) == 7, "not whole"
    assert count_of(view[: HEADER_SIZE - 1]) == 0
    assert count_of(view, offset=1) == 0, "begins before the position"
    assert count_of(view, size, offset=20) == 7
    other_epoch = bytes(view[: 3 * size]) + bytes(joined([batch] * 5, epoch=4))
    assert count_of(other_epoch) == 3
    assert count_of(bytes(view[: 3 * size]) + bytes(view)) == 3, "offsets go back"
    other = build_batch([b"v" * 10] * 20, timestamps=NOW, producer_id=5, producer_epoch=0,
                        base_sequence=0)  # fmt: skip
    assert len(other) == size
    assert count_of(joined([batch, other, batch])) == 3, "from any producer"
    special = build_batch([b"v" * 10] * 20, timestamps=NOW, producer_id=5, producer_epoch=0,
                          base_sequence=0, transactional=True)  # fmt: skip
    assert count_of(joined([batch, special, batch])) == 1
    assert count_of(joined([special, batch])) == 0
    assert count_of(joined([build_batch([b"v"] * 20, timestamps=NOW)])) == 0, "not known"


def test_times_further_off_are_no_layout_that_is_kept() -> None:
    far = build_batch([b"v"] * 20, timestamps=[NOW] + [NOW + 70] * 19)
    near = build_batch([b"v" * 10] * 20, timestamps=NOW)
    for data in (far, near):
        learn(data)
    assert [*KNOWN.layouts] == [(len(near) - HEADER_SIZE, 20)]


def test_bad_records_with_a_right_checksum_are_for_others() -> None:
    good = batch_of(20, 10, 1)
    learn(good)
    payload = bytearray(RecordBatch(good).payload())
    random = Random(20)
    for _ in range(200):
        changed = bytearray(payload)
        changed[random.randrange(len(payload))] ^= 1 << random.randrange(8)
        bad = batch_of_payload(bytes(changed), 20)
        view = joined([bad])
        try:
            expected: Any = rows_alone(view)
        except RecordsError:
            expected = None
        found = find(view)
        if found is not None:
            assert list(zip(rows_of(found), found.keys(), found.values(), strict=True)) == expected


def test_what_is_kept_is_bounded() -> None:
    for size in range(KNOWN.layout_sightings.count_max + 10):
        data = build_batch([b"v" * size] * 8, timestamps=NOW)
        RecordBatch(data).columns()
        assert len(KNOWN.layout_sightings) <= KNOWN.layout_sightings.count_max
    for size in range(KNOWN.layouts.count_max + 5):
        learn(build_batch([b"v" * size] * 8, timestamps=NOW))
        assert len(KNOWN.layouts) <= KNOWN.layouts.count_max
