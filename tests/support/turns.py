"""Cases that take turns where slow tests are left out: each goes one of the ways it could go.

A test of eleven cases that go three ways each is 33 tests, of which two thirds say again what
others say: the way is the same in every case, and the case in every way. They are marked as slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest


def take_turns(items: list[pytest.Item], folder: Path, fixtures: Sequence[str]) -> None:
    """Of the tests in a folder that have one of these fixtures, which have a parameter each.

    A test takes turns if it has as many cases as there are ways: so each way is gone.
    """
    families: dict[object, dict[str, list[pytest.Function]]] = {}
    for item in items:
        if str(item.path).startswith(f"{folder}/") and hasattr(item, "callspec"):
            given, case = item.callspec.params, item.callspec.id
            ways = [str(given[name]) for name in fixtures if name in given]
            for way in ways:
                case = case.replace(way, "", 1)
            if ways:
                families.setdefault(item.function, {}).setdefault(case, []).append(item)
    for cases in families.values():
        for number, each in enumerate(cases.values()):
            turn = number % len(each)
            if len(cases) >= len(each):
                for item in each[:turn] + each[turn + 1 :]:
                    item.add_marker(pytest.mark.slow)
