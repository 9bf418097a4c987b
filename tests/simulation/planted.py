"""A planted bug: one function of the project is replaced for a while."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from unittest.mock import patch


class Bug(NamedTuple):
    """A bug that exists while the context of `plant` is open."""

    name: str
    plant: Callable[[], AbstractContextManager[object]]


def instead(owner: Any, name: str, wrong: Callable[..., Any]) -> Bug:
    """Call `wrong` with the original before the arguments. Its name describes the bug."""
    right = getattr(owner, name)
    is_property = isinstance(right, property)

    def call(*arguments: Any, **keywords: Any) -> Any:
        return wrong(right.fget if is_property else right, *arguments, **keywords)

    title = wrong.__name__.replace("_", " ")
    put: Any = property(call) if is_property else call
    return Bug(title, lambda: patch.object(owner, name, put))
