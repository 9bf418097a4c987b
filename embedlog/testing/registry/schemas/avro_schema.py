"""Avro schemas. Apache's `avro` parses and compares them.

The canonical text equals the output of Avro's Java library, which Confluent's registry stores:
attributes in a fixed order, no space, each namespace once, each type spelled out at its first use.
Documentation, aliases and further properties stay, unlike in Avro's own "parsing canonical form".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Self

from embedlog.testing.http.extras import load
from embedlog.testing.registry.schemas.kinds import Problem, Referenced, UnreadableSchema

_PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
_NAMED = frozenset(("record", "error", "enum", "fixed"))
_OWN = {
    "record": ("type", "name", "namespace", "doc", "fields", "aliases"),
    "error": ("type", "name", "namespace", "doc", "fields", "aliases"),
    "enum": ("type", "name", "namespace", "doc", "symbols", "default", "aliases"),
    "fixed": ("type", "name", "namespace", "doc", "size", "aliases"),
    "array": ("type", "items"),
    "map": ("type", "values"),
    "field": ("name", "type", "doc", "default", "order", "aliases"),
}
"""The attributes that Avro defines; all others are a user's properties."""

_BROKEN = (TypeError, AttributeError, KeyError, RecursionError)
"""Errors that `avro` raises for some broken schemas, beside its own."""


class AvroSchema:
    """One Avro schema."""

    def __init__(self, parsed: Any, written: Any, known: set[str]) -> None:
        self._parsed = parsed
        self._written = written
        self._known = known
        self.canonical = _text(_Writer(known, sort=False).schema(written, ""))

    @classmethod
    def parse(cls, text: str, references: Sequence[Referenced]) -> Self:
        """See `ParsedSchema.parse`."""
        schema = load("avro.schema", "registry", "an Avro schema")
        names = load("avro.name", "registry", "an Avro schema").Names()
        failures = load("avro.errors", "registry", "an Avro schema")
        try:
            for each in references:
                schema.make_avsc_object(json.loads(each.text), names)
            known = set(names.names)
            written = json.loads(text)
            if isinstance(written, str) and written not in _PRIMITIVES:
                raise UnreadableSchema(f"Undefined name: {written!r}")
            parsed = schema.make_avsc_object(written, names)
        except (failures.AvroException, ValueError, *_BROKEN) as error:
            raise UnreadableSchema(str(error) or repr(error)) from None
        return cls(parsed, written, known)

    def normalized(self) -> str:
        """See `ParsedSchema.normalized`: properties and aliases are sorted."""
        return _text(_Writer(self._known, sort=True).schema(self._written, ""))

    def formatted(self, form: str) -> str | None:
        """See `ParsedSchema.formatted`."""
        return None

    def problems_with(self, older: Self) -> list[Problem]:
        """See `ParsedSchema.problems_with`: Avro's rules of schema resolution decide."""
        compatibility = load("avro.compatibility", "registry", "an Avro schema")
        found = compatibility.ReaderWriterCompatibilityChecker().get_compatibility(
            self._parsed, older._parsed
        )
        if found.compatibility is compatibility.SchemaCompatibilityType.compatible:
            return []
        kinds = sorted({str(each.value).upper() for each in found.incompatibilities})
        path, text = ", ".join(sorted(found.locations)), "; ".join(sorted(found.messages))
        return [Problem(kind, path, f"{_TEXTS[kind]} at path '{path}': {text}") for kind in kinds]


_TEXTS = {
    "NAME_MISMATCH": "The name of the schema has changed",
    "FIXED_SIZE_MISMATCH": "The size of a FIXED type has changed",
    "MISSING_ENUM_SYMBOLS": "The new schema lacks enum symbols of the old schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "A field of the new schema has no default value and is "
    "missing in the old schema",
    "TYPE_MISMATCH": "The type of a field has changed",
    "MISSING_UNION_BRANCH": "The new union lacks a type of the old schema",
}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Writer:
    """Rewrites a decoded schema. A type that references or earlier parts define becomes a name."""

    def __init__(self, known: set[str], *, sort: bool) -> None:
        self._known = set(known)
        self._sort = sort

    def schema(self, given: Any, space: str) -> Any:
        if isinstance(given, str):
            return self._name(given, space)
        if isinstance(given, list):
            return [self.schema(each, space) for each in given]
        kind = given["type"]
        if kind in _NAMED:
            return self._named(given, kind, space)
        if kind == "array":
            made = {"type": kind, "items": self.schema(given["items"], space)}
        elif kind == "map":
            made = {"type": kind, "values": self.schema(given["values"], space)}
        else:
            made = {"type": self._name(kind, space)}
        made.update(self._properties(given, kind))
        return made if len(made) > 1 else made["type"]

    def _name(self, name: str, space: str) -> str:
        """Return the name of a type, as short as the namespace around it allows."""
        if name in _PRIMITIVES:
            return name
        full = name if "." in name or not space else f"{space}.{name}"
        if full not in self._known and name in self._known:
            full = name
        own, _, short = full.rpartition(".")
        return short if own == space else full

    def _named(self, given: dict[str, Any], kind: str, space: str) -> dict[str, Any]:
        name = given["name"]
        own, _, short = name.rpartition(".")
        if not own:
            own = given.get("namespace", space) or ""
        self._known.add(f"{own}.{short}" if own else short)
        made: dict[str, Any] = {"type": kind, "name": short}
        if own != space:
            made["namespace"] = own
        if given.get("doc") is not None:
            made["doc"] = given["doc"]
        if kind == "enum":
            made["symbols"] = given["symbols"]
            if "default" in given:
                made["default"] = given["default"]
        elif kind == "fixed":
            made["size"] = given["size"]
        else:
            made["fields"] = [self._field(each, own) for each in given["fields"]]
        made.update(self._properties(given, kind))
        return self._with_aliases(made, given, own)

    def _field(self, given: dict[str, Any], space: str) -> dict[str, Any]:
        made = {"name": given["name"], "type": self.schema(given["type"], space)}
        if given.get("doc") is not None:
            made["doc"] = given["doc"]
        if "default" in given:
            made["default"] = given["default"]
        if given.get("order", "ascending") != "ascending":
            made["order"] = given["order"]
        self._with_aliases(made, given, "")
        made.update(self._properties(given, "field"))
        return made

    def _with_aliases(
        self, made: dict[str, Any], given: dict[str, Any], space: str
    ) -> dict[str, Any]:
        aliases = given.get("aliases")
        if aliases:
            short = [each.removeprefix(f"{space}.") if space else each for each in aliases]
            made["aliases"] = sorted(short) if self._sort else short
        return made

    def _properties(self, given: dict[str, Any], kind: str) -> dict[str, Any]:
        own = _OWN.get(kind, ("type",))
        found = {name: value for name, value in given.items() if name not in own}
        return dict(sorted(found.items())) if self._sort else found
