"""Replicas of three brokers move between log directories, under many seeds."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.storage.relocation.future_log import FutureLog
from embedlog.storage.relocation.relocation import Relocation
from tests.simulation.cluster.relocations import RelocationStory
from tests.simulation.planted import Bug, instead
from tests.simulation.soak import judged
from tests.support.sizes import size

AT_ONCE = 50
SEEDS = size(50, full=200)
"""The seeds of a change find every planted bug."""


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_no_promise_is_broken(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        tell_one(seed)


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_a_story_of_each_temper(seed: int) -> None:
    tell_one(seed)


def the_last_bytes_are_left_out(right: Any, future: Any) -> None:
    log = future._log
    whole = log.segments[-1].end
    known = future._segments.get(log.segments[-1])
    if known is not None and known.size:
        log.segments[-1].end = (known.end_offset, known.size, *whole[2:])
    try:
        right(future)
    finally:
        log.segments[-1].end = whole


def nobody_waits_for_the_copy(right: Any, relocation: Any, size_max: int, **_how: Any) -> Any:
    """Commit the move before the copy is complete."""
    finish = FutureLog.finish
    FutureLog.finish = lambda _future: None  # type: ignore[method-assign]
    try:
        return right(relocation, size_max, last_size=1 << 40)
    finally:
        FutureLog.finish = finish  # type: ignore[method-assign]


BUGS = (
    instead(FutureLog, "finish", the_last_bytes_are_left_out),
    instead(Relocation, "step", nobody_waits_for_the_copy),
)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    with bug.plant():
        assert any(judged(RelocationStory(seed)) for seed in range(SEEDS))


def tell_one(seed: int) -> None:
    """Check that the story breaks no promise."""
    told = RelocationStory(seed)
    broken = judged(told)
    assert not broken, "\n".join([f"seed {seed}", *told.told, *broken])
