"""The columns that the pipeline adds to the decoded ones of every row; all begin with `_`.

_key _value _headers          the record as it came, for its dead letter
_topic _partition _offset     the record's coordinates; a replay needs them in a table
_timestamp                    the record's time
_tombstone                    the value is null
_deleted                      the row's key was deleted: a tombstone, or Debezium's `d`
_op                           Debezium's operation: c, u, d, r or t
_unknown                      JSON of the row's columns that the schema lacks, or null
_attempt                      count of attempts, including this one
_error                        stage, rule and message of a dead letter; null for good rows
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.schema import Array, Field, Primitive, Struct

_TEXT = Primitive("string")
_HEADERS = Array(Struct((Field("key", _TEXT), Field("value", Primitive("binary")))))
ERROR = Struct((Field("stage", _TEXT), Field("rule", _TEXT), Field("message", _TEXT)))
META = Struct(
    (
        Field("_key", Primitive("binary")),
        Field("_value", Primitive("binary")),
        Field("_headers", _HEADERS),
        Field("_topic", _TEXT),
        Field("_partition", Primitive("integer")),
        Field("_offset", Primitive("long")),
        Field("_timestamp", Primitive("timestamp")),
        Field("_tombstone", Primitive("boolean")),
        Field("_deleted", Primitive("boolean")),
        Field("_op", _TEXT),
        Field("_unknown", _TEXT),
        Field("_attempt", Primitive("integer")),
        Field("_error", ERROR),
    )
)
OUTPUT = "output"
"""The stage of a rule on the output: its dead letter holds a row, not a record."""
STAGES = ("key", "decode", "map", "schema", "rule", "late", OUTPUT)
"""The steps at which a row may become a dead letter."""
COORDINATES = ("_topic", "_partition", "_offset")
BROKEN = "_broken"
"""The column that `rules.judge` adds: the names of the rules that a row breaks."""
KEPT = (*COORDINATES, "_timestamp")
"""Columns of this file that a table keeps from `SELECT *`; the others repeat decoded columns."""
INTERNAL = tuple(each.name for each in META.fields)


def kept_columns(names: Iterable[str]) -> list[str]:
    """Return the columns of a transform's rows that a table keeps."""
    hidden = {*INTERNAL, BROKEN} - set(KEPT)
    return [name for name in names if name not in hidden]


def with_meta(decoded: Struct) -> Struct:
    """Return the decoded columns and the pipeline's.

    Raises:
        ProjectError: a decoded column has the name of one of the pipeline's.
    """
    for each in decoded.fields:
        if each.name in INTERNAL:
            raise ProjectError(f"the column {each.name!r} of the schema is the pipeline's own")
    return Struct((*decoded.fields, *META.fields))


def key_columns(decode_key: Any, decoded: Struct) -> Struct:
    """Return the decoded columns and the column of the record's key."""
    if decode_key is None or decode_key.column is None:
        return decoded
    if any(each.name == decode_key.column for each in decoded.fields):
        return decoded
    kind = Primitive("long" if decode_key.format == "long" else "string")
    return Struct((Field(decode_key.column, kind), *decoded.fields))
