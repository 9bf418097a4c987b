"""The soak: `python -m tests.simulation.transactions [--count 100000] [--seed FIRST]`."""

from __future__ import annotations

from tests.simulation.soak import soak
from tests.simulation.transactions.story import Story

if __name__ == "__main__":
    soak(__doc__, Story)
