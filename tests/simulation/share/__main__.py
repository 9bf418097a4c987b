"""The soak: `python -m tests.simulation.share [--count 100000] [--seed FIRST]`."""

from __future__ import annotations

from tests.simulation.share.story import Story
from tests.simulation.soak import soak

if __name__ == "__main__":
    soak(__doc__, Story)
