"""JSON with a JSON Schema: every value is validated, then converted to the frozen columns.

With Confluent's header a value must also fulfil the schema of its id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin

from embedlog.spark.pipeline.decode import foreign
from embedlog.spark.pipeline.decode.confluent import row_of, split
from embedlog.spark.pipeline.decode.json_text import parse_json
from embedlog.spark.pipeline.decode.registry import Registry
from embedlog.spark.pipeline.errors import DecodeError, ProjectError
from embedlog.spark.pipeline.project import Decode, read_file
from embedlog.spark.pipeline.schema import Array, Field, Map, Primitive, Struct, Type

_SIMPLE = {"string": "string", "integer": "long", "number": "double", "boolean": "boolean"}
_FORMATS = {"date-time": "timestamp", "date": "date"}


class JsonSchemaDecoder:
    """Decodes one JSON object in a value."""

    def __init__(self, decode: Decode) -> None:
        try:
            import jsonschema
        except ImportError:
            raise ProjectError("jsonschema is missing: pip install 'embedlog[pipeline]'") from None
        assert decode.schema is not None, decode
        try:
            document = json.loads(read_file(decode.schema))
            self._validator: Any = _validator(document, {})
        except (ValueError, jsonschema.SchemaError) as error:
            raise ProjectError(f"{decode.schema}: {error}") from None
        whole = _Types(document).convert(document, decode.schema)
        if not isinstance(whole, Struct):
            raise ProjectError(f"{decode.schema}: an object with `properties` is needed")
        self.schema: Struct = row_of(decode, whole)
        self._registry = Registry(decode) if decode.header == "confluent" else None

    def parse(self, value: bytes) -> Any:
        if self._registry is not None:
            number, value = split(value)
            row = parse_json(value)
            writer = self._registry.parsed(number, "JSON", _validator)
            _check(writer, row, f"schema id {number}")
        else:
            row = parse_json(value)
        _check(self._validator, row, "the frozen schema")
        return row


def _validator(document: Any, references: Mapping[str, Any]) -> Any:
    from jsonschema.validators import validator_for
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
    from referencing.jsonschema import specification_with

    kind = validator_for(document)
    kind.check_schema(document)
    default = specification_with(kind.META_SCHEMA.get("$schema", ""))
    base = document.get("$id", "") if isinstance(document, Mapping) else ""
    known = [
        (name, default.create_resource(each))
        for short, each in references.items()
        for name in {short, urljoin(base, short)}
    ]
    # With a registry of its own the library fetches nothing over the network.
    registry: Any = REGISTRY.with_resources(known)
    return kind(document, format_checker=kind.FORMAT_CHECKER, registry=registry)


def _check(validator: Any, row: Any, which: str) -> None:
    from jsonschema.exceptions import best_match

    error = foreign.call(lambda: best_match(validator.iter_errors(row)), what=which)
    if error is not None:
        place = ".".join(map(str, error.absolute_path)) or "value"
        raise DecodeError(f"{place}: {error.message[:300]} ({which})")


class _Types:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._open: list[str] = []

    def convert(self, document: Any, where: str) -> Type:
        """Return the type of a part of a schema.

        Raises:
            ProjectError: its values have more than one type.
        """
        if not isinstance(document, Mapping):
            raise ProjectError(f"{where}: this schema has no type")
        if "$ref" in document:
            return self._referred(document["$ref"], where)
        for choice in ("oneOf", "anyOf"):
            if choice in document:
                kinds = [each for each in document[choice] if each.get("type") != "null"]
                if len(kinds) != 1:
                    raise ProjectError(f"{where}: {choice} of several types cannot be a column")
                return self.convert(kinds[0], where)
        kind = document.get("type")
        if isinstance(kind, list):
            kinds = [each for each in kind if each != "null"]
            kind = kinds[0] if len(kinds) == 1 else kind
        if kind == "object":
            return self._object(document, where)
        if kind == "array":
            items = document.get("items", {})
            return Array(self.convert(items, f"{where}[]"), _has_null(items))
        if kind == "string":
            return Primitive(_FORMATS.get(document.get("format", ""), "string"))
        if isinstance(kind, str) and kind in _SIMPLE:
            return Primitive(_SIMPLE[kind])
        if kind is None and all(isinstance(each, str) for each in document.get("enum", [0])):
            return Primitive("string")
        raise ProjectError(f"{where}: type {kind!r} cannot be a column")

    def _object(self, document: Mapping[str, Any], where: str) -> Type:
        properties = document.get("properties")
        if not properties:
            values = document.get("additionalProperties")
            if isinstance(values, Mapping):
                return Map(self.convert(values, f"{where}{{}}"), _has_null(values))
            raise ProjectError(f"{where}: an object without `properties` cannot be a column")
        required = set(document.get("required", ()))
        return Struct(
            tuple(
                Field(
                    name,
                    self.convert(each, f"{where}.{name}"),
                    name not in required or _has_null(self._target(each)),
                )
                for name, each in properties.items()
            )
        )

    def _target(self, document: Any) -> Any:
        if isinstance(document, Mapping) and str(document.get("$ref", "")).startswith("#/"):
            target = self._root
            for name in document["$ref"][2:].split("/"):
                target = target.get(name) if isinstance(target, Mapping) else None
            return target
        return document

    def _referred(self, reference: str, where: str) -> Type:
        target = self._target({"$ref": reference})
        if not reference.startswith("#/") or not isinstance(target, Mapping):
            raise ProjectError(f"{where}: $ref {reference!r} is not in this file")
        if reference in self._open:
            raise ProjectError(f"{where}: {reference} contains itself, which a row cannot")
        self._open.append(reference)
        found = self.convert(target, where)
        self._open.pop()
        return found


def _has_null(document: Any) -> bool:
    if not isinstance(document, Mapping):
        return False
    kind = document.get("type")
    if kind == "null" or (isinstance(kind, list) and "null" in kind):
        return True
    members = [*document.get("oneOf", ()), *document.get("anyOf", ())]
    return None in document.get("enum", ()) or any(map(_has_null, members))
