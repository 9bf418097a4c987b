"""Types of parameters, and Python values as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from embedlog.common import TopicPartition
from embedlog.testing.control.tags import WrongValue
from embedlog.testing.control.types import type_of
from embedlog.testing.control.values import as_json
from embedlog.testing.registry.values import Subject


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
    ],
)
def test_another_type_is_refused(annotation: str, given: Any) -> None:
    with pytest.raises(WrongValue, match="expected"):
        type_of(annotation).value(given, _kept)


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
        (iter([1]), [1]),
        (object, {"@repr": "<class 'object'>"}),
    ],
)
def test_python_values_become_json(value: Any, expected: Any) -> None:
    assert as_json(value, _no_handle) == expected
