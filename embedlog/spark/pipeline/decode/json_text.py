"""JSON values with a frozen schema."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from embedlog.spark.pipeline.errors import DecodeError
from embedlog.spark.pipeline.schema import Struct, WrittenFloat, has_decimal


class JsonDecoder:
    """Decodes UTF-8 text of one JSON object in a value."""

    def __init__(self, schema: Struct) -> None:
        self.schema = schema
        self._keeps_digits = has_decimal(schema)

    def parse(self, value: bytes) -> Any:
        """Return the object. It is not checked against the schema yet."""
        return parse_json(value, keeps_digits=self._keeps_digits)


def parse_json(value: bytes, *, keeps_digits: bool = False) -> Any:
    """Parse JSON as in RFC 8259, with fractions as floats; `keeps_digits` keeps their text too.

    Raises:
        DecodeError: the text is not JSON, has NaN, Infinity or a duplicate name, or a number that
            is greater than any double.
    """
    number = _written if keeps_digits else _finite
    try:
        return json.loads(
            value, parse_constant=_refuse, parse_float=number, object_pairs_hook=_unique
        )
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"not JSON: {error}") from None


def _finite(text: str) -> float:
    found = float(text)
    if math.isinf(found):
        raise ValueError(f"the number {text[:40]} is greater than any double")
    return found


def _written(text: str) -> float:
    _finite(text)
    return WrittenFloat(text)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number in JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} comes twice")
    return made
