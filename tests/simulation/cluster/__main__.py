"""The soak: `python -m tests.simulation.cluster [--count 100000] [--seed FIRST]`."""

from __future__ import annotations

from tests.simulation.cluster.story import Story
from tests.simulation.cluster.transaction_story import TransactionStory, is_of_transactions
from tests.simulation.soak import soak


def story(seed: int) -> Story | TransactionStory:
    """Return the story of a seed."""
    return TransactionStory(seed) if is_of_transactions(seed) else Story(seed)


if __name__ == "__main__":
    soak(__doc__, story)
