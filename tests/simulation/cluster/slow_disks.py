"""Brokers whose disks are sometimes slow, during all other faults."""

from __future__ import annotations

import random

from tests.simulation.cluster.story import Story
from tests.simulation.cluster.world import NODES
from tests.simulation.world import Life, Sleep

DELAYS_MS = (5, 50, 500, 5_000, 40_000)
"""Milliseconds a write; the last is longer than a follower may lag."""
SLOW_MS_MAX = 6_000
PAUSE_MS_MAX = 1_500


class SlowDiskStory(Story):
    """A story in which disks are slow; the delays have their own random numbers."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._chance = random.Random(seed)
        self.world.live(self._slows())

    def counts(self) -> dict[str, int]:
        """Return counts for the summary."""
        slow = sum("a write takes" in each for each in self.told)
        return {**super().counts(), "slow disks": slow}

    def _slows(self) -> Life:
        while not self.faults.is_over:
            yield Sleep(self._chance.randrange(PAUSE_MS_MAX))
            if self.faults.is_over:
                return
            node_id, delay_ms = self._chance.choice(NODES), self._chance.choice(DELAYS_MS)
            disk = self.world.cluster.broker(node_id).disk
            disk.slow(delay_ms)
            self._say(f"a write takes {delay_ms} ms at {node_id}")
            yield Sleep(self._chance.randrange(SLOW_MS_MAX))
            disk.slow(0)
