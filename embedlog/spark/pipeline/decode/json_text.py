"""JSON values with a frozen schema."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from embedlog.spark.pipeline.errors import DecodeError
from embedlog.spark.pipeline.schema import Struct


class JsonDecoder:
    """Decodes UTF-8 text of one JSON object in a value."""

    def __init__(self, schema: Struct) -> None:
        self.schema = schema

    def parse(self, value: bytes) -> Any:
        """Return the object. It is not checked against the schema yet."""
        return parse_json(value)


def parse_json(value: bytes) -> Any:
    """Parse JSON as in RFC 8259; refuse NaN, Infinity and duplicate names with a DecodeError."""
    try:
        return json.loads(value, parse_constant=_refuse, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"not JSON: {error}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number in JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} comes twice")
    return made
