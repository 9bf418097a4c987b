"""Variations of a request: lists that are empty, null or name an entry twice, and odd numbers.

A scenario gives a valid request; `vary` sends it once for each variation of each of its fields:

    a list     with its first entry twice; empty; null, where the version allows it
    a number   -1 and -2; 99 as well if it has 8 bits, as enumerations have
    a text     empty; null, where the version allows it
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Container, Iterator
from typing import Any

from tests.golden.run import Run

ODD_NUMBERS = (-1, -2)
ODD_CODE = 99
_NUMBERS = ("int8", "int16", "int32", "int64")

Path = tuple[str, ...]


def vary(run: Run, version: int, make: Callable[[], Any], *, without: Container[str] = ()) -> None:
    """Send each variation of the requests of `make`, which is called for each; notes in `without`
    are left out.
    """
    run.send(make(), version, "as it is")
    for note, path, value in variations(make(), version):
        if note not in without:
            run.send(_changed(make(), path, value), version, note)


def variations(
    message: Any, version: int, path: Path = ()
) -> Iterator[tuple[str, Path, Callable[[Any], Any]]]:
    """Yield each variation: its note, the path of its field, and the change of the value."""
    for field in type(message).__fields__:
        if not field.exists(version):
            continue
        value, where = getattr(message, field.name), (*path, field.name)
        name = ".".join(where)
        if field.is_nullable(version) and value is not None:
            yield f"{name} null", where, lambda _: None
        if field.kind == "array" and value:
            yield f"{name} empty", where, lambda _: []
            yield f"{name} with an entry twice", where, _first_twice
            if not hasattr(type(value[0]), "__fields__"):
                yield from _odd(field.element.kind, f"{name} of", where, in_list=True)
            else:
                yield from variations(value[0], version, where)
        elif field.kind == "struct" and value is not None:
            yield from variations(value, version, where)
        else:
            yield from _odd(field.kind, name, where, in_list=False)


def _odd(
    kind: str, name: str, where: Path, *, in_list: bool
) -> Iterator[tuple[str, Path, Callable[[Any], Any]]]:
    odd: tuple[Any, ...] = ()
    if kind in _NUMBERS:
        odd = (*ODD_NUMBERS, ODD_CODE) if kind == "int8" else ODD_NUMBERS
    elif kind == "string":
        odd = ("",)
    for value in odd:
        yield f"{name} {value!r}", where, lambda _, v=value: [v] if in_list else v


def _first_twice(rows: list[Any]) -> list[Any]:
    return [*rows, copy.deepcopy(rows[0])]


def _changed(message: Any, path: Path, change: Callable[[Any], Any]) -> Any:
    holder = message
    for name in path[:-1]:
        holder = getattr(holder, name)
        if isinstance(holder, list):
            holder = holder[0]
    setattr(holder, path[-1], change(getattr(holder, path[-1])))
    return message
