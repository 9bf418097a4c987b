"""Headers that are read in step equal headers that are read record by record."""

from __future__ import annotations

import struct
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from embedlog.spark.access.arrow_chunks import ArrowChunks
from wire.records import RecordBatch, build_batch
from wire.records.decode.lockstep import columns_of_batches

SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("offset", pa.int64()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=4)
contents = st.lists(st.lists(headers, min_size=1, max_size=4), min_size=20, max_size=30)


def _batches(content: list[list[Any]], *, codec: int = 0) -> list[RecordBatch]:
    found, offset = [], 5
    for each in content:
        keys = [b"k%d" % (offset + n) for n in range(len(each))]
        made = bytearray(build_batch(keys, keys=keys, timestamps=1, headers=each, codec=codec))
        struct.pack_into(">q", made, 0, offset)
        found.append(RecordBatch(memoryview(bytes(made))))
        offset += len(each)
    return found


def _rows(batches: list[RecordBatch], start: int, end: int) -> list[dict[str, Any]]:
    chunks = ArrowChunks(SCHEMA, "t", 0, start, end, size_max=1 << 20)
    made = [*chunks.of_batches(batches), *chunks.flush()]
    return [row for each in made for row in each.to_pylist()]


@pytest.mark.slow
@given(contents, st.integers(0, 50), st.integers(0, 50))
def test_headers_are_those_of_each_record(content: list[Any], skip: int, length: int) -> None:
    batches = _batches(content)
    payloads = [batch.payload() for batch in batches]
    assert columns_of_batches(batches, payloads, with_headers=True) is not None
    start, end = 5 + skip, 5 + skip + length
    expected = [
        {
            "key": bytes(each.key or b""),
            "offset": each.offset,
            "headers": [{"key": k, "value": v} for k, v in each.headers] or None,
        }
        for batch in batches
        for each in batch.records()
        if start <= each.offset < end
    ]
    assert _rows(batches, start, end) == expected


def test_a_name_that_is_no_utf_8_is_shown_as_java_shows_it() -> None:
    content = [[[("name", b"v")]]] * 20
    batches = []
    for batch in _batches(content):
        raw = bytearray(batch.buffer)
        at = raw.index(b"name")
        raw[at : at + 4] = b"n\xffme"
        batches.append(RecordBatch(memoryview(bytes(raw))))
    names = {header["key"] for row in _rows(batches, 0, 100) for header in row["headers"]}
    assert names == {"n\N{REPLACEMENT CHARACTER}me"}


def test_a_header_that_is_cut_is_left_to_the_general_reader() -> None:
    batches = _batches([[[("name", b"v")]]] * 20)
    payloads = [bytearray(batch.payload()) for batch in batches]
    payloads[7][-2] = 0x7E  # the value now claims to have 63 bytes
    assert columns_of_batches(batches, payloads, with_headers=True) is None
    assert columns_of_batches(batches, payloads) is None
