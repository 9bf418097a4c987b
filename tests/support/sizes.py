"""How far searches go: a part of each for every change, all of it at night.

With `EMBEDLOG_FULL=1` in the environment seeds, crashes and random programs run at full size.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")
BRIEF = 25
"""Most examples of a property in a run without slow tests."""
IS_FULL = os.environ.get("EMBEDLOG_FULL", "") not in ("", "0")


def size(change: int, *, full: int) -> int:
    """Return how many cases a search tries: `change` for every change, `full` at night."""
    return full if IS_FULL else change


def part(cases: Iterable[T], step: int) -> list[T]:
    """Return the cases of a search: every `step`th for every change, all of them at night."""
    return list(cases)[:: 1 if IS_FULL else step]


def examples(count: int) -> int:
    """Return how many examples a property tries: `count`, or fewer in a run without slow tests."""
    return min(count, BRIEF) if settings.get_current_profile_name() == "brief" else count
