"""A bug planted on purpose: one function of the project is replaced while it is there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from unittest.mock import patch


class Bug(NamedTuple):
    """`plant` is entered while the bug shall be there."""

    name: str
    plant: Callable[[], AbstractContextManager[object]]


def instead(owner: Any, name: str, wrong: Callable[..., Any]) -> Bug:
    """`wrong` is called with the original before the arguments; its name says what is wrong."""
    right = getattr(owner, name)
    is_property = isinstance(right, property)

    def call(*arguments: Any, **keywords: Any) -> Any:
        return wrong(right.fget if is_property else right, *arguments, **keywords)

    title = wrong.__name__.replace("_", " ")
    put: Any = property(call) if is_property else call
    return Bug(title, lambda: patch.object(owner, name, put))
