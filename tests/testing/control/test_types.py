"""Types of parameters, and Python values as JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest

from embedlog.common import TopicPartition
from embedlog.errors import ConfigError
from embedlog.testing import rec
from embedlog.testing.control.kept import KeptObjects
from embedlog.testing.control.tags import WrongValue, plain, tagged
from embedlog.testing.control.types import type_of
from embedlog.testing.control.values import as_json
from embedlog.testing.registry.values import Subject

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def _kept(id: str) -> Any:
    return f"object {id}"


@pytest.mark.parametrize(
    ("annotation", "given", "value"),
    [
        ("int", 3, 3),
        ("float", 3, 3.0),
        ("bool", True, True),
        ("str", "x", "x"),
        ("bytes", "é", "é".encode()),
        ("bytes", {"@base64": "AP8="}, b"\0\xff"),
        ("bytes", {"@text": "a"}, b"a"),
        ("int | None", None, None),
        ("bytes | None", "x", b"x"),
        ("Collection[int]", [1, 2], [1, 2]),
        ("Sequence[bytes | None]", ["a", None], [b"a", None]),
        ("tuple[int, ...]", [1], [1]),
        ("Mapping[str, bytes]", {"a": "b"}, {"a": b"b"}),
        ("dict[str, list[int]]", {"a": [1]}, {"a": [1]}),
        ('Literal["a", "b"]', "b", "b"),
        ("Snapshot", {"@kept": "s-1"}, "object s-1"),
        ("Any", {"a": [{"@text": "b"}]}, {"a": [b"b"]}),
        ("str | Mapping[str, Any]", {"a": 1}, {"a": 1}),
        ("Snapshot", "s-1", "object s-1"),
        ("tuple[str, int]", ["t", 1], ("t", 1)),
        ("Mapping[tuple[str, int], int]", {"a-b-1": 5}, {("a-b", 1): 5}),
        ("Mapping[int, int]", {"1": 5}, {1: 5}),
        ("int | range | None", {"@range": [1, 3]}, range(1, 3)),
        ("int | datetime", "2026-01-31T12:00:00+00:00", NOON),
        ("Any", {"@datetime": "2026-01-31T12:00:00+00:00"}, NOON),
        ("Text", {"@pattern": "a.*"}, re.compile("a.*")),
        ("Numbers", [1, 2], [1, 2]),
        ("Callable[[Any], Any] | None", None, None),
        ("rec | None", {"value": "x"}, rec(value="x")),
        ("Any", {"@rec": {"key": {"@text": "k"}}}, rec(key=b"k")),
    ],
)
def test_json_becomes_the_annotated_type(annotation: str, given: Any, value: Any) -> None:
    assert type_of(annotation).value(given, _kept) == value


@pytest.mark.parametrize(
    ("annotation", "given"),
    [
        ("int", "3"),
        ("int", True),
        ("int", 3.5),
        ("bool", 1),
        ("str", None),
        ("bytes", 3),
        ("bytes", {"@base64": "?"}),
        ("int | None", "x"),
        ("Collection[int]", ["x"]),
        ("Collection[int]", 3),
        ("Mapping[str, int]", {"a": "b"}),
        ('Literal["a", "b"]', "c"),
        ("tuple[str, int]", ["t"]),
        ("Mapping[tuple[str, int], int]", {"t": 5}),
        ("Mapping[int, int]", {"x": 5}),
        ("range", {"@range": [1]}),
        ("datetime", "noon"),
        ("Pattern[str]", {"@pattern": "("}),
        ("rec", "x"),
    ],
)
def test_another_type_is_refused(annotation: str, given: Any) -> None:
    with pytest.raises(WrongValue, match="expected"):
        type_of(annotation).value(given, _kept)


def test_what_cannot_travel_is_refused() -> None:
    with pytest.raises(WrongValue, match="functions cannot travel"):
        type_of("Callable[[Any], Any] | None").value("x", _kept)
    with pytest.raises(WrongValue, match="did you mean 'value'"):
        type_of("rec | None").value({"vlaue": "x"}, _kept)
    for given in (print, object()):
        with pytest.raises(ConfigError, match="x: .* cannot travel"):
            tagged("x", [given], _no_handle)


@pytest.mark.parametrize(
    "value",
    [
        b"\xff",
        NOON,
        range(1, 3),
        re.compile("a.*"),
        rec(key="k", headers={"a": b"b"}),
        [None, 1.5],
    ],
)
def test_a_tagged_value_comes_back(value: Any) -> None:
    assert plain(tagged("x", value, _no_handle), _kept) == value


def test_a_pattern_keeps_its_flags() -> None:
    found = plain(tagged("x", re.compile("a.c", re.IGNORECASE | re.DOTALL), _no_handle), _kept)
    assert found.search("A\nC")


def test_objects_are_kept_by_id() -> None:
    kept = KeptObjects()
    first, second = object(), object()
    assert kept.id_of(first, "fault") == ("fault-1", True)
    assert kept.id_of(second, "fault") == ("fault-2", True)
    assert kept.id_of(first, "fault") == ("fault-1", False)
    assert kept("fault-1") is first and kept.of(object) == [first, second]
    kept.forget("fault-1")
    assert kept.id_of(first, "fault") == ("fault-3", True)
    for number in range(10_000):
        kept.id_of([number], "list")
    with pytest.raises(WrongValue, match="'fault-2'"):
        kept("fault-2")


class _Color(Enum):
    RED = 1


@dataclass
class _Row:
    key: bytes
    at: float


def _no_handle(_value: object) -> None:
    return None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (b"x", {"@text": "x"}),
        (b"\xff", {"@base64": "/w=="}),
        (_Color.RED, "RED"),
        (_Row(b"k", 0.5), {"key": {"@text": "k"}, "at": 0.5}),
        (Subject(".", "s"), {"context": ".", "name": "s"}),
        ({TopicPartition("t", 1): 2, 3: (4,), b"k": None}, {"t-1": 2, "3": [4], "k": None}),
        ({2, 1}, [1, 2]),
        (float("inf"), "inf"),
        (NOON, "2026-01-31T12:00:00+00:00"),
        (iter([1]), [1]),
        (object, {"@repr": "<class 'object'>"}),
    ],
)
def test_python_values_become_json(value: Any, expected: Any) -> None:
    assert as_json(value, _no_handle) == expected
