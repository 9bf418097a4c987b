"""Types of parameters: read from annotations, checked for JSON values, written as JSON Schema.

Annotations are texts here, as their names are often imported for the type checker alone.
"""

from __future__ import annotations

import ast
import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Kept = Callable[[str], Any]
"""Returns the object that the door keeps under an id."""

_SCALARS = {"int": "integer", "float": "number", "bool": "boolean", "str": "string"}
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


class WrongValue(ValueError):
    """A value of JSON that is not of the expected type."""


@dataclass(frozen=True, slots=True)
class ParameterType:
    """One type. `kind` is a name of JSON Schema, or "bytes", "union" or "any"."""

    kind: str
    parts: tuple[ParameterType, ...] = ()
    """The items' type of an array, the values' type of an object, the types of a union."""
    choices: tuple[str, ...] = ()

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
        made: dict[str, Any] = {"type": self.kind}
        if self.kind == "array":
            made["items"] = self.parts[0].schema()
        elif self.kind == "object":
            made["additionalProperties"] = self.parts[0].schema()
        return made

    def value(self, given: Any, kept: Kept) -> Any:
        """Return the Python value of a JSON value.

        Raises:
            WrongValue: it has another type.
        """
        if self.kind == "any":
            return plain(given, kept)
        if self.kind == "union":
            return self._of_union(given, kept)
        if self.kind == "array" and isinstance(given, list):
            return [self.parts[0].value(each, kept) for each in given]
        if self.kind == "object" and isinstance(given, dict):
            return {name: self.parts[0].value(each, kept) for name, each in given.items()}
        if self.kind == "bytes":
            return _bytes_of(given)
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
            except WrongValue:
                continue
        raise WrongValue(f"expected {self}, found {given!r:.200}")

    def __str__(self) -> str:
        if self.choices:
            return " or ".join(map(repr, self.choices))
        if self.kind == "union":
            return " or ".join(map(str, self.parts))
        return f"{self.kind} of {self.parts[0]}" if self.parts else self.kind


ANY = ParameterType("any")


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
    if name in _SCALARS:
        return ParameterType(_SCALARS[name])
    if name == "StrPath":
        return ParameterType("string")
    return ParameterType("bytes") if name in {"bytes", "Buffer"} else ANY


def _alternatives(given: ParameterType) -> tuple[ParameterType, ...]:
    return given.parts if given.kind == "union" else (given,)


def _generic(name: str, inside: ast.expr) -> ParameterType:
    arguments = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    if name in _LISTS and (name != "tuple" or _is_open(arguments)):
        return ParameterType("array", (_type(arguments[0]),))
    if name in _MAPS and len(arguments) == 2 and _name(arguments[0]) == "str":
        return ParameterType("object", (_type(arguments[1]),))
    if name == "Literal":
        texts = [each.value for each in arguments if isinstance(each, ast.Constant)]
        if all(isinstance(each, str) for each in texts):
            return ParameterType("string", choices=tuple(map(str, texts)))
    return ANY


def _is_open(arguments: list[ast.expr]) -> bool:
    last = arguments[-1]
    return isinstance(last, ast.Constant) and last.value is Ellipsis


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def plain(given: Any, kept: Kept) -> Any:
    """Return the Python value of JSON of any type, with bytes and kept objects inside."""
    if isinstance(given, list):
        return [plain(each, kept) for each in given]
    if not isinstance(given, dict):
        return given
    if given.keys() in ({"@text"}, {"@base64"}):
        return _bytes_of(given)
    if "@kept" in given:
        return kept(given["@kept"])
    return {name: plain(each, kept) for name, each in given.items()}


def _bytes_of(given: Any) -> bytes:
    text = given.get("@text") if isinstance(given, dict) else given
    if isinstance(text, str):
        return text.encode()
    coded = given.get("@base64") if isinstance(given, dict) else None
    try:
        if isinstance(coded, str):
            return base64.b64decode(coded, validate=True)
    except binascii.Error:
        pass
    raise WrongValue(f'expected text or {{"@base64": ...}}, found {given!r:.200}')
