"""Batches of one size, cut in one call from the second on: exactly what the plain loop reads."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.records.batches import NOW, batch_of_payload
from tests.wire.records.test_reading import assert_all_forms_agree
from wire.records import HEADER_SIZE, RecordBatch, build_batch, tuples
from wire.records.reader import _plain_tuples
from wire.records.template import find_plain_runs
from wire.records.whole import CUT_COUNT_MAX, cut_plain, cut_whole


def batch_of(count: int, value_size: int, deltas: list[int], **more: Any) -> RecordBatch:
    values = [bytes([index % 256]) * value_size for index in range(count)]
    stamps = [NOW + delta for delta in deltas]
    return RecordBatch(build_batch(values, timestamps=stamps, **more))


def plainly(batch: RecordBatch) -> Any:
    return _plain_tuples(batch, bytes(batch.payload()))


@pytest.mark.parametrize("count", [8, 63, 64, 65, CUT_COUNT_MAX])
@pytest.mark.parametrize("value_size", [0, 1, 53, 57, 58, 100, 8200])
def test_times_within_63_ms_of_the_first_are_cut_from_the_second_batch_on(
    count: int, value_size: int
) -> None:
    for round_number in range(3):
        # Time may go backwards too: a delta of -64 still is one byte.
        deltas = [0] + [(index * 7 + round_number) % 128 - 64 for index in range(1, count)]
        batch = batch_of(count, value_size, deltas, base_offset=round_number)
        found = cut_whole(batch.buffer, HEADER_SIZE, batch.size, count)
        assert tuples(batch) == plainly(batch)
    assert found is not None
    assert list(found[0]) == [record[3] for record in plainly(batch)]


def test_a_time_further_off_is_read_in_another_way() -> None:
    for deltas in ([0] * 20, [0] * 19 + [63], [0] * 19 + [64], [0] * 19 + [-65], [0] * 20):
        for _ in range(3):
            batch = batch_of(20, 33, deltas)
            assert tuples(batch) == plainly(batch)


def test_the_time_of_the_log_is_that_of_the_batch() -> None:
    for _ in range(3):
        batch = batch_of(20, 34, [*range(20)], timestamp_type=1)
        assert {record[1] for record in tuples(batch)} == {batch.max_timestamp}


def test_the_plain_ones_have_no_deltas_at_all() -> None:
    for deltas in ([0] * 20, [*range(20)], [0] * 20):
        payload = bytes(batch_of(20, 35, deltas).payload())
        cut_plain(payload, 20)
    assert cut_plain(bytes(batch_of(20, 35, [0] * 20).payload()), 20) is not None
    assert cut_plain(bytes(batch_of(20, 35, [*range(20)]).payload()), 20) is None
    # The last one back at the time of the first one.
    assert cut_plain(bytes(batch_of(20, 35, [*range(19), 0]).payload()), 20) is None


@given(
    st.sampled_from([8, 20, 64, 65, 70]),
    st.sampled_from([0, 1, 3, 57]),
    st.randoms(use_true_random=False),
)
@settings(max_examples=150)
def test_no_changed_byte_is_overlooked(count: int, value_size: int, random: Random) -> None:
    for _ in range(2):  # known well by now
        batch = batch_of(count, value_size, [0] + [random.randrange(64) for _ in range(count - 1)])
        tuples(batch)
    payload = bytearray(batch.payload())
    for _ in range(random.choice([1, 1, 2])):
        payload[random.randrange(len(payload))] ^= 1 << random.randrange(8)
    assert_all_forms_agree(RecordBatch(batch_of_payload(bytes(payload), count)))


@pytest.mark.parametrize("count", [8, 64, 65, CUT_COUNT_MAX + 1, 1000])
@pytest.mark.parametrize("value_size", [0, 1, 3, 53, 57, 58, 200])
def test_columns_of_times_within_63_ms_of_the_first(count: int, value_size: int) -> None:
    for round_number in range(3):
        deltas = [0] + [(index * 7 + round_number) % 128 - 64 for index in range(1, count)]
        batch = batch_of(count, value_size, deltas)
        assert find_plain_runs(bytes(batch.payload()), count) is not None
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
        batch = RecordBatch(data)
        assert tuples(batch) == plainly(batch)
