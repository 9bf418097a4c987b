"""`rec` and its matchers: what a test expects of a record.

rec(key=b"k", value=json_like({"id": 1}), headers={"trace": any_})
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from embedlog.errors import EmbedlogError
from embedlog.testing.names import hint
from embedlog.testing.topics.record import LogRecord, short
from embedlog.testing.topics.times import milliseconds_of

_FIELDS = ("key", "value", "headers", "partition", "timestamp", "offset")


class _Any:
    """Equal to everything, also to a missing key or value."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "any_"


any_ = _Any()
"""Matches every value.

>>> rec(value={"id": 1, "at": any_}).matches(LogRecord("t", 0, 0, 5, None, b'{"id":1,"at":9}'))
True
"""


class json_like:
    """Matches JSON that has at least these members; lists must have the same length.

    Inside it may stand `any_`, a compiled pattern or a function of one value.

    >>> json_like({"id": 1}) == {"id": 1, "more": True}
    True
    >>> json_like({"items": [{"sku": "a"}]}).difference({"items": [{"sku": "b"}]})
    ".items[0].sku: expected 'a', got 'b'"
    """

    def __init__(self, expected: Any) -> None:
        self.expected = expected

    def difference(self, value: Any) -> str | None:
        """Return where a decoded value differs; None if it matches."""
        return _unlike(self.expected, value, "")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, json_like):
            return bool(self.expected == other.expected)
        return self.difference(other) is None

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"json_like({self.expected!r})"


def _unlike(expected: Any, value: Any, path: str) -> str | None:
    if isinstance(expected, Mapping):
        if not isinstance(value, Mapping):
            return f"{path or 'value'}: expected an object, got {short(value)}"
        for name, inner in expected.items():
            if name not in value:
                return f"{path}.{name}: missing; there {_are(value)}"
            if problem := _unlike(inner, value[name], f"{path}.{name}"):
                return problem
        return None
    if isinstance(expected, list | tuple):
        if not isinstance(value, list | tuple) or len(expected) != len(value):
            return f"{path or 'value'}: expected {len(expected)} items, got {short(value)}"
        for place, (inner, found) in enumerate(zip(expected, value, strict=True)):
            if problem := _unlike(inner, found, f"{path}[{place}]"):
                return problem
        return None
    if _is_equal(expected, value):
        return None
    return f"{path or 'value'}: expected {short(expected)}, got {short(value)}"


def _are(value: Mapping[Any, Any]) -> str:
    return f"are {', '.join(map(str, value))}" if value else "is nothing"


def _is_equal(expected: Any, value: Any) -> bool:
    if isinstance(expected, re.Pattern):
        return isinstance(value, str) and expected.search(value) is not None
    if _is_function(expected):
        return bool(expected(value))
    if isinstance(expected, bool) != isinstance(value, bool) and expected is not any_:
        return False  # JSON's true is not 1
    return bool(expected == value)


def _is_function(expected: object) -> bool:
    return callable(expected) and not isinstance(expected, _Any | json_like | type)


_NOT_GIVEN: Any = type("NotGiven", (), {"__repr__": lambda _self: "..."})()


class rec:
    """An expected record: the fields that a test cares about.

    `key` and `value` are bytes (compared with the bytes in the log), None, a str, `any_`,
    `json_like`, a compiled pattern (searched in the text), a function of the decoded value, or a
    decoded value, for which JSON is assumed if the topic has no format. `headers` as a dict names
    headers that must be there; as a list of pairs it is the whole list. `timestamp` may be a
    `datetime`; numbers may be functions.

    As an argument of `put_many` it is a record to write.

    >>> rec(key=b"k", value=json_like({"id": 1})) == LogRecord("t", 0, 0, 5, b"k", b'{"id": 1}')
    True
    >>> rec(vlaue=b"x")
    Traceback (most recent call last):
        ...
    TypeError: a record has no 'vlaue'; did you mean 'value'?
    """

    __slots__ = (*_FIELDS, "_given")

    def __init__(self, **fields: Any) -> None:
        if not fields:
            raise TypeError(f"rec() expects nothing: give some of {', '.join(_FIELDS)}")
        for name in fields:
            if name not in _FIELDS:
                raise TypeError(f"a record has no {name!r}; {hint(name, _FIELDS)}")
        self._given = {name: fields[name] for name in _FIELDS if name in fields}
        for name in _FIELDS:
            setattr(self, name, fields.get(name, _NOT_GIVEN))

    @property
    def given(self) -> dict[str, Any]:
        """The given fields by name."""
        return dict(self._given)

    def matches(self, record: LogRecord) -> bool:
        """Return whether the record has all given fields."""
        return not any(_problems(self._given, record))

    def problems(self, record: LogRecord) -> list[str]:
        """Return a line for each field in which the record differs."""
        return list(_problems(self._given, record))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LogRecord):
            return self.matches(other)
        if isinstance(other, rec):
            return self._given == other._given
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"rec({', '.join(f'{name}={each!r}' for name, each in self._given.items())})"


def _problems(given: Mapping[str, Any], record: LogRecord) -> Iterable[str]:
    for name, expected in given.items():
        if name in ("key", "value"):
            problem = _unlike_field(expected, record, is_key=name == "key")
        elif name == "headers":
            problem = _unlike_headers(expected, record.headers)
        else:
            problem = _unlike_number(expected, getattr(record, name), is_time=name == "timestamp")
        if problem is not None:
            yield f"{name}: {problem}"


def _unlike_field(expected: Any, record: LogRecord, *, is_key: bool) -> str | None:
    raw = record.key if is_key else record.value
    problem = f"expected {short(expected)}, got {short(raw)}"
    if expected is any_:
        return None
    if expected is None or raw is None:
        if expected is raw:
            return None
        return None if raw is None and _is_function(expected) and expected(None) else problem
    if isinstance(expected, bytes | bytearray | memoryview):
        return None if raw == bytes(expected) else problem
    if isinstance(expected, re.Pattern):
        return None if _is_found(expected, raw) else f"{problem}, in which it is not found"
    try:
        decoded = _decoded(expected, record, is_key=is_key)
    except EmbedlogError as error:
        return f"{problem}: {error}"
    if isinstance(expected, json_like):
        found = expected.difference(decoded)
        return None if found is None else f"{found} ({problem})"
    return (
        None
        if _is_equal(expected, decoded)
        else f"expected {short(expected)}, got "
        + (short(decoded) if decoded is not None else short(raw))
    )


def _decoded(expected: Any, record: LogRecord, *, is_key: bool) -> Any:
    """Return the field in the form of the expected value."""
    from embedlog.testing.topics.formats.basic import JSON, TEXT

    raw = record.key if is_key else record.value
    chosen = record.formats.key if is_key else record.formats.value
    if chosen is None and not _is_function(expected):
        chosen = TEXT if isinstance(expected, str) else JSON
    assert raw is not None, record
    if chosen is None:
        return raw
    decoded = chosen.decode(raw)
    if isinstance(expected, json_like | Mapping) and hasattr(decoded, "ListFields"):
        from embedlog.testing.topics.formats.protobuf_messages import plain

        return plain(decoded)  # a Protobuf message
    return decoded


def _is_found(pattern: re.Pattern[Any], raw: bytes) -> bool:
    if isinstance(pattern.pattern, bytes):
        return pattern.search(raw) is not None
    return pattern.search(raw.decode("utf-8", "replace")) is not None


def _unlike_headers(expected: Any, headers: tuple[tuple[str, bytes | None], ...]) -> str | None:
    got = f"got {short(list(headers))}"
    if expected is any_:
        return None
    if isinstance(expected, Mapping):
        for name, value in expected.items():
            found = [each for known, each in headers if known == name]
            if not found:
                return f"no header {name!r}, {got}"
            if not any(_is_header(value, each) for each in found):
                return f"expected {name!r} = {short(value)}, {got}"
        return None
    if _is_function(expected):
        return None if expected(headers) else f"expected {short(expected)}, {got}"
    wanted = list(expected)
    is_equal = len(wanted) == len(headers) and all(
        name == known and _is_header(value, each)
        for (name, value), (known, each) in zip(wanted, headers, strict=True)
    )
    return None if is_equal else f"expected {short(wanted)}, {got}"


def _is_header(expected: Any, value: bytes | None) -> bool:
    if isinstance(expected, str):
        return value == expected.encode()
    if isinstance(expected, re.Pattern):
        return value is not None and _is_found(expected, value)
    if _is_function(expected):
        return bool(expected(value))
    return bool(expected == value)


def _unlike_number(expected: Any, value: int, *, is_time: bool) -> str | None:
    if is_time and not _is_function(expected) and not isinstance(expected, int | _Any):
        expected = milliseconds_of(expected)
    return None if _is_equal(expected, value) else f"expected {expected!r}, got {value!r}"
