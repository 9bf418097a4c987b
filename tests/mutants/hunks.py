"""The change of a mutant: the hunk of a diff, at any indentation and any place of a file."""

from __future__ import annotations

import ast
from typing import NamedTuple


class BadHunk(ValueError):
    """The hunk changes nothing, or does not fit its file."""


class Hunk(NamedTuple):
    """Lines to find and lines to put there, both without their common indentation."""

    before: tuple[str, ...]
    after: tuple[str, ...]


def parse(text: str) -> Hunk:
    """Read lines that begin with `-`, `+` or a space, as in a diff."""
    pairs = [(line[:1] or " ", line[1:].rstrip()) for line in text.strip("\n").split("\n")]
    if wrong := [mark + body for mark, body in pairs if mark not in "-+ "]:
        raise BadHunk(f"a line begins with none of - + and space: {wrong[0]!r}")
    if all(mark == " " for mark, _ in pairs):
        raise BadHunk("no line begins with - or +")
    margin = min(_indent(body) for _, body in pairs if body)
    return Hunk(
        tuple(body[margin:] for mark, body in pairs if mark != "+"),
        tuple(body[margin:] for mark, body in pairs if mark != "-"),
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def places(before: tuple[str, ...], lines: list[str]) -> list[int]:
    """Return the numbers, from 0, of the lines at which `before` begins."""
    first = before[0].lstrip(" ")
    return [
        number
        for number, line in enumerate(lines)
        if line.lstrip(" ") == first and _fits(before, lines, number)
    ]


def _fits(before: tuple[str, ...], lines: list[str], start: int) -> bool:
    if start + len(before) > len(lines):
        return False
    margin = " " * (_indent(lines[start]) - _indent(before[0]))
    return all(
        lines[start + index] == (margin + line if line else "") for index, line in enumerate(before)
    )


def apply(hunk: Hunk, source: str) -> str:
    """Return the source with the hunk's change; raise BadHunk unless it fits exactly once."""
    lines = source.split("\n")
    start = _place(hunk, lines)
    lines[start : start + len(hunk.before)] = _put(hunk, lines[start])
    return "\n".join(lines)


def around(hunk: Hunk, source: str, starts: list[int]) -> tuple[str, str]:
    """Return the statements around the hunk's place, without and with its change.

    `starts` are the lines, from 0, at which statements may be cut. Raise BadHunk as `apply` does.
    Parsing and comparing whole files took five times as long.
    """
    lines = source.split("\n")
    start = _place(hunk, lines)
    end = start + len(hunk.before)
    first = max((each for each in starts if each <= start), default=0)
    last = min((each for each in starts if each >= end), default=len(lines))
    head = ["if True:"] if _indent(lines[first]) else []
    old = [*head, *lines[first:last]]
    new = [*head, *lines[first:start], *_put(hunk, lines[start]), *lines[end:last]]
    return "\n".join(old), "\n".join(new)


def _place(hunk: Hunk, lines: list[str]) -> int:
    found = places(hunk.before, lines)
    if len(found) != 1:
        raise BadHunk(f"the old lines occur {len(found)} times: {hunk.before[0].strip()!r} ...")
    return found[0]


def _put(hunk: Hunk, first: str) -> list[str]:
    """Return the new lines, indented as `first`, the first of the old ones."""
    margin = " " * (_indent(first) - _indent(hunk.before[0]))
    return [margin + line if line else "" for line in hunk.after]


def differ(one: ast.AST, other: ast.AST) -> bool:
    """Return whether two syntax trees differ; positions and formatting do not count."""
    if type(one) is not type(other):
        return True
    return any(
        _fields_differ(getattr(one, name, None), getattr(other, name, None)) for name in one._fields
    )


def _fields_differ(one: object, other: object) -> bool:
    if isinstance(one, ast.AST) and isinstance(other, ast.AST):
        return differ(one, other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) != len(other) or any(map(_fields_differ, one, other))
    return type(one) is not type(other) or one != other
