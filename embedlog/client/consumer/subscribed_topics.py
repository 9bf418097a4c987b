"""The arguments of `Consumer.subscribe`: names of topics, or a regular expression."""

from __future__ import annotations

from embedlog.client import arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Pattern
    from typing import Any


def compiled(given: str | Pattern[str] | None) -> Pattern[str] | None:
    """Return `given` as a regular expression."""
    if given is None or not isinstance(given, str) and hasattr(given, "fullmatch"):
        return given
    arguments.name(given, "subscribe", "pattern", what="a regular expression")
    from re import compile as compile_pattern

    return compile_pattern(given)


def topic_names(topics: Any) -> list[str]:
    """Return the names in `topics`.

    Raises:
        TypeError: it is one str. ValueError: a name is invalid.
    """
    if isinstance(topics, str):
        raise arguments.WrongType(
            f"subscribe(topics={topics!r}): expected a list of topic names, got one str; write "
            f"[{topics!r}], or pattern={topics!r} for a regular expression"
        )
    return arguments.names(() if topics is None else topics, "subscribe", "topics")
