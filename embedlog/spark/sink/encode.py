"""Encodes Arrow columns as one record batch, with the same bytes that `build_batch` makes.

The bytes in front of each key and each value are built for all records at once, as two more
columns; Arrow then joins the columns row by row in C++. 10,000 records of 116 bytes take 1.1 ms,
against 4.6 ms through Python objects. Records with headers are built as Python objects.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from embedlog.spark.sink.rows import TopicRows, field_sizes
from wire.records.compression import compress
from wire.records.encode.builder import build_batch, seal
from wire.records.format import CHECKED_HEAD

Int64s = NDArray[np.int64]

Bytes = NDArray[np.uint8]

Flags = NDArray[np.bool_]

_NO_PRODUCER = (-1, -1, -1)


def encode_batch(rows: TopicRows, *, codec: int, level: int | None) -> bytes:
    """Return the batch of one or more rows, with offsets from 0."""
    if rows.headers is not None:
        return build_batch(
            rows.values.to_pylist(),
            keys=None if rows.keys is None else rows.keys.to_pylist(),
            timestamps=rows.timestamps.tolist(),
            headers=rows.headers,
            codec=codec,
            level=level,
        )
    base, largest = int(rows.timestamps[0]), int(rows.timestamps.max())
    count = len(rows)
    checked = CHECKED_HEAD.pack(codec, count - 1, base, largest, *_NO_PRODUCER, count)
    section = _records(rows, base)
    if codec:
        section = memoryview(compress(codec, section, level))
    return seal(0, -1, checked, [b"", section])


def _records(rows: TopicRows, base_timestamp: int) -> memoryview:
    count = len(rows)
    nothing = np.full(count, -1, dtype=np.int64)
    key_sizes = nothing if rows.keys is None else field_sizes(rows.keys)
    value_sizes = field_sizes(rows.values)
    deltas, has_deltas = _varints(rows.timestamps - base_timestamp)
    offsets, has_offsets = _varints(np.arange(count, dtype=np.int64))
    keys, has_keys = _varints(key_sizes)
    values, has_values = _varints(value_sizes)
    sizes = 2 + np.maximum(key_sizes, 0) + np.maximum(value_sizes, 0)
    for present in (has_deltas, has_offsets, has_keys, has_values):
        sizes = sizes + present.sum(axis=1)
    lengths, has_lengths = _varints(sizes)
    attributes = np.zeros((count, 1), dtype=np.uint8), np.ones((count, 1), dtype=np.bool_)
    heads = _column(
        np.hstack((lengths, attributes[0], deltas, offsets, keys)),
        np.hstack((has_lengths, attributes[1], has_deltas, has_offsets, has_keys)),
    )
    columns = [heads, _column(values, has_values), rows.values, pa.scalar(b"\0", pa.binary())]
    if rows.keys is not None:
        columns.insert(1, rows.keys)
    joined = pc.binary_join_element_wise(
        *columns, pa.scalar(b"", pa.binary()), null_handling="replace", null_replacement=b""
    )
    _, ends, data = joined.buffers()
    size = int(np.frombuffer(ends, dtype=np.int32, count=count + 1)[count])
    return memoryview(data)[:size]


def _varints(numbers: Int64s) -> tuple[Bytes, Flags]:
    """Return the zigzag varints as rows of bytes, and flags for the bytes that belong to them."""
    coded = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    width = max(1, (int(coded.max()).bit_length() + 6) // 7)
    shifts = np.arange(width, dtype=np.uint64) * np.uint64(7)
    groups = coded[:, np.newaxis] >> shifts
    present = groups > 0
    present[:, 0] = True
    made = (groups & np.uint64(0x7F)).astype(np.uint8)
    made[:, :-1] |= present[:, 1:].astype(np.uint8) << np.uint8(7)
    return made, present


def _column(made: Bytes, present: Flags) -> pa.Array:
    """Return rows of bytes as an Arrow column, without the bytes whose flag is False."""
    count = len(made)
    ends = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(present.sum(axis=1), out=ends[1:])
    data = made[present]
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(data)])
