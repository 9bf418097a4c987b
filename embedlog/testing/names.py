"""Checks of names that a test gives: a misspelt name is refused with the nearest known one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches

from embedlog.errors import ConfigError

_SHOWN_MAX = 12


def check_name(kind: str, given: str, known: Collection[str]) -> str:
    """Return the known name that equals `given`, whatever its case.

    Raises:
        ConfigError: there is no such name. The message has the nearest one.

    >>> check_name("state", "stable", ["Stable", "Empty"])
    'Stable'
    """
    if isinstance(given, str):
        if given in known:
            return given
        folded = {each.lower(): each for each in known}
        if given.lower() in folded:
            return folded[given.lower()]
    raise ConfigError(f"{kind} {given!r} is unknown; {hint(given, known)}")


def check_settings(
    call: str, given: Mapping[str, object], known: Mapping[str, str]
) -> dict[str, object]:
    """Return the settings by their full names: `known` is short name -> full name.

    Raises:
        ConfigError: there is no such setting.
    """
    return {known[check_name(f"{call}: the setting", name, known)]: given[name] for name in given}


def hint(given: object, known: Collection[str]) -> str:
    """Return the part of a message that names the nearest of `known`, or some of them."""
    near = nearest(given, known)
    if near is not None:
        return f"did you mean {near!r}?"
    if not known:
        return "there are none"
    shown = sorted(known)[:_SHOWN_MAX]
    more = f" and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
    return f"known are {', '.join(map(repr, shown))}{more}"


def nearest(given: object, known: Collection[str]) -> str | None:
    """Return the known name that is most like `given`; None if none is like it."""
    folded = {each.lower(): each for each in known}
    near = get_close_matches(str(given).lower(), list(folded), 1)
    return folded[near[0]] if near else None
