"""The frozen schema of a row: the JSON form of Spark's StructType, without Spark.

`Gate.conform` checks every decoded value. It never turns a value that does not fit into null: it
raises a DecodeError that names the column, the type and the value. A missing column is null if the
schema says nullable, and else an error.
"""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias
from uuid import UUID

from embedlog.spark.pipeline.errors import DecodeError, ProjectError

PRIMITIVES = (
    "string", "long", "integer", "short", "byte", "double", "float", "boolean", "binary",
    "timestamp", "date",
)  # fmt: skip
_BITS = {"long": 64, "integer": 32, "short": 16, "byte": 8}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_FLOAT_LIMIT = (2.0 - 2.0**-24) * 2.0**127
"""The smallest number that a float of 32 bits rounds to infinity."""


class WrittenFloat(float):
    """A number of a text, which remembers its digits for a decimal column."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> WrittenFloat:
        made = super().__new__(cls, text)
        made.text = text
        return made


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parts. `precision` and `scale` are for `decimal` only."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Array:
    """A list of values of one type."""

    element: Type
    contains_null: bool = True


@dataclass(frozen=True, slots=True)
class Map:
    """Values of one type by a string key."""

    value: Type
    contains_null: bool = True


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a member of a struct."""

    name: str
    type: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Struct:
    """Named members in order. A row's schema is a Struct."""

    fields: tuple[Field, ...]


Type: TypeAlias = Primitive | Array | Map | Struct
Conform: TypeAlias = Callable[[Any, str], Any]


def from_json(document: object, where: str = "schema") -> Struct:
    """Read a schema in Spark's JSON form (`StructType.json()`).

    Raises:
        ProjectError: the document is not a schema; says where.
    """
    found = _type(document, where)
    if not isinstance(found, Struct):
        raise ProjectError(f"{where}: a struct is needed, found {document!r}")
    return found


def load(path: str, text: bytes | str) -> Struct:
    """Read the schema in a file's `text`; `path` is for messages."""
    try:
        return from_json(json.loads(text), path)
    except ValueError as error:
        if isinstance(error, ProjectError):
            raise
        raise ProjectError(f"{path}: not JSON: {error}") from None


def to_json(kind: Type) -> Any:
    """Return Spark's JSON form, as `from_json` reads it."""
    match kind:
        case Primitive("decimal", precision, scale):
            return f"decimal({precision},{scale})"
        case Primitive(name):
            return name
        case Array(element, contains_null):
            return {"type": "array", "elementType": to_json(element), "containsNull": contains_null}
        case Map(value, contains_null):
            return {
                "type": "map",
                "keyType": "string",
                "valueType": to_json(value),
                "valueContainsNull": contains_null,
            }
        case Struct(fields):
            return {
                "type": "struct",
                "fields": [
                    {
                        "name": each.name,
                        "type": to_json(each.type),
                        "nullable": each.nullable,
                        "metadata": {},
                    }
                    for each in fields
                ],
            }


def all_nullable(kind: Struct) -> Struct:
    """Return the schema with all columns nullable: in bad rows every column is null."""
    return Struct(tuple(Field(each.name, _loose(each.type), True) for each in kind.fields))


def _loose(kind: Type) -> Type:
    match kind:
        case Array(element, _):
            return Array(_loose(element), True)
        case Map(value, _):
            return Map(_loose(value), True)
        case Struct():
            return all_nullable(kind)
        case _:
            return kind


def has_decimal(kind: Type) -> bool:
    """Whether a value of the type contains a decimal."""
    match kind:
        case Primitive(name):
            return name == "decimal"
        case Array(inner, _) | Map(inner, _):
            return has_decimal(inner)
        case Struct(fields):
            return any(has_decimal(each.type) for each in fields)


def ddl(kind: Type) -> str:
    """Return the type in Spark's SQL; columns are nullable, because bad rows have no values."""
    match kind:
        case Primitive("long"):
            return "bigint"
        case Primitive("integer"):
            return "int"
        case Primitive("short"):
            return "smallint"
        case Primitive("byte"):
            return "tinyint"
        case Primitive("decimal", precision, scale):
            return f"decimal({precision},{scale})"
        case Primitive(name):
            return name
        case Array(element, _):
            return f"array<{ddl(element)}>"
        case Map(value, _):
            return f"map<string,{ddl(value)}>"
        case Struct(fields):
            return "struct<" + ",".join(f"{_quoted(f.name)}:{ddl(f.type)}" for f in fields) + ">"


def columns_ddl(schema: Struct) -> str:
    """Return the columns of a row as `name type, ...`."""
    return ", ".join(f"{_quoted(each.name)} {ddl(each.type)}" for each in schema.fields)


def arrow(kind: Type) -> Any:
    """Return the pyarrow type that Spark takes for this type."""
    import pyarrow as pa

    match kind:
        case Primitive("decimal", precision, scale):
            return pa.decimal128(precision, scale)
        case Primitive("timestamp"):
            return pa.timestamp("us", tz="UTC")
        case Primitive(name):
            made = {
                "string": pa.string, "long": pa.int64, "integer": pa.int32, "short": pa.int16,
                "byte": pa.int8, "double": pa.float64, "float": pa.float32, "boolean": pa.bool_,
                "binary": pa.binary, "date": pa.date32,
            }  # fmt: skip
            return made[name]()
        case Array(element, _):
            return pa.list_(arrow(element))
        case Map(value, _):
            return pa.map_(pa.string(), arrow(value))
        case Struct(fields):
            return pa.struct([(each.name, arrow(each.type)) for each in fields])


class Gate:
    """Converts rows to a schema. For one thread: `unknown` belongs to the last row."""

    def __init__(self, schema: Struct) -> None:
        self.schema = schema
        self.unknown: dict[str, Any] = {}
        """Columns of the last row that the schema lacks: dotted name -> value."""
        self._row = self._struct(schema)

    def conform(self, row: object) -> dict[str, Any]:
        """Return the row with values of the schema's types.

        Raises:
            DecodeError: a value does not fit; names column, type and value.
        """
        self.unknown = {}
        found: dict[str, Any] = self._row(row, "")
        return found

    def _of(self, kind: Type) -> Conform:
        match kind:
            case Primitive("decimal", precision, scale):
                return _decimal(precision, scale)
            case Primitive(name):
                return _PRIMITIVE[name]
            case Array(element, contains_null):
                return _array(self._nullable(element, contains_null))
            case Map(value, contains_null):
                return _map(self._nullable(value, contains_null))
            case Struct():
                return self._struct(kind)

    def _nullable(self, kind: Type, is_nullable: bool) -> Conform:
        conform = self._of(kind)

        def check(value: Any, path: str) -> Any:
            if value is not None:
                return conform(value, path)
            if is_nullable:
                return None
            raise DecodeError(f"{path}: null, but {ddl(kind)} may not be null")

        return check

    def _struct(self, kind: Struct) -> Conform:
        members = [(f.name, self._nullable(f.type, f.nullable), f) for f in kind.fields]
        names = {each.name for each in kind.fields}

        def check(value: Any, path: str) -> dict[str, Any]:
            if not isinstance(value, Mapping):
                raise _wrong(value, path, "an object")
            prefix = f"{path}." if path else ""
            made = {}
            for name, conform, member in members:
                if name not in value and not member.nullable:
                    raise DecodeError(f"{prefix}{name}: missing, but the schema needs it")
                made[name] = conform(value.get(name), prefix + name)
            if len(value) > len(made) or not value.keys() <= names:
                for name in value.keys() - names:
                    self.unknown[prefix + str(name)] = value[name]
            return made

        return check


def _type(document: object, where: str) -> Type:
    if isinstance(document, str):
        return primitive(document, where)
    if not isinstance(document, Mapping):
        raise ProjectError(f"{where}: a type is needed, found {document!r}")
    match document.get("type"):
        case "struct":
            fields = document.get("fields")
            if not isinstance(fields, list):
                raise ProjectError(f"{where}: a struct needs `fields`")
            return Struct(tuple(_field(each, where) for each in fields))
        case "array":
            element = _type(document.get("elementType"), f"{where}[]")
            return Array(element, bool(document.get("containsNull", True)))
        case "map":
            value = _type(document.get("valueType"), f"{where}{{}}")
            return Map(value, bool(document.get("valueContainsNull", True)))
        case other:
            raise ProjectError(f"{where}: unknown type {other!r}")


def _field(document: object, where: str) -> Field:
    if not isinstance(document, Mapping) or not isinstance(document.get("name"), str):
        raise ProjectError(f"{where}: a field needs a name, found {document!r}")
    name = document["name"]
    kind = _type(document.get("type"), f"{where}.{name}")
    return Field(name, kind, bool(document.get("nullable", True)))


def primitive(text: str, where: str) -> Primitive:
    """Return Spark's type `text`; `where` is for the message.

    Raises:
        ProjectError: the type is unknown.
    """
    if text in PRIMITIVES:
        return Primitive(text)
    if text.startswith("decimal(") and text.endswith(")"):
        parts = text[8:-1].split(",")
        if len(parts) == 2 and all(part.strip().isdecimal() for part in parts):
            precision, scale = int(parts[0]), int(parts[1])
            if 1 <= precision <= 38 and scale <= precision:
                return Primitive("decimal", precision, scale)
    raise ProjectError(
        f"{where}: unknown type {text!r}; one of {', '.join(PRIMITIVES)}, decimal(p,s)"
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _wrong(value: Any, path: str, wanted: str) -> DecodeError:
    shown = repr(value)
    shown = shown if len(shown) <= 100 else shown[:97] + "..."
    return DecodeError(f"{path or 'value'}: expected {wanted}, found {shown}")


def _string(value: Any, path: str) -> str:
    if isinstance(value, str):
        if value.isascii() or _is_text(value):
            return value
        raise _wrong(value, path, "string (a lone surrogate is no character)")
    if isinstance(value, UUID):
        return str(value)
    raise _wrong(value, path, "string")


def _is_text(value: str) -> bool:
    """Whether UTF-8 can hold `value`. JSON may contain half of a surrogate pair, as `\\ud83d`."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _integer(name: str) -> Conform:
    limit = 1 << (_BITS[name] - 1)

    def check(value: Any, path: str) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit:
            return value
        raise _wrong(value, path, name)

    return check


def _double(value: Any, path: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    raise _wrong(value, path, "double")


def _float(value: Any, path: str) -> float:
    found = _double(value, path)
    if _FLOAT_LIMIT <= abs(found) < math.inf:
        raise _wrong(value, path, "float")  # Arrow would make an infinity of it
    return found


def _boolean(value: Any, path: str) -> bool:
    if isinstance(value, bool):
        return value
    raise _wrong(value, path, "boolean")


def _binary(value: Any, path: str) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:  # binascii.Error, and a bare ValueError for letters beyond ASCII
            pass
    raise _wrong(value, path, "binary (base64 in text)")


def _timestamp(value: Any, path: str) -> datetime.datetime:
    """Convert a time with a zone, ISO 8601 text (UTC without a zone), or epoch milliseconds."""
    try:
        if isinstance(value, datetime.datetime):
            found = value
        elif isinstance(value, str):
            found = datetime.datetime.fromisoformat(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            return _EPOCH + datetime.timedelta(milliseconds=value)
        else:
            raise _wrong(value, path, "timestamp")
        if found.utcoffset() is None:
            return found.replace(tzinfo=datetime.UTC)
        # In UTC the time may be in the year 0 or 10000, which no column holds.
        return found.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise _wrong(value, path, "timestamp") from None


def _date(value: Any, path: str) -> datetime.date:
    try:
        if isinstance(value, str):
            return datetime.date.fromisoformat(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return _EPOCH.date() + datetime.timedelta(days=value)
    except (ValueError, OverflowError):
        raise _wrong(value, path, "date") from None
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    raise _wrong(value, path, "date")


def _number_text(value: float) -> str:
    """Return the number as it was written, or a float's shortest text."""
    return value.text if isinstance(value, WrittenFloat) else repr(value)


def _decimal(precision: int, scale: int) -> Conform:
    def check(value: Any, path: str) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, int | str | Decimal | float):
            raise _wrong(value, path, f"decimal({precision},{scale})")
        try:
            exact = Decimal(_number_text(value) if isinstance(value, float) else value)
        except InvalidOperation:
            raise _wrong(value, path, f"decimal({precision},{scale})") from None
        # No arithmetic: it would round to the context's 28 digits, or overflow.
        sign, figures, exponent = exact.as_tuple()
        if not isinstance(exponent, int):
            raise _wrong(value, path, f"decimal({precision},{scale})")  # not a number, or infinite
        digits = "".join(map(str, figures)).lstrip("0")
        short = digits.rstrip("0")
        exponent += len(digits) - len(short)
        if not short:
            return Decimal((sign, (0,), -scale))
        if -exponent > scale or len(short) + exponent > precision - scale:
            raise _wrong(value, path, f"decimal({precision},{scale})")
        padded = short + "0" * (exponent + scale)
        return Decimal((sign, tuple(map(int, padded)), -scale))

    return check


def _array(element: Conform) -> Conform:
    def check(value: Any, path: str) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise _wrong(value, path, "an array")
        return [element(each, f"{path}[{index}]") for index, each in enumerate(value)]

    return check


def _map(value_of: Conform) -> Conform:
    def check(value: Any, path: str) -> list[tuple[str, Any]]:
        if not isinstance(value, Mapping):
            raise _wrong(value, path, "an object")
        return [
            (_string(str(key), f"{path}: key"), value_of(each, f"{path}.{key}"))
            for key, each in value.items()
        ]

    return check


_PRIMITIVE: dict[str, Conform] = {
    "string": _string,
    "double": _double,
    "float": _float,
    "boolean": _boolean,
    "binary": _binary,
    "timestamp": _timestamp,
    "date": _date,
    **{name: _integer(name) for name in _BITS},
}
