"""A batch built here equals the bytes of `build_batch`, and its facts are what a scan finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.wire.records.batches import NOW, columns
from wire.records import RecordBatch, build_batch, scan
from wire.records.built import BuiltBatch, NotPlain


@given(columns())
@settings(max_examples=150, deadline=None)
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
    assert built.max_timestamp_index == facts.max_timestamp_index
    assert built.min_timestamp == facts.min_timestamp
    assert built.first_null_key_index == facts.first_null_key_index
    assert (built.producer_id, built.producer_epoch, built.base_sequence) == (7, 1, 3)


@pytest.mark.parametrize("size", [0, 1, 62, 63, 64, 8_190, 8_191, 8_192, 70_000])
def test_a_lone_value_of_any_size(size: int) -> None:
    value = b"x" * size
    assert bytes(BuiltBatch([value], timestamps=NOW)) == build_batch([value], timestamps=NOW)


class Liar(bytes):
    """Says another length than it has."""

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    "column", [[memoryview(b"abcd").cast("i")], [bytearray(b"a")], [Liar(b"abc")], [b"a", Liar()]]
)
def test_what_may_lie_about_its_length_is_not_built(column: list[Any]) -> None:
    with pytest.raises(NotPlain):
        BuiltBatch(column, timestamps=NOW)
    with pytest.raises(NotPlain):
        BuiltBatch([b"v"] * len(column), keys=column, timestamps=NOW)


def test_only_whole_numbers_are_timestamps() -> None:
    with pytest.raises(NotPlain):
        BuiltBatch([b"a", b"b"], timestamps=[NOW, NOW + 0.5])  # type: ignore[list-item]


def test_bytes_of_a_stranger_cannot_become_one() -> None:
    data = build_batch([b"a"], timestamps=NOW)
    with pytest.raises(TypeError):
        BuiltBatch(data)  # type: ignore[call-arg, arg-type]
