"""Python values that JSON lacks, as objects with one tagged member.

bytes          {"@text": "..."} or {"@base64": "..."}
datetime       {"@datetime": "2026-01-31T12:00:00+00:00"}
range          {"@range": [1, 4]}
pattern        {"@pattern": "order-.*"}
rec            {"@rec": {"key": "k", "value": {"@json_like": {"id": 1}}}}
json_like      {"@json_like": {...}}
any_           {"@any": true}
kept objects   {"@kept": "fault-1"}
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import PurePath
from typing import Any

from embedlog.errors import ConfigError, KafkaError, error_name
from embedlog.testing.topics.matching import any_, json_like, rec
from embedlog.testing.topics.record import LogRecord

Kept = Callable[[str], Any]
"""Returns the object that the door keeps under an id."""


class WrongValue(ValueError):
    """A value of JSON that is not of the expected type."""


# From JSON


def plain(given: Any, kept: Kept) -> Any:
    """Return the Python value of JSON of any type.

    Raises:
        WrongValue: a tagged object is malformed.
    """
    if isinstance(given, list):
        return [plain(each, kept) for each in given]
    if not isinstance(given, dict):
        return given
    tags = [name for name in given if name.startswith("@")]
    if "@kept" in tags:
        return kept(given["@kept"])
    if len(given) == 1 and tags and tags[0] in _READERS:
        return _READERS[tags[0]](given[tags[0]], kept)
    return {name: plain(each, kept) for name, each in given.items()}


def bytes_of(given: Any) -> bytes:
    """Return bytes from a text, or from a tagged object."""
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


def datetime_of(given: Any) -> datetime:
    """Return a time from text of ISO 8601, or from a tagged object."""
    text: Any = given.get("@datetime") if isinstance(given, dict) else given
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise WrongValue(f"expected a time of ISO 8601, found {given!r:.200}") from None


def range_of(given: Any) -> range:
    """Return a range from a tagged object."""
    bounds = given.get("@range") if isinstance(given, dict) else given
    if isinstance(bounds, list) and len(bounds) == 2 and all(type(n) is int for n in bounds):
        return range(*bounds)
    raise WrongValue(f'expected {{"@range": [first, end]}}, found {given!r:.200}')


def pattern_of(given: Any) -> re.Pattern[str]:
    """Return a pattern from a tagged object."""
    try:
        return re.compile(given["@pattern"])
    except (re.error, TypeError, KeyError) as error:
        text = f'expected {{"@pattern": "..."}}, found {given!r:.200}: {error}'
        raise WrongValue(text) from None


def rec_of(given: Any, kept: Kept) -> rec:
    """Return an expected record from its fields, tagged or not."""
    found = given.get("@rec", given) if isinstance(given, dict) else given
    if not isinstance(found, dict):
        raise WrongValue(f"expected the fields of a record, found {given!r:.200}")
    try:
        return rec(**{name: plain(each, kept) for name, each in found.items()})
    except TypeError as error:
        raise WrongValue(str(error)) from None


def place_of(text: str) -> tuple[str, int]:
    """Return topic and partition of a text such as `orders-0`."""
    topic, mark, number = text.rpartition("-")
    if not mark or not number.isdecimal():
        raise WrongValue(f"expected topic-partition, such as orders-0, found {text!r}")
    return topic, int(number)


_READERS: dict[str, Callable[[Any, Kept], Any]] = {
    "@text": lambda given, _: bytes_of({"@text": given}),
    "@base64": lambda given, _: bytes_of({"@base64": given}),
    "@datetime": lambda given, _: datetime_of(given),
    "@range": lambda given, _: range_of(given),
    "@pattern": lambda given, _: pattern_of({"@pattern": given}),
    "@rec": rec_of,
    "@json_like": lambda given, kept: json_like(plain(given, kept)),
    "@any": lambda _given, _: any_,
}


# To JSON


def tagged(name: str, value: Any, reference: Callable[[Any], Any]) -> Any:
    """Return an argument as JSON. `reference` returns the JSON of an object at the door, or None.

    Raises:
        ConfigError: the value cannot travel, such as a function.
    """
    found = reference(value)
    if found is not None:
        return found
    if value is any_:
        return {"@any": True}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"@base64": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, datetime):
        return {"@datetime": value.isoformat()}
    if isinstance(value, range) and value.step == 1:
        return {"@range": [value.start, value.stop]}
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        flags = "i" * bool(value.flags & re.IGNORECASE) + "s" * bool(value.flags & re.DOTALL)
        return {"@pattern": f"(?{flags}){value.pattern}" if flags else value.pattern}
    if isinstance(value, KafkaError) or (isinstance(value, type) and issubclass(value, KafkaError)):
        return error_name(value.code)
    return _compound(name, value, reference)


def _compound(name: str, value: Any, reference: Callable[[Any], Any]) -> Any:
    def inner(each: Any) -> Any:
        return tagged(name, each, reference)

    if isinstance(value, rec):
        return {"@rec": {field: inner(each) for field, each in value.given.items()}}
    if isinstance(value, LogRecord):  # its offset is not kept, as in `put_many`
        names = ("key", "value", "timestamp", "headers")
        return {"@rec": {field: inner(getattr(value, field)) for field in names}}
    if isinstance(value, json_like):
        return {"@json_like": inner(value.expected)}
    if isinstance(value, Mapping):
        return {key_text(key): inner(each) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: inner(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, list | tuple | set | frozenset):
        return [inner(each) for each in value]
    what = "functions" if callable(value) else f"objects like {value!r:.100}"
    raise ConfigError(f"{name}: {what} cannot travel to the control door")


def key_text(key: Any) -> str:
    """Return the text of a mapping's key: `orders-0` for a partition."""
    if isinstance(key, tuple):
        return "-".join(map(str, key))
    return key.decode("utf-8", "backslashreplace") if isinstance(key, bytes) else str(key)
