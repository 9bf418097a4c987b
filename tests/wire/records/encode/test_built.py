"""A built batch equals the bytes of `build_batch`, and its facts equal a scan's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.support import sizes
from tests.wire.records.batches import NOW, columns
from wire.records import RecordBatch, build_batch, scan
from wire.records.encode.built import BuiltBatch, NotPlain


@pytest.mark.slow
@given(columns())
@settings(max_examples=sizes.size(60, full=150), deadline=None)
def test_bytes_and_facts(given_columns: dict[str, Any]) -> None:
    wanted = {name: given_columns[name] for name in ("values", "keys", "timestamps")}
    built = BuiltBatch(**wanted, producer=(7, 1, 3))
    data = build_batch(**wanted, producer_id=7, producer_epoch=1, base_sequence=3)
    assert bytes(built) == data
    assert len(built) == built.size == len(data)
    batch = RecordBatch(bytes(built))
    assert batch.is_valid_crc()
    facts = scan(batch)
    assert facts.consecutive
    assert built.count == batch.record_count
    assert built.max_timestamp == facts.max_timestamp == batch.max_timestamp
    assert built.min_timestamp == facts.min_timestamp
    assert built.first_null_key_index == facts.first_null_key_index
    assert (built.producer_id, built.producer_epoch, built.base_sequence) == (7, 1, 3)


@pytest.mark.parametrize("size", [0, 1, 62, 63, 64, 8_190, 8_191, 8_192, 70_000])
def test_a_lone_value_of_any_size(size: int) -> None:
    value = b"x" * size
    assert bytes(BuiltBatch([value], timestamps=NOW)) == build_batch([value], timestamps=NOW)


class Liar(bytes):
    """Its `len` differs from its size."""

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    "column",
    [
        [memoryview(b"abcd").cast("i")],
        [memoryview(b"abcd").cast("i"), b"a"],
        [Liar(b"abc")],
        [b"a", Liar()],
        [Liar(b"abc"), b"a", b"b"],
    ],
)
def test_what_may_lie_about_its_length_is_not_built(column: list[Any]) -> None:
    with pytest.raises(NotPlain):
        BuiltBatch(column, timestamps=NOW)
    with pytest.raises(NotPlain):
        BuiltBatch([b"v"] * len(column), keys=column, timestamps=NOW)


def test_buffers_that_are_as_long_as_they_say_are_built() -> None:
    values: list[Any] = [b"ab", bytearray(b"cd"), memoryview(b"ef"), memoryview(b"gh").cast("b")]
    expected = bytes(build_batch([bytes(each) for each in values], timestamps=NOW))
    assert bytes(BuiltBatch(values, timestamps=NOW)) == expected
    assert bytes(BuiltBatch(values, timestamps=NOW, sizes=[2] * 4)) == expected


def test_wrong_sizes_of_a_caller_are_noticed() -> None:
    with pytest.raises(NotPlain):
        BuiltBatch([b"ab", "cd"], timestamps=NOW, sizes=[2, 2])  # type: ignore[list-item]
    values = [b"ab", b"c"]
    built = BuiltBatch(values, timestamps=NOW, sizes=[2, 2])
    assert bytes(built) == build_batch(values, timestamps=NOW)


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 127, 128, 8_192, 8_193, 20_000])
def test_values_of_one_length_at_every_size_of_offsets(count: int) -> None:
    values = [b"%05d" % number for number in range(count)]
    for _ in range(2):  # with the caches of the first time
        assert bytes(BuiltBatch(values, timestamps=NOW)) == build_batch(values, timestamps=NOW)


def test_only_whole_numbers_are_timestamps() -> None:
    with pytest.raises(NotPlain):
        BuiltBatch([b"a", b"b"], timestamps=[NOW, NOW + 0.5])  # type: ignore[list-item]


def test_bytes_of_a_stranger_cannot_become_one() -> None:
    data = build_batch([b"a"], timestamps=NOW)
    with pytest.raises(TypeError):
        BuiltBatch(data)  # type: ignore[call-arg, arg-type]
