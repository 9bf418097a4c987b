"""Batches of values of one length: compared whole, with the plain loop's result."""

from __future__ import annotations

from itertools import repeat
from random import Random

import pytest

from tests.wire.records.batches import batch_of_payload
from tests.wire.records.decode.test_reading import assert_all_forms_agree
from wire.records import RecordBatch, build_batch, tuples
from wire.records.decode.layouts import COUNT_MAX as LAYOUT_COUNT_MAX
from wire.records.decode.layouts import known_runs, remember
from wire.records.decode.rows import NO_ROWS, Rows, rows_of
from wire.records.decode.runs import find_runs
from wire.records.decode.uniform import COUNT_MAX
from wire.records.known import Known

COUNTS = (8, 64, 65, COUNT_MAX, COUNT_MAX + 1, LAYOUT_COUNT_MAX)


def payload_of(count: int, value_size: int) -> bytes:
    return bytes(RecordBatch(build_batch([b"\1" * value_size] * count, timestamps=7)).payload())


def learnt(payload: bytes, count: int) -> Known:
    """Return the caches after reading such a batch twice."""
    known = Known()
    for _ in range(2):
        runs = find_runs(payload, count)
        assert runs is not None
        assert known_runs(payload, count, known) is None
        remember(payload, runs, count, known)
    return known


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("value_size", [0, 1, 57, 63, 64, 100])
def test_they_are_recognised_once_they_were_met_twice(count: int, value_size: int) -> None:
    payload = payload_of(count, value_size)
    known = learnt(payload, count)
    for _ in range(3):
        assert known_runs(payload, count, known) is not None
        assert known_runs(memoryview(payload), count, known) is not None
        assert_all_forms_agree(RecordBatch(batch_of_payload(payload, count)))


@pytest.mark.parametrize("count", [8, 65, 401])
def test_a_changed_byte_is_seen_wherever_it_is(count: int) -> None:
    payload = payload_of(count, 3)
    for _ in range(3):  # the layout of the good batches must not hide the faults of the bad ones
        assert_all_forms_agree(RecordBatch(batch_of_payload(payload, count)))
    known = learnt(payload, count)
    random = Random(count)
    places = {
        *range(24),
        *range(len(payload) - 24, len(payload)),
        *range(64 * 10 - 12, 64 * 10 + 12),
    }
    for place in sorted(places):
        if place < len(payload):
            changed = bytearray(payload)
            changed[place] ^= 1 << random.randrange(8)
            assert_all_forms_agree(RecordBatch(batch_of_payload(bytes(changed), count)))
    for wrong in (payload[:-1], payload + b"\0", payload[1:], b""):
        assert known_runs(wrong, count, known) is None


def test_parts_of_rows() -> None:
    rows = Rows(range(10, 14), repeat(5), repeat(None), [b"a", b"b", b"c", b"d"])
    assert list(rows) == [(10 + n, 5, None, b"abcd"[n : n + 1], ()) for n in range(4)]
    assert list(rows) == list(rows), "each iteration makes new tuples"
    assert list(rows.part(1, 3)) == list(rows)[1:3]
    assert list(rows.part(3, 9)) == list(rows)[3:]
    assert rows.value_list() == [b"a", b"b", b"c", b"d"]
    assert list(rows_of(list(rows))) == list(rows)
    assert len(NO_ROWS) == 0 and list(NO_ROWS) == [] and not rows_of([])


def test_the_values_of_rows_without_any() -> None:
    batch = RecordBatch(build_batch([None] * 20, keys=[b"k"] * 20, timestamps=7))
    assert [row[3] for row in tuples(batch)] == [None] * 20
