"""The marker `kafka`: its arguments, their order from module to function, and their matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import pytest

from embedlog.errors import ConfigError
from embedlog.testing.names import hint
from embedlog.testing.plugin.environment import variables
from embedlog.testing.plugin.leak_rules import leak_rules
from embedlog.testing.shape import Shape

_SHAPE = tuple(each.name for each in fields(Shape))
_OWN = ("env", "id", "leaks")
_JOINED = ("topics", "config")
"""Arguments whose entries are joined with the entries of outer markers."""


@dataclass(frozen=True, kw_only=True)
class Marked:
    """The cluster that the markers of one test, or of one case of its matrix, ask for."""

    shape: Shape
    given: Mapping[str, Any]
    """The arguments of the shape as the markers give them."""
    env: Any = ()
    leaks: Any = ()
    id: str = ""


def cases_of(node: pytest.Item, marker: str) -> list[Marked]:
    """Return the clusters that the markers of a test ask for, at least one.

    A function's marker joins the markers of its class and module. Several markers in one place
    are a matrix.

    Raises:
        ConfigError: a marker has a wrong argument.
    """
    levels = [list(each) for each in _levels(node, marker)]
    joined = [_joined(case) for case in product(*levels)] if levels else [{}]
    names = _ids(joined)
    return [_marked(each, name) for each, name in zip(joined, names, strict=True)]


def _levels(node: pytest.Item, marker: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the arguments of the markers of module, class and function, the outermost first."""
    found: dict[int, list[dict[str, Any]]] = {}
    for owner, mark in node.iter_markers_with_node(marker):
        found.setdefault(id(owner), []).append(_arguments(mark, marker))
    yield from reversed(found.values())


def _arguments(mark: pytest.Mark, marker: str) -> dict[str, Any]:
    if mark.args:
        raise ConfigError(f"@pytest.mark.{marker}{mark.args!r}: give every argument by its name")
    known = (*_SHAPE, *_OWN)
    for name, value in mark.kwargs.items():
        if name not in known:
            near = hint(name, known)
            raise ConfigError(f"@pytest.mark.{marker}({name}={value!r}): no such argument; {near}")
        if name in _JOINED and not isinstance(value, Mapping):
            raise ConfigError(f"@pytest.mark.{marker}({name}={value!r}): expected a dict")
    return dict(mark.kwargs)


def _joined(case: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for each in case:
        for name, value in each.items():
            joined[name] = {**joined.get(name, {}), **value} if name in _JOINED else value
    return joined


def _marked(arguments: Mapping[str, Any], name: str) -> Marked:
    given = {key: value for key, value in arguments.items() if key not in _OWN}
    shape = Shape.of(**given)
    if not isinstance(shape.brokers, int) or shape.brokers < 1:
        raise ConfigError(f"brokers={shape.brokers!r}: expected a number of brokers")
    env, leaks = arguments.get("env", ()), arguments.get("leaks", ())
    variables(env, "127.0.0.1:9092")
    leak_rules(leaks)
    return Marked(shape=shape, given=given, env=env, leaks=leaks, id=name)


def _ids(cases: list[dict[str, Any]]) -> list[str]:
    """Return the names of the cases: the arguments in which they differ."""
    if len(cases) == 1:
        return [str(cases[0].get("id", ""))]
    names = sorted({name for each in cases for name in each if name not in _OWN})
    varying = [name for name in names if len({repr(each.get(name)) for each in cases}) > 1]
    return [
        str(each.get("id", "")) or "-".join(_text(name, each) for name in varying if name in each)
        for each in cases
    ]


def _text(name: str, case: Mapping[str, Any]) -> str:
    value = case[name]
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_plain(each)}" for key, each in value.items())
    return f"{name}={_plain(value)}"


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
