"""The columns that the pipeline gives every row beside the decoded ones; all begin with `_`.

_key _value _headers          the record as it came; dead letters are made of them
_topic _partition _offset     its coordinates; tables that keep them can be replayed into
_timestamp                    the record's time
_tombstone _deleted           a null value; a row that says its key is gone (Debezium's `d`, too)
_op                           Debezium's operation: c, u, d, r or t
_unknown                      JSON of what the row had and the schema has not, or null
_attempt                      how often it was tried, this time included
_error                        why it is a dead letter: stage, rule, message; null for good rows
"""

from __future__ import annotations

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
STAGES = ("key", "decode", "map", "schema", "rule", "late")
"""Where a row may become a dead letter."""
COORDINATES = ("_topic", "_partition", "_offset")
KEPT = (*COORDINATES, "_timestamp")
"""What `SELECT *` of a table keeps; the other ones would only repeat what the columns say."""
INTERNAL = tuple(each.name for each in META.fields)
SOURCE = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")


def with_meta(decoded: Struct) -> Struct:
    """The decoded columns and the pipeline's.

    Raises:
        ProjectError: a decoded column has a name of the pipeline's.
    """
    for each in decoded.fields:
        if each.name in INTERNAL:
            raise ProjectError(f"the column {each.name!r} of the schema is the pipeline's own")
    return Struct((*decoded.fields, *META.fields))


def key_columns(decode_key: Any, decoded: Struct) -> Struct:
    """The decoded columns, and those that the record's key adds."""
    if decode_key is None or decode_key.column is None:
        return decoded
    if any(each.name == decode_key.column for each in decoded.fields):
        return decoded
    kind = Primitive("long" if decode_key.format == "long" else "string")
    return Struct((Field(decode_key.column, kind), *decoded.fields))
