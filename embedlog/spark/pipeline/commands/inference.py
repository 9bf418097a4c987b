"""Infers a frozen schema from a sample of JSON rows, and widens it later.

A column is nullable if a row of the sample lacks it or has null. Integers and fractions in one
column make a double. Every other mixture is an error that names both types: a guess would
silently turn the rows of one type into dead letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.schema import Array, Field, Primitive, Struct, Type, ddl

_UNKNOWN = Primitive("null")


def infer(rows: Iterable[Any]) -> Struct:
    """Return the narrowest schema that fits every row of the sample.

    Raises:
        ProjectError: no row, a row that is not an object, or a column of two types.
    """
    found: Type | None = None
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ProjectError(f"row {number} of the sample is not an object: {row!r}")
        kind = _type_of(row)
        found = kind if found is None else widen(found, kind, "")
    if not isinstance(found, Struct) or not found.fields:
        raise ProjectError("the sample holds no row with a column: nothing can be inferred")
    settled = _settled(found)
    assert isinstance(settled, Struct), settled
    return settled


def widen(old: Type, new: Type, where: str = "") -> Type:
    """Return the narrowest type that fits values of both types; new columns become nullable.

    Raises:
        ProjectError: no type fits both; names the column and both types.
    """
    if old == new or new == _UNKNOWN:
        return old
    if old == _UNKNOWN:
        return new
    match old, new:
        case Primitive(first), Primitive(second):
            if {first, second} <= {"byte", "short", "integer", "long"}:
                order = ["byte", "short", "integer", "long"]
                return max(old, new, key=lambda each: order.index(each.name))
            if {first, second} <= {"integer", "short", "byte", "long", "double", "float"}:
                return Primitive("double")
        case Array(first_element, null), Array(second_element, other_null):
            element = widen(first_element, second_element, f"{where}[]")
            return Array(element, null or other_null)
        case Struct(first_fields), Struct(second_fields):
            return _widen_structs(first_fields, second_fields, where)
        case _:
            pass
    raise ProjectError(
        f"{where or 'the row'}: {_name(old)} and {_name(new)} in one column; write the schema by "
        "hand, or let a `map` function make one type of them"
    )


def _widen_structs(old: tuple[Field, ...], new: tuple[Field, ...], where: str) -> Struct:
    later = {each.name: each for each in new}
    made = []
    for field in old:
        other = later.pop(field.name, None)
        if other is None:
            made.append(Field(field.name, field.type, True))
            continue
        kind = widen(field.type, other.type, f"{where}.{field.name}".lstrip("."))
        made.append(Field(field.name, kind, field.nullable or other.nullable))
    made.extend(Field(each.name, each.type, True) for each in later.values())
    return Struct(tuple(made))


def _type_of(value: Any) -> Type:
    if value is None:
        return _UNKNOWN
    if isinstance(value, bool):
        return Primitive("boolean")
    if isinstance(value, int):
        return Primitive("long")
    if isinstance(value, float):
        return Primitive("double")
    if isinstance(value, str):
        return Primitive("string")
    if isinstance(value, list):
        element: Type = _UNKNOWN
        for each in value:
            element = widen(element, _type_of(each), "[]")
        return Array(element, any(each is None for each in value))
    assert isinstance(value, Mapping), value
    return Struct(
        tuple(Field(str(name), _type_of(each), each is None) for name, each in value.items())
    )


def _settled(kind: Type) -> Type:
    """Use text for columns that are null in every row of the sample."""
    match kind:
        case Primitive("null"):
            return Primitive("string")
        case Array(element, null):
            return Array(_settled(element), null or element == _UNKNOWN)
        case Struct(fields):
            return Struct(tuple(Field(f.name, _settled(f.type), f.nullable) for f in fields))
        case _:
            return kind


def _name(kind: Type) -> str:
    return "null" if kind == _UNKNOWN else ddl(kind)
