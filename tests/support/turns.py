"""Cases that take turns: without slow tests, each case runs in only one of its ways.

Eleven cases in three ways each are 33 tests. Two thirds of them add little, because a way works
alike in every case, and a case in every way; these are marked as slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest


def take_turns(items: list[pytest.Item], folder: Path, fixtures: Sequence[str]) -> None:
    """Mark all ways but one of each case as slow.

    This concerns the tests in a folder that have one of these fixtures, whose parameters are the
    ways. A test takes turns if it has at least as many cases as ways, so that each way runs.
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
