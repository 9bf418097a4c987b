"""Share groups under many seeds; and the stories find planted bugs."""

from __future__ import annotations

import pytest

from tests.simulation.planted import Bug
from tests.simulation.share.planted import BUGS
from tests.simulation.share.story import Story
from tests.simulation.soak import judged
from tests.support.sizes import part, size

AT_ONCE = 40
SEEDS = size(40, full=1000)
"""The seeds of a change find every planted bug."""
FOUND_LATE = {
    "a renewed lock expires at its old time": 39,
    "a fenced leader still answers": 38,
    "records on their way to a dead letter count as over": 13,
}
"""Bugs that few seeds find, and such a seed: the search begins there, and goes on with all."""


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_no_promise_is_broken(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        tell_one(seed)


@pytest.mark.parametrize("seed", [3, 4])
def test_a_story_over_one_broker_and_over_three(seed: int) -> None:
    tell_one(seed)


@pytest.mark.slow
@pytest.mark.parametrize("bug", part(BUGS, 3), ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    with bug.plant():
        assert any(judged(Story(seed)) for seed in (FOUND_LATE.get(bug.name, 0), *range(SEEDS)))


def test_a_seed_always_tells_the_same_story() -> None:
    first, second = Story(5), Story(5)
    first.tell()
    second.tell()
    assert first.told == second.told
    assert first.history == second.history


def tell_one(seed: int) -> None:
    """Check that the story breaks no promise."""
    story = Story(seed)
    broken = judged(story)
    assert not broken, "\n".join([f"seed {seed}", *story.told, *broken])
