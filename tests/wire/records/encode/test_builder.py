"""Building: the joins equal the plain encoder at every size at which a varint grows."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given, settings

from tests.support import sizes
from tests.wire.records.batches import (
    NOW,
    build,
    columns,
    expected_records,
    plain_payload,
)
from wire.records import RecordBatch, build_batch, tuples
from wire.records.encode.builder import PATCHED_SIZE_MIN, renumbered
from wire.records.encode.joins import encode_record, encode_records


@pytest.mark.slow
@given(columns())
@settings(max_examples=sizes.size(80, full=200))
def test_joins_equal_the_plain_encoder(arguments: dict[str, Any]) -> None:
    built = build(arguments)
    assert built[61:] == plain_payload(arguments)
    batch = RecordBatch(built)
    assert batch.is_valid_crc()
    assert batch.size == len(built)
    assert batch.record_count == len(arguments["values"])
    assert batch.last_offset_delta == len(arguments["values"]) - 1
    stamps = arguments["timestamps"]
    stamps = [stamps] if isinstance(stamps, int) else stamps
    assert (batch.base_timestamp, batch.max_timestamp) == (stamps[0], max(stamps))
    assert tuples(batch) == expected_records(arguments)


@pytest.mark.slow
@pytest.mark.parametrize("count", [8191, 8192, 8193, 20_000])
@pytest.mark.parametrize("shape", ["uniform", "varying", "keyed", "stamped"])
def test_offset_deltas_of_three_bytes(count: int, shape: str) -> None:
    arguments: dict[str, Any] = {
        "values": [b"v" * (index % 3 if shape == "varying" else 2) for index in range(count)],
        "keys": [b"%d" % index for index in range(count)] if shape == "keyed" else None,
        "timestamps": [NOW + index for index in range(count)] if shape == "stamped" else NOW,
        "headers": None,
        "timestamp_type": 0,
        "base_offset": 3,
    }
    built = build(arguments)
    assert built[61:] == plain_payload(arguments)
    assert tuples(RecordBatch(built)) == expected_records(arguments)


@pytest.mark.parametrize("keys", [None, b"key"])
@pytest.mark.parametrize("distinct", [1, 75, 76, 300])
def test_timestamps_that_repeat_and_that_differ(keys: bytes | None, distinct: int) -> None:
    """300 records, so that offset deltas take one byte and two; a quarter of 300 is 75."""
    deltas = [-(index % distinct) * 77 for index in range(300)]
    keyed = None if keys is None else [keys] * 300
    made = b"".join(encode_records([b"value"] * 300, keyed, deltas, None))
    assert made == b"".join(
        encode_record(
            offset_delta=index, timestamp_delta=delta, key=keys, value=b"value", headers=None
        )
        for index, delta in enumerate(deltas)
    )


@pytest.mark.parametrize("size", [0, 63, 64, 8191, 8192, 1 << 20, (1 << 20) + 1])
@pytest.mark.parametrize("count", [1, 2])
def test_large_values(size: int, count: int) -> None:
    values = [bytes([index]) * size for index in range(count)]
    built = build_batch(values, keys=[b"k" * (size // 2)] * count, timestamps=NOW)
    assert RecordBatch(built).is_valid_crc()
    assert [record.value for record in RecordBatch(built).records()] == values


@pytest.mark.parametrize("size", range(PATCHED_SIZE_MIN - 70, PATCHED_SIZE_MIN - 55))
def test_patched_and_joined_headers_are_alike(size: int) -> None:
    built = build_batch([bytes(size)], timestamps=NOW, base_offset=4, leader_epoch=9)
    batch = RecordBatch(built)
    assert batch.is_valid_crc()
    assert (batch.base_offset, batch.partition_leader_epoch) == (4, 9)
    assert type(built) is bytes


def test_buffers_of_every_kind() -> None:
    kinds = [b"abc", bytearray(b"abc"), memoryview(b"xabcx")[1:4]]
    assert build_batch(kinds, keys=kinds, timestamps=NOW) == build_batch(
        [b"abc"] * 3, keys=[b"abc"] * 3, timestamps=NOW
    )
    assert build_batch([bytearray()], timestamps=NOW) == build_batch([b""], timestamps=NOW)


@pytest.mark.parametrize("bad", ["text", 5, 1.5])
def test_what_is_not_bytes_is_a_type_error(bad: Any) -> None:
    for values in ([bad], [b"v", bad], [b"v", None, bad]):
        with pytest.raises(TypeError):
            build_batch(values, timestamps=NOW)
        with pytest.raises(TypeError):
            build_batch([b"v"] * len(values), keys=values, timestamps=NOW)


@pytest.mark.parametrize("count", [1, 2, 20])
@pytest.mark.parametrize(
    "odd", [array("i", [1, 2]), memoryview(array("i", [1, 2])), memoryview(b"abcdef")[::2]]
)
def test_a_buffer_whose_length_is_not_in_bytes_is_a_type_error(odd: Any, count: int) -> None:
    fine = [b"ok"] * count
    with pytest.raises(TypeError, match=rf"value {count - 1} is .*not"):
        build_batch([*fine[1:], odd], timestamps=NOW)
    with pytest.raises(TypeError, match=rf"key {count - 1} is .*not"):
        build_batch(fine, keys=[*fine[1:], odd], timestamps=NOW)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@given(arguments=columns(count_max=150))
@settings(max_examples=15)
def test_compressed_batches_read_the_same(codec: int, arguments: dict[str, Any]) -> None:
    batch = RecordBatch(build(arguments, codec=codec))
    assert batch.codec == codec
    assert batch.is_valid_crc()
    assert bytes(batch.payload()) == plain_payload(arguments)
    assert tuples(batch) == expected_records(arguments)


@pytest.mark.parametrize("count", [1, 2, 200])
@pytest.mark.parametrize("codec", [0, 1])
def test_a_renumbered_batch_is_the_one_built_with_those_numbers(count: int, codec: int) -> None:
    values = [b"v" * number for number in range(count)]
    plain = build_batch(values, timestamps=NOW, codec=codec)
    kept = bytes(bytearray(plain))
    numbers: dict[str, int] = {
        "producer_id": 1 << 40,
        "producer_epoch": 7,
        "base_sequence": 2**31 - 1,
    }
    expected = build_batch(values, timestamps=NOW, codec=codec, **numbers)
    assert renumbered(plain, *numbers.values()) == expected
    assert renumbered(expected, -1, -1, -1) == plain
    assert plain == kept, "the original bytes must not change"
