"""Refusing a name that does not exist: the error has the nearest known one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def hint(name: object, known: Iterable[str]) -> str:
    """Return the end of an error about an unknown name.

    >>> hint("ordrs", ["orders", "users"])
    "did you mean 'orders'?"
    """
    names = sorted(known)
    near = get_close_matches(str(name), names, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are {', '.join(names)}" if names else "there are none"
