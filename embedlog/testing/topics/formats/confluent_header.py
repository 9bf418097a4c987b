"""Values with Confluent's header: Avro, JSON and Protobuf, with schemas by id.

byte  0      0, the magic byte
bytes 1..4   schema id, big-endian
Protobuf     then the indexes of the message in its file: their count and the indexes, as zig-zag
             varints; a lone 0 means the first message

`schema_by_id(id)` may return the schema of an Avro value as text or as its JSON value, a generated
Protobuf class, the registry's answer `{"schema": text, "schemaType": "PROTOBUF"}`, a pair (type,
text), or an object with `schema_type` and `schema_str`, as confluent-kafka's `Schema`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embedlog.errors import ConfigError
from embedlog.testing.names import hint
from embedlog.testing.topics.formats.basic import JSON, Format, Undecodable

SchemaById = Callable[[int], Any]
"""Returns the schema of an id."""

_HEADER_SIZE = 5
_KINDS = ("AVRO", "JSON", "PROTOBUF")


class Confluent:
    """See `embedlog.testing.confluent`. It asks once for each schema."""

    def __init__(self, schema_by_id: SchemaById, *, schema_id: int | None, message: Any) -> None:
        if not callable(schema_by_id):
            raise ConfigError(f"confluent({schema_by_id!r}): expected a function id -> schema")
        self._schema_by_id = schema_by_id
        self._schema_id = schema_id
        self._message = message
        self._schemas: dict[int, tuple[str, Any]] = {}

    def decode(self, data: bytes) -> Any:
        if len(data) < _HEADER_SIZE or data[0] != 0:
            raise Undecodable(f"{data!r} has no Confluent header: a byte 0 and a schema id")
        kind, schema = self._schema(int.from_bytes(data[1:_HEADER_SIZE], "big"))
        rest = data[_HEADER_SIZE:]
        if kind != "PROTOBUF":
            return schema.decode(rest)
        indexes, message = _message_indexes(rest)
        return self._of_message(schema, indexes).decode(message)

    def encode(self, value: Any) -> bytes:
        if self._schema_id is None:
            raise ConfigError("which schema? Give confluent(..., schema_id=...), or bytes")
        kind, schema = self._schema(self._schema_id)
        header = b"\0" + self._schema_id.to_bytes(4, "big")
        if kind != "PROTOBUF":
            return header + bytes(schema.encode(value))
        return header + b"\0" + self._of_message(schema, [0]).encode(value)

    def _schema(self, schema_id: int) -> tuple[str, Any]:
        known = self._schemas.get(schema_id)
        if known is None:
            try:
                found = self._schema_by_id(schema_id)
            except LookupError as error:
                raise Undecodable(f"there is no schema {schema_id}: {error}") from error
            if found is None:
                raise Undecodable(f"there is no schema {schema_id}")
            known = self._schemas[schema_id] = _parsed(found)
        return known

    def _of_message(self, schema: Any, indexes: list[int]) -> Format:
        from embedlog.testing.topics.formats.protobuf_messages import (
            Protobuf,
            class_at,
            compiled_file,
        )

        if self._message is not None:
            return Protobuf(self._message)
        if isinstance(schema, str):
            return Protobuf(class_at(compiled_file(schema), indexes))
        return Protobuf(schema)

    def __repr__(self) -> str:
        return "confluent"


def _parsed(schema: Any) -> tuple[str, Any]:
    """Return the kind of a schema, and its format; for Protobuf, its text or class."""
    kind, text = _kind_and_text(schema)
    if kind == "PROTOBUF":
        return kind, text
    if kind == "JSON":
        return kind, JSON
    from embedlog.testing.topics.formats.avro_values import Avro

    return kind, Avro(text)


def _kind_and_text(schema: Any) -> tuple[str, Any]:
    if hasattr(schema, "FromString"):
        return "PROTOBUF", schema
    if hasattr(schema, "schema_str"):
        kind, text = schema.schema_type, schema.schema_str
    elif isinstance(schema, dict) and "schema" in schema:
        kind, text = schema.get("schemaType"), schema["schema"]
    elif isinstance(schema, tuple) and len(schema) == 2:
        kind, text = schema
    elif isinstance(schema, dict) and "$schema" in schema:
        kind, text = "JSON", schema
    else:
        kind, text = "AVRO", schema
    kind = "AVRO" if kind is None else kind
    if kind not in _KINDS:
        raise ConfigError(f"schema type {kind!r}: {hint(kind, _KINDS)}")
    return kind, text


def _message_indexes(rest: bytes) -> tuple[list[int], bytes]:
    """Return the indexes of a Protobuf message, and the message."""
    count, position = _zigzag(rest, 0)
    if count == 0:
        return [0], rest[position:]
    if not 0 < count <= len(rest):
        raise Undecodable(f"{count} message indexes in {len(rest)} bytes")
    indexes = []
    for _ in range(count):
        index, position = _zigzag(rest, position)
        indexes.append(index)
    return indexes, rest[position:]


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while position < len(data) and shift < 35:
        byte = data[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
    raise Undecodable(f"the message indexes are cut off at byte {position}")
