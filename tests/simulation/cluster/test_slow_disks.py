"""Three brokers with sometimes slow disks, under many seeds."""

from __future__ import annotations

import pytest

from tests.simulation.cluster.slow_disks import SlowDiskStory
from tests.simulation.soak import judged
from tests.support.sizes import size

AT_ONCE = 50
SEEDS = size(50, full=200)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_no_promise_is_broken(first: int) -> None:
    told = [tell_one(seed) for seed in range(first, first + AT_ONCE)]
    assert sum(each.counts()["slow disks"] for each in told) > AT_ONCE


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_a_story_of_each_temper(seed: int) -> None:
    tell_one(seed)


def tell_one(seed: int) -> SlowDiskStory:
    """Check that the story breaks no promise."""
    told = SlowDiskStory(seed)
    broken = judged(told)
    assert not broken, "\n".join([f"seed {seed}", *told.told, *broken])
    return told
