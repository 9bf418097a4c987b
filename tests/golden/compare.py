"""Compares two answers, and finds the differences that are not listed as deliberate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.golden.differences import Difference
from tests.golden.normal import SORT_KEYS

MISSING = "<nothing>"


def differing(expected: Any, found: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield each difference of two answers: its path, the expected and the found value."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in [*expected, *(key for key in found if key not in expected)]:
            yield from differing(
                expected.get(key, MISSING), found.get(key, MISSING), f"{path}.{key}"
            )
    elif isinstance(expected, list) and isinstance(found, list):
        ours, theirs = _by_name(found), _by_name(expected)
        for name in [*theirs, *(name for name in ours if name not in theirs)]:
            one, other = theirs.get(name, MISSING), ours.get(name, MISSING)
            yield from differing(one, other, f"{path}[{name}]")
    elif expected != found:
        yield path, expected, found


def _by_name(rows: list[Any]) -> dict[str, Any]:
    """Return rows by the value of their first naming field, or by index if these are not unique."""
    names = [next((str(row[key]) for key in SORT_KEYS if key in row), "") if isinstance(row, dict)
             else "" for row in rows]  # fmt: skip
    if "" in names or len(set(names)) < len(rows):
        names = [str(index) for index in range(len(rows))]
    return dict(zip(names, rows, strict=True))


def title(step: dict[str, Any]) -> str:
    """Return the name of a step: the broker if there are several, the API, its version,
    the note.
    """
    return " ".join(str(step[key]) for key in ("broker", "api", "version", "note") if key in step)


def differences(
    name: str,
    expected: list[dict[str, Any]],
    found: list[dict[str, Any]],
    listed: Sequence[Difference],
) -> Iterator[str]:
    """Return each difference that no row of `listed` covers, as text."""
    for one, other in zip(expected, found, strict=False):
        for path, kafka, ours in differing(one["answer"], other["answer"]):
            if not any(row.covers(name, title(one), path) for row in listed):
                yield f"{title(one)}\n    {path}: Kafka {kafka!r}, embedlog {ours!r}"


def places(answer: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every value of an answer."""
    yield path
    if isinstance(answer, dict):
        for key, value in answer.items():
            yield from places(value, f"{path}.{key}")
    elif isinstance(answer, list):
        for name, value in _by_name(answer).items():
            yield from places(value, f"{path}[{name}]")
