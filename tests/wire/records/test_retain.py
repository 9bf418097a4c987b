"""Removing records from a batch: the rest of the batch stays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.records.batches import NOW, batch_of_payload, build, columns, expected_records
from wire.records import InvalidRecord, RecordBatch, TimestampType, build_batch, scan, tuples
from wire.records.retain import empty_batch, retain

PRODUCER = {"producer_id": 9, "producer_epoch": 2, "base_sequence": 70, "leader_epoch": 4}


def frame(batch: RecordBatch) -> tuple[int, ...]:
    """Return the attributes that must not change."""
    return (
        batch.base_offset,
        batch.last_offset,
        batch.partition_leader_epoch,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.last_sequence,
        batch.is_transactional,
        batch.is_control,
        batch.timestamp_type,
    )


@pytest.mark.slow
@given(columns(count_max=120), st.data(), st.sampled_from([0, 0, 1, 4]))
@settings(max_examples=80)
def test_the_records_kept_and_nothing_else(
    arguments: dict[str, Any], data: Any, codec: int
) -> None:
    batch = RecordBatch(build(arguments, codec=codec, **PRODUCER))
    count = batch.record_count
    kept = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=20)))
    left = RecordBatch(retain(batch, kept))
    expected = expected_records(arguments)
    assert tuples(left) == [expected[index] for index in kept]
    assert left.is_valid_crc()
    assert frame(left) == frame(batch)
    assert (left.codec, left.record_count) == (codec, len(kept))
    if batch.timestamp_type == TimestampType.LOG_APPEND_TIME:
        assert left.max_timestamp == batch.max_timestamp
    else:
        assert left.base_timestamp == expected[kept[0]][1]
        assert left.max_timestamp == max(expected[index][1] for index in kept)


@given(columns(count_max=100))
def test_keeping_all_changes_nothing(arguments: dict[str, Any]) -> None:
    batch = RecordBatch(build(arguments, **PRODUCER))
    assert retain(batch, range(batch.record_count)) == bytes(batch.buffer)


def test_the_delete_horizon_is_the_base_timestamp() -> None:
    built = build_batch(
        [b"v", None, b"v"], keys=[b"a"] * 3, timestamps=[NOW, NOW + 5, NOW + 9], **PRODUCER
    )
    batch = RecordBatch(built)
    left = RecordBatch(retain(batch, [0, 1], delete_horizon_ms=NOW + 86_400_000))
    assert left.has_delete_horizon
    assert left.delete_horizon_ms == left.base_timestamp == NOW + 86_400_000
    assert [row[:2] for row in tuples(left)] == [(0, NOW), (1, NOW + 5)]
    assert left.max_timestamp == NOW + 5
    again = RecordBatch(retain(left, [1]))
    assert again.delete_horizon_ms == NOW + 86_400_000
    assert [row[:2] for row in tuples(again)] == [(1, NOW + 5)]
    assert scan(again).max_timestamp == NOW + 5


@pytest.mark.parametrize("codec", [0, 2])
def test_an_empty_batch_tells_offsets_and_sequences(codec: int) -> None:
    built = build_batch(
        [b"v"] * 5, timestamps=NOW, base_offset=30, codec=codec, transactional=True, **PRODUCER
    )
    batch = RecordBatch(built)
    left = RecordBatch(retain(batch, []))
    assert bytes(left.buffer) == empty_batch(batch)
    assert frame(left) == frame(batch)
    assert (left.size, left.record_count, left.codec) == (61, 0, 0)
    assert (left.base_timestamp, left.max_timestamp) == (-1, NOW)
    assert left.is_valid_crc()
    assert tuples(left) == []


def test_bad_records_are_not_copied() -> None:
    with pytest.raises(InvalidRecord):
        retain(RecordBatch(batch_of_payload(b"\x0c\x00\x00\x00\x01\x01\x00", 2)), [0])
