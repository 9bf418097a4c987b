"""Decoding in Spark's tasks: Arrow batches of records in, Arrow batches of rows out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from embedlog.spark.pipeline import schema as types
from embedlog.spark.pipeline.columns import with_meta
from embedlog.spark.pipeline.decode.rows import Decoded, RowDecoder, failed
from embedlog.spark.pipeline.project import Decode

_ROWS_MAX = 4096
"""Rows decoded at a time, which limits the Python objects in a task's memory."""
_REFUSALS = (ValueError, TypeError, ArithmeticError, pa.ArrowException)
"""What `pyarrow.array` raises for a value that its type cannot hold."""
_PASSED = {
    "_key": "key", "_value": "value", "_topic": "topic", "_partition": "partition",
    "_offset": "offset", "_timestamp": "timestamp",
}  # fmt: skip


def decode_function(
    decode: Decode, maps: list[Callable[[Any], Any]], columns: types.Struct
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow`; its rows have the columns of `with_meta(columns)`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = RowDecoder(decode, maps)
        out = pa.schema([(f.name, types.arrow(f.type)) for f in with_meta(columns).fields])
        for batch in batches:
            for start in range(0, batch.num_rows, _ROWS_MAX):
                yield _decoded(decoder, batch.slice(start, _ROWS_MAX), out, columns)

    return run


def _decoded(
    decoder: RowDecoder, batch: pa.RecordBatch, out: pa.Schema, columns: types.Struct
) -> pa.RecordBatch:
    keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
    found = [decoder.decode(key, value) for key, value in zip(keys, values, strict=True)]
    if None in found:
        kept = pa.array([number for number, each in enumerate(found) if each is not None])
        batch = batch.take(kept.cast(pa.int64()))
        values = batch.column("value").to_pylist()
    rows, made = _columns([each for each in found if each is not None], columns)
    for name, source in _PASSED.items():
        made[name] = batch.column(source).cast(out.field(name).type)
    made["_headers"] = _optional(batch, "headers", out.field("_headers").type, None)
    made["_tombstone"] = pa.array([value is None for value in values], pa.bool_())
    made["_deleted"] = pa.array([row.is_deleted for row in rows], pa.bool_())
    made["_op"] = pa.array([row.operation for row in rows], pa.string())
    made["_unknown"] = pa.array([row.unknown for row in rows], pa.string())
    made["_attempt"] = _optional(batch, "attempt", pa.int32(), 1)
    made["_error"] = pa.array([row.error for row in rows], out.field("_error").type)
    return pa.RecordBatch.from_arrays([made[name] for name in out.names], schema=out)


def _columns(
    rows: list[Decoded], columns: types.Struct
) -> tuple[list[Decoded], dict[str, pa.Array]]:
    """Return the rows and their columns; a row with a value that Arrow refuses becomes an error."""
    try:
        return rows, _arrays(rows, columns)
    except _REFUSALS:
        rows = [_checked(row, columns) for row in rows]
        return rows, _arrays(rows, columns)


def _checked(row: Decoded, columns: types.Struct) -> Decoded:
    try:
        _arrays([row], columns)
    except _REFUSALS as error:
        return failed("schema", f"no column can hold it: {type(error).__name__}: {error}"[:500])
    return row


def _arrays(rows: list[Decoded], columns: types.Struct) -> dict[str, pa.Array]:
    return {
        field.name: pa.array([row.columns.get(field.name) for row in rows], types.arrow(field.type))
        for field in columns.fields
    }


def _optional(batch: pa.RecordBatch, name: str, kind: Any, default: object) -> Any:
    if name in batch.schema.names:
        return batch.column(name).cast(kind)
    return pa.array([default] * batch.num_rows, kind)
