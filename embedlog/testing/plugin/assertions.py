"""The text of a failed comparison of records."""

from __future__ import annotations

from sys import modules

_TOPICS = "embedlog.testing.topics"


def explained(left: object, right: object) -> list[str] | None:
    """Return the lines that explain why two views of a topic differ; None for other objects."""
    explain = getattr(modules.get(f"{_TOPICS}.diff"), "explain", None)
    if explain is None or not (_is_view(left) or _is_view(right)):
        return None
    lines = explain(left, right)
    return lines.splitlines() if isinstance(lines, str) else lines


def _is_view(value: object) -> bool:
    return any(each.__module__.startswith(_TOPICS) for each in type(value).__mro__)
