"""Names that a user has misspelt."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint: the known name that the user probably meant, or all known names.

    >>> nearest("kafkjs", ["kafkajs", "java"])
    "did you mean 'kafkajs'?"
    """
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(name, names, 1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(names))}"
