"""From one record to one row: decoded, or with an error. Uses neither Spark nor Arrow."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from embedlog.errors import EmbedlogError
from embedlog.spark.pipeline.columns import key_columns
from embedlog.spark.pipeline.decode import foreign
from embedlog.spark.pipeline.decode.debezium import unwrap
from embedlog.spark.pipeline.decode.formats import decoder_for, row_schema
from embedlog.spark.pipeline.decode.json_text import parse_json
from embedlog.spark.pipeline.errors import DecodeError
from embedlog.spark.pipeline.project import Decode, Key
from embedlog.spark.pipeline.schema import Gate, Struct

_NOT_THE_RECORDS = (EmbedlogError, OSError, MemoryError)
"""Errors of the surroundings, such as an unavailable registry: they fail the batch."""


class Decoded(NamedTuple):
    """A decoded record. `columns` is empty if `error` (stage, rule, message) is set."""

    columns: Mapping[str, Any]
    error: Mapping[str, str | None] | None = None
    is_deleted: bool = False
    operation: str | None = None
    unknown: str | None = None


class RowDecoder:
    """Decodes the records of one project. For one thread."""

    def __init__(self, decode: Decode, maps: Sequence[Callable[[Any], Any]]) -> None:
        self.decoder = decoder_for(decode)
        self._key = decode.key
        self._is_enveloped = decode.envelope == "debezium"
        self._maps = maps
        self._gate = Gate(row_schema(decode))
        self.schema: Struct = key_columns(decode.key, self._gate.schema)
        self._stage = "key"
        """The step at which the current record is."""

    def decode(self, key: bytes | None, value: bytes | None) -> Decoded | None:
        """Return the row of a record, or None if a function of `maps` returned None.

        Whatever a record contains, it gives a row or an error of its own. Only errors that are not
        the record's are raised, such as an unavailable registry.
        """
        self._stage = "key"
        try:
            found: Decoded | None = foreign.call(
                self._decode, key, value, what="record", passing=_NOT_THE_RECORDS
            )
        except DecodeError as error:
            return failed(self._stage, str(error))
        return found

    def _decode(self, key: bytes | None, value: bytes | None) -> Decoded | None:
        columns = _key_columns(self._key, key, self.schema) if self._key else {}
        if value is None:
            return Decoded(columns, is_deleted=True)
        self._stage = "decode"
        row = self.decoder.parse(value)
        operation, is_deleted = None, False
        if self._is_enveloped:
            change = unwrap(row)
            row, operation, is_deleted = change.row, change.operation, change.is_delete
        self._stage = "map"
        for function in self._maps:
            row = foreign.call(function, row, what=getattr(function, "__name__", "map"))
            if row is None:
                return None
        self._stage = "schema"
        columns = {**columns, **self._gate.conform(row)}
        unknown = self._gate.unknown
        text = json.dumps(unknown, default=_plain, sort_keys=True) if unknown else None
        return Decoded(columns, None, is_deleted, operation, text)


def failed(stage: str, message: str) -> Decoded:
    """Return the error of a record; characters that UTF-8 cannot hold are escaped."""
    text = message.encode(errors="backslashreplace").decode()
    return Decoded({}, {"stage": stage, "rule": None, "message": text})


def _key_columns(how: Key, key: bytes | None, schema: Struct) -> dict[str, Any]:
    if key is None:
        if how.column:
            return {}
        raise DecodeError("key: null, but its columns are needed")
    try:
        if how.format == "long":
            text = key.decode()
            number = int(text) if text.strip() == text else None
            if number is None or not -(1 << 63) <= number < 1 << 63:
                raise DecodeError(f"key: expected a long as text, found {key!r}")
            return {str(how.column): number}
        if how.format == "string":
            return {str(how.column): key.decode()}
    except ValueError as error:
        raise DecodeError(f"key: expected {how.format}: {error}") from None
    members = parse_json(key)
    if isinstance(members, Mapping) and isinstance(members.get("payload"), Mapping):
        members = members["payload"]
    if not isinstance(members, Mapping):
        raise DecodeError(f"key: expected an object, found {members!r}")
    known = {each.name: each for each in schema.fields}
    chosen = tuple(known[name] for name in members if name in known)
    return Gate(Struct(chosen)).conform(members)


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, datetime.date) else str(value)
