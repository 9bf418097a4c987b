"""Many batches read at once have the same columns as each read alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.records import InvalidRecord, build_batch
from wire.records.batch import RecordBatch
from wire.records.decode.lockstep import BatchesColumns, columns_of_batches

NAMES = ("offsets", "timestamps", "key_sizes", "value_sizes")

fields = st.none() | st.binary(max_size=300)
records = st.lists(st.tuples(fields, fields, st.integers(0, 1 << 40)), min_size=1, max_size=40)


def _batch(
    content: list[tuple[bytes | None, bytes | None, int]], base_offset: int = 0, **fields: object
) -> RecordBatch:
    keys, values, stamps = zip(*content, strict=True)
    made = bytearray(build_batch(list(values), keys=list(keys), timestamps=list(stamps), **fields))
    made[:8] = base_offset.to_bytes(8, "big")
    return RecordBatch(memoryview(bytes(made)))


def _together(batches: list[RecordBatch]) -> BatchesColumns | None:
    return columns_of_batches(batches, [batch.payload() for batch in batches])


def _field(columns: object, name: str, index: int) -> bytes | None:
    size = int(getattr(columns, f"{name}_sizes")[index])
    at = int(getattr(columns, f"{name}_positions")[index])
    return None if size < 0 else bytes(columns.buffer[at : at + size])


@pytest.mark.slow
@given(st.lists(records, min_size=1, max_size=12), st.sampled_from(["none", "lz4", "gzip"]))
def test_columns_are_those_of_each_batch(
    contents: list[list[tuple[bytes | None, bytes | None, int]]], codec: str
) -> None:
    batches, offset = [], 10
    for content in contents:
        batches.append(_batch(content, offset, codec={"none": 0, "gzip": 1, "lz4": 3}[codec]))
        offset += len(content) + 3
    found = _together(batches)
    assert found is not None
    alone = [batch.columns() for batch in batches]
    for name in NAMES:
        expected = np.concatenate([getattr(each, name) for each in alone])
        if name.endswith("sizes"):
            expected = np.maximum(expected, -1)
        assert getattr(found, name).tolist() == expected.tolist(), name
    everything = [record for content in contents for record in content]
    for index, (key, value, _) in enumerate(everything):
        assert _field(found, "key", index) == key
        assert _field(found, "value", index) == value


def test_records_with_headers_are_left_to_the_general_reader() -> None:
    made = build_batch([b"a", b"b"], timestamps=5, headers=[[("name", b"x")], []])
    assert _together([RecordBatch(memoryview(made))] * 3) is None


def test_a_batch_that_is_malformed_is_left_to_the_general_reader() -> None:
    good = _batch([(b"key", b"value" * 10, 5)] * 4)
    content = bytearray(good.buffer)
    for position in range(61, len(content)):
        for change in (0x80, 0x01, 0x7F):
            changed = bytearray(content)
            changed[position] ^= change
            batch = RecordBatch(memoryview(bytes(changed)))
            try:
                expected = batch.columns()
            except ValueError:
                assert _together([good, batch]) is None
                continue
            found = _together([batch])
            if found is not None:
                assert found.value_sizes.tolist() == expected.value_sizes.tolist()


@pytest.mark.parametrize("position", [4, 8], ids=["key", "value"])
def test_a_field_that_leaves_its_record_is_noticed_where_the_lengths_are_whole(
    position: int,
) -> None:
    whole = _batch([(b"key", b"value", 0)] * 3)
    # length, attributes, timestamp delta, offset delta, size and bytes of key, size of value
    payload = bytearray(whole.payload())
    assert (payload[4], payload[8]) == (2 * len(b"key"), 2 * len(b"value"))
    payload[position] += 2
    assert columns_of_batches([whole, whole], [whole.payload(), whole.payload()]) is not None
    assert columns_of_batches([whole, whole], [whole.payload(), bytes(payload)]) is None


def _with_key_size(encoded: bytes) -> RecordBatch:
    """Return a batch of one record without a key; `encoded` is its key size field."""
    record = bytes(3) + encoded + b"\2v" + bytes(1)
    payload = bytes((2 * len(record),)) + record
    made = bytearray(build_batch([b"v"], timestamps=5))[:61] + payload
    made[8:12] = (len(made) - 12).to_bytes(4, "big")
    return RecordBatch(memoryview(bytes(made)))


def test_a_number_of_too_many_bytes_is_left_to_the_general_reader() -> None:
    batch = _with_key_size(b"\x81\x80\x80\x80\x80\0")
    with pytest.raises(InvalidRecord):
        batch.columns()
    assert _together([batch, batch]) is None


def test_a_number_with_more_bits_than_it_may_have_is_read_as_java_reads_it() -> None:
    batch = _with_key_size(b"\x81\x80\x80\x80\x70")
    assert batch.columns().key_sizes.tolist() == [-1]
    found = _together([batch, batch])
    assert found is not None
    assert found.key_sizes.tolist() == [-1, -1]


@pytest.mark.parametrize("name", ["timestamps", "offsets"])
def test_the_time_of_the_log_is_every_records_own(name: str) -> None:
    batch = _batch([(b"k", b"v", 7), (b"k", b"v", 9)])
    content = bytearray(batch.buffer)
    content[22] |= 0x08
    logged = RecordBatch(memoryview(bytes(content)))
    found = _together([batch, logged])
    assert found is not None
    expected = np.concatenate([getattr(batch.columns(), name), getattr(logged.columns(), name)])
    assert getattr(found, name).tolist() == expected.tolist()
