"""Values with Confluent's header: Avro, JSON and Protobuf, with schemas by id.

`schema_by_id(id)` may return the schema of an Avro value as text or as its JSON value, a generated
Protobuf class, the registry's answer `{"schema": text, "schemaType": "PROTOBUF"}`, a pair (type,
text), or an object with `schema_type` and `schema_str`, as confluent-kafka's `Schema`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embedlog.confluent_header import FIRST_MESSAGE, header_of, split, split_message_indexes
from embedlog.errors import ConfigError
from embedlog.testing.names import hint
from embedlog.testing.topics.formats.basic import JSON, Format, Undecodable

SchemaById = Callable[[int], Any]
"""Returns the schema of an id."""

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
        try:
            schema_id, rest = split(data)
        except ValueError as error:
            raise Undecodable(f"{data!r} has {error}") from None
        kind, schema = self._schema(schema_id)
        if kind != "PROTOBUF":
            return schema.decode(rest)
        try:
            indexes, message = split_message_indexes(rest)
        except ValueError as error:
            raise Undecodable(f"{data!r}: {error}") from None
        return self._of_message(schema, indexes).decode(message)

    def encode(self, value: Any) -> bytes:
        if self._schema_id is None:
            raise ConfigError("which schema? Give confluent(..., schema_id=...), or bytes")
        kind, schema = self._schema(self._schema_id)
        header = header_of(self._schema_id)
        if kind != "PROTOBUF":
            return header + bytes(schema.encode(value))
        return header + FIRST_MESSAGE + self._of_message(schema, [0]).encode(value)

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
