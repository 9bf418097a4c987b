"""Avro: the writer's schema by id, resolved to the frozen reader's schema (fastavro).

The record is an error if Avro's rules cannot resolve the two schemas: a column's type changed, or a
missing column has no default.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from embedlog.spark.pipeline.decode import foreign
from embedlog.spark.pipeline.decode.confluent import row_of, split
from embedlog.spark.pipeline.decode.registry import Registry
from embedlog.spark.pipeline.errors import DecodeError, ProjectError
from embedlog.spark.pipeline.project import Decode, read_file
from embedlog.spark.pipeline.schema import Array, Field, Map, Primitive, Struct, Type

_PRIMITIVES = {
    "string": "string", "bytes": "binary", "int": "integer", "long": "long", "float": "float",
    "double": "double", "boolean": "boolean", "enum": "string", "fixed": "binary",
}  # fmt: skip
_LOGICAL = {
    "timestamp-millis": "timestamp", "timestamp-micros": "timestamp", "date": "date",
    "local-timestamp-millis": "timestamp", "local-timestamp-micros": "timestamp", "uuid": "string",
}  # fmt: skip


class AvroDecoder:
    """Decodes one Avro record in a value, with Confluent's header or in the frozen schema."""

    def __init__(self, decode: Decode) -> None:
        try:
            import fastavro
        except ImportError:
            raise ProjectError("fastavro is missing: pip install 'embedlog[pipeline]'") from None
        assert decode.schema is not None, decode
        text = read_file(decode.schema)
        try:
            self._reader: Any = fastavro.parse_schema(json.loads(text))
            whole = _Types().convert(json.loads(text), decode.schema)
        except (ValueError, fastavro.schema.SchemaParseException) as error:
            raise ProjectError(f"{decode.schema}: {error}") from None
        if not isinstance(whole, Struct):
            raise ProjectError(f"{decode.schema}: a record is needed")
        self.schema: Struct = row_of(decode, whole)
        self._registry = Registry(decode) if decode.header == "confluent" else None

    def parse(self, value: bytes) -> Any:
        import pyarrow as pa
        from fastavro import schemaless_reader

        writer = self._reader
        if self._registry is not None:
            number, value = split(value)
            writer = self._registry.parsed(number, "AVRO", _parsed)
        stream = pa.BufferReader(value)
        found = foreign.call(schemaless_reader, stream, writer, self._reader, what="avro")
        if stream.tell() != len(value):
            raise DecodeError(f"avro: {len(value) - stream.tell()} bytes behind the record")
        return found


def _parsed(document: Any, references: Mapping[str, Any]) -> Any:
    from fastavro import parse_schema

    named: dict[str, Any] = {}
    for each in references.values():
        parse_schema(each, named_schemas=named)
    return parse_schema(document, named_schemas=named)


class _Types:
    """Converts Avro's types to a row's types. Remembers named types for later fields."""

    def __init__(self) -> None:
        self._named: dict[str, Type] = {}
        self._open: list[str] = []

    def convert(self, document: Any, where: str, namespace: str = "") -> Type:
        """Return the type of a part of a schema.

        Raises:
            ProjectError: a union of several types, a recursive record, or an unknown type.
        """
        if isinstance(document, str):
            return self._by_name(document, where, namespace)
        if isinstance(document, list):
            return self._union(document, where, namespace)
        kind, logical = document["type"], document.get("logicalType")
        if logical == "decimal":
            return Primitive("decimal", document["precision"], document.get("scale", 0))
        if logical in _LOGICAL:
            return Primitive(_LOGICAL[logical])
        if logical is not None and logical.startswith("time-"):
            raise ProjectError(f"{where}: {logical} has no type in Spark; read it through `maps`")
        if kind in ("record", "error"):
            return self._record(document, where, namespace)
        if kind == "array":
            items = document["items"]
            return Array(self.convert(items, f"{where}[]", namespace), _has_null(items))
        if kind == "map":
            values = document["values"]
            return Map(self.convert(values, f"{where}{{}}", namespace), _has_null(values))
        if kind in ("enum", "fixed"):
            found = Primitive(_PRIMITIVES[kind])
            self._named[_full_name(document, namespace)] = found
            return found
        return self.convert(kind, where, namespace)

    def _record(self, document: Mapping[str, Any], where: str, namespace: str) -> Type:
        name = _full_name(document, namespace)
        inner = name.rpartition(".")[0]
        self._open.append(name)
        fields = []
        for each in document["fields"]:
            kind = self.convert(each["type"], f"{where}.{each['name']}", inner)
            fields.append(Field(each["name"], kind, _has_null(each["type"])))
        self._open.pop()
        self._named[name] = Struct(tuple(fields))
        return self._named[name]

    def _union(self, members: list[Any], where: str, namespace: str) -> Type:
        kinds = [each for each in members if each != "null"]
        if len(kinds) != 1:
            raise ProjectError(f"{where}: a union of {members}: one type and null are possible")
        return self.convert(kinds[0], where, namespace)

    def _by_name(self, name: str, where: str, namespace: str) -> Type:
        if name in _PRIMITIVES:
            return Primitive(_PRIMITIVES[name])
        for full in (f"{namespace}.{name}", name):
            if full in self._named:
                return self._named[full]
            if full in self._open:
                raise ProjectError(f"{where}: {name} contains itself; rows cannot")
        raise ProjectError(f"{where}: unknown type {name!r}")


def _has_null(document: Any) -> bool:
    return isinstance(document, list) and "null" in document


def _full_name(document: Mapping[str, Any], namespace: str) -> str:
    name: str = document["name"]
    space = document.get("namespace", namespace)
    return name if "." in name or not space else f"{space}.{name}"
