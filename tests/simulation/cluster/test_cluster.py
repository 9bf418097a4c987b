"""Three brokers under many seeds; and the stories find planted bugs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from tests.simulation.cluster.__main__ import story
from tests.simulation.cluster.planted import BUGS
from tests.simulation.cluster.story import Story
from tests.simulation.planted import Bug
from tests.simulation.soak import judged
from tests.support.sizes import part, size

AT_ONCE = 50
RARE = (159, 511, 721)
"""Seeds that find the planted bugs which only one story in some hundreds meets."""
SEEDS = (*RARE, *range(size(100, full=1000)))
"""The seeds of a change find every planted bug."""
DISK_SEEDS = size(50, full=250)
OF_MOVES = {"a move ends before all have arrived"}
"""Bugs that only stories with many reassignments find."""


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, size(50, full=len(SEEDS)), AT_ONCE))
def test_no_promise_is_broken(first: int) -> None:
    for seed in SEEDS[first : first + AT_ONCE]:
        tell_one(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3, 31])
def test_a_story_of_each_temper(seed: int) -> None:
    tell_one(seed)


@pytest.mark.slow
@pytest.mark.parametrize("bug", part(BUGS, 3), ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    tell = partial(Story, moves_often=True) if bug.name in OF_MOVES else story
    with bug.plant():
        assert any(judged(tell(seed)) for seed in SEEDS), "find a seed for RARE"


def test_a_seed_always_tells_the_same_story() -> None:
    first, second = story(6), story(6)
    first.tell()
    second.tell()
    assert first.told == second.told
    assert first.counts() == second.counts()


def test_a_story_of_failing_disks() -> None:
    tell_one(1, log_dirs=("disk",))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, DISK_SEEDS, AT_ONCE))
def test_no_promise_is_broken_by_failing_disks(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        tell_one(seed, log_dirs=("disk",))


def tell_one(seed: int, *, log_dirs: Sequence[str] = ()) -> None:
    """Check that the story breaks no promise."""
    told = Story(seed, log_dirs=log_dirs) if log_dirs else story(seed)
    broken = judged(told)
    assert not broken, "\n".join([f"seed {seed}", *told.told, *broken])
