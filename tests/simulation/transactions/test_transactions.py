"""Transactions under many seeds; and the stories find planted bugs."""

from __future__ import annotations

import pytest

from tests.simulation.planted import Bug
from tests.simulation.soak import judged
from tests.simulation.transactions.planted import BUGS
from tests.simulation.transactions.story import Story
from tests.support.sizes import size

AT_ONCE = 50
SEEDS = size(100, full=1000)
"""The seeds of a change find every planted bug."""


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_no_promise_is_broken(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        tell_one(seed)


@pytest.mark.parametrize("seed", [12, 74, 239])
def test_seeds_that_once_broke_a_promise_keep_it(seed: int) -> None:
    tell_one(seed)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    with bug.plant():
        assert any(judged(Story(seed)) for seed in range(SEEDS))


def tell_one(seed: int) -> None:
    """Check that the story breaks no promise."""
    story = Story(seed)
    broken = judged(story)
    assert not broken, "\n".join([f"seed {seed}", *story.told, *broken])
