"""Types of parameters: read from annotations, checked for JSON values, written as JSON Schema.

Annotations are texts here, as their names are often imported for the type checker alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from embedlog.testing.control.tags import (
    Kept,
    WrongValue,
    bytes_of,
    datetime_of,
    pattern_of,
    place_of,
    plain,
    range_of,
    rec_of,
)
from embedlog.testing.faults.options import ActionName

_SCALARS = {
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "str": "string",
    "StrPath": "string",
}
_LISTS = {"Collection", "Sequence", "Iterable", "list", "tuple", "set", "frozenset"}
_MAPS = {"Mapping", "dict"}
_BYTES = {
    "description": "text in UTF-8, or bytes in base64",
    "anyOf": [
        {"type": "string"},
        {"type": "object", "properties": {"@text": {"type": "string"}}, "required": ["@text"]},
        {"type": "object", "properties": {"@base64": {"type": "string"}}, "required": ["@base64"]},
    ],
}


_TAGGED = {
    "range": ("@range", {"type": "array", "items": {"type": "integer"}}),
    "pattern": ("@pattern", {"type": "string"}),
    "kept": ("@kept", {"type": "string"}),
}
_ALIASES = {
    "Numbers": "int | Collection[int]",
    "Text": "str | Pattern[str] | Collection[str]",
    "ErrorGiven": "str | int",
    "ActionName": f"Literal{list(get_args(ActionName))}",
    "Since": "int | datetime | Mapping[int, int]",
    "Headers": "Mapping[str, Any] | Iterable[tuple[str, Any]]",
    "TopicPartition": "tuple[str, int]",
}
"""Names that stand for other types."""
_KEPT = {"Snapshot"}
"""Classes of objects that the door keeps."""


@dataclass(frozen=True, slots=True)
class ParameterType:
    """One type. `kind` is a name of JSON Schema, "any", "union", or a kind of this module:

    "bytes", "datetime", "function", "kept", "pattern", "range", "rec", "tuple"
    """

    kind: str
    parts: tuple[ParameterType, ...] = ()
    """The items' type of an array, the values' type of an object, the types of a union or of the
    places of a tuple."""
    choices: tuple[str, ...] = ()
    keys: str = "str"
    """The type of an object's keys: "str", "int", or "place" for `topic-partition`."""

    def schema(self) -> dict[str, Any]:
        """Return the type as JSON Schema."""
        if self.choices:
            return {"type": "string", "enum": list(self.choices)}
        if self.kind == "any":
            return {}
        if self.kind == "bytes":
            return _BYTES
        if self.kind == "union":
            return {"anyOf": [each.schema() for each in self.parts]}
        if self.kind == "function":
            return {"not": {}, "description": "a function, which cannot travel"}
        if self.kind == "datetime":
            return {"type": "string", "format": "date-time"}
        if self.kind == "rec":
            return {"type": "object", "description": "the fields of an expected record"}
        if self.kind in _TAGGED:
            return self._tagged_schema()
        if self.kind == "tuple":
            places = [each.schema() for each in self.parts]
            size = len(places)
            return {"type": "array", "prefixItems": places, "minItems": size, "maxItems": size}
        made: dict[str, Any] = {"type": self.kind}
        if self.kind == "array":
            made["items"] = self.parts[0].schema()
        elif self.kind == "object":
            made["additionalProperties"] = self.parts[0].schema()
        return made

    def _tagged_schema(self) -> dict[str, Any]:
        tag, inner = _TAGGED[self.kind]
        made = {"type": "object", "properties": {tag: inner}, "required": [tag]}
        return {"anyOf": [{"type": "string"}, made]} if self.kind == "kept" else made

    def value(self, given: Any, kept: Kept) -> Any:
        """Return the Python value of a JSON value.

        Raises:
            WrongValue: it has another type.
        """
        reader = _READERS.get(self.kind)
        if reader is not None:
            return reader(given, kept)
        if self.kind == "union":
            return self._of_union(given, kept)
        if self.kind == "array" and isinstance(given, list):
            return [self.parts[0].value(each, kept) for each in given]
        if self.kind == "tuple" and isinstance(given, list) and len(given) == len(self.parts):
            pairs = zip(self.parts, given, strict=True)
            return tuple(part.value(each, kept) for part, each in pairs)
        if self.kind == "object" and isinstance(given, dict):
            key = _KEYS[self.keys]
            return {key(name): self.parts[0].value(each, kept) for name, each in given.items()}
        if self.kind == "number" and isinstance(given, int) and not isinstance(given, bool):
            return float(given)
        is_right = _is(self.kind, given) and (not self.choices or given in self.choices)
        if not is_right:
            raise WrongValue(f"expected {self}, found {given!r:.200}")
        return given

    def _of_union(self, given: Any, kept: Kept) -> Any:
        for each in self.parts:
            try:
                return each.value(given, kept)
            except WrongValue as error:
                if each.kind == "rec" and isinstance(given, dict):
                    raise WrongValue(f"{error}") from None  # names the wrong field
                continue
        if any(each.kind == "function" for each in self.parts):
            _refuse_function(given, kept)
        raise WrongValue(f"expected {self}, found {given!r:.200}")

    def __str__(self) -> str:
        if self.choices:
            return " or ".join(map(repr, self.choices))
        if self.kind == "union":
            return " or ".join(map(str, self.parts))
        if self.kind == "tuple":
            return f"[{', '.join(map(str, self.parts))}]"
        return f"{self.kind} of {self.parts[0]}" if self.parts else self.kind


ANY = ParameterType("any")


def _refuse_function(given: Any, _kept: Kept) -> Any:
    raise WrongValue(f"functions cannot travel to the control door, found {given!r:.200}")


def _number_of(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise WrongValue(f"expected a number as the name of a member, found {text!r}") from None


_READERS: dict[str, Callable[[Any, Kept], Any]] = {
    "any": plain,
    "bytes": lambda given, _: bytes_of(given),
    "datetime": lambda given, _: datetime_of(given),
    "function": _refuse_function,
    "kept": lambda given, kept: kept(given["@kept"] if isinstance(given, dict) else given),
    "pattern": lambda given, _: pattern_of(given),
    "range": lambda given, _: range_of(given),
    "rec": rec_of,
}
_KEYS: dict[str, Callable[[str], Any]] = {"str": str, "int": _number_of, "place": place_of}


def _is(kind: str, given: Any) -> bool:
    if kind == "null":
        return given is None
    types = {"integer": int, "number": float, "boolean": bool, "string": str}
    wanted = types.get(kind)
    if wanted is int and isinstance(given, bool):
        return False
    return wanted is not None and isinstance(given, wanted)


def type_of(annotation: str) -> ParameterType:
    """Return the type that an annotation names; ANY for names that JSON has no type for."""
    try:
        return _type(ast.parse(annotation, mode="eval").body)
    except SyntaxError:
        return ANY


def _type(node: ast.expr) -> ParameterType:
    if isinstance(node, ast.Constant):
        return ParameterType("null") if node.value is None else ANY
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        left, right = _type(node.left), _type(node.right)
        parts = (*_alternatives(left), *_alternatives(right))
        return ANY if ANY in parts else ParameterType("union", parts)
    if isinstance(node, ast.Subscript):
        return _generic(_name(node.value), node.slice)
    name = _name(node)
    if name in _ALIASES:
        return type_of(_ALIASES[name])
    if name in _SCALARS:
        return ParameterType(_SCALARS[name])
    if name in {"datetime", "range", "rec"}:
        return ParameterType(name)
    if name in _KEPT:
        return ParameterType("kept")
    return ParameterType("bytes") if name in {"bytes", "Buffer"} else ANY


def _alternatives(given: ParameterType) -> tuple[ParameterType, ...]:
    return given.parts if given.kind == "union" else (given,)


def _generic(name: str, inside: ast.expr) -> ParameterType:
    arguments = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    if name in _LISTS and (name != "tuple" or _is_open(arguments)):
        return ParameterType("array", (_type(arguments[0]),))
    if name == "tuple":
        return ParameterType("tuple", tuple(map(_type, arguments)))
    if name in _MAPS and len(arguments) == 2:
        keys = _keys(_type(arguments[0]))
        return ParameterType("object", (_type(arguments[1]),), keys=keys) if keys else ANY
    if name == "Callable":
        return ParameterType("function")
    if name == "Pattern":
        return ParameterType("pattern")
    if name == "Literal":
        texts = [each.value for each in arguments if isinstance(each, ast.Constant)]
        if all(isinstance(each, str) for each in texts):
            return ParameterType("string", choices=tuple(map(str, texts)))
    return ANY


def _keys(given: ParameterType) -> str:
    """Return the type of keys by its short name; "" if JSON has no such keys."""
    if given.kind == "tuple":
        return "place" if [each.kind for each in given.parts] == ["string", "integer"] else ""
    return {"string": "str", "integer": "int"}.get(given.kind, "")


def _is_open(arguments: list[ast.expr]) -> bool:
    last = arguments[-1]
    return isinstance(last, ast.Constant) and last.value is Ellipsis


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
