"""Stories from many seeds, up to a count; broken promises are printed."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from tests.simulation.soundness import verified

SOAK_COUNT = 100_000
EVERY = 1000


class Stoppable(Protocol):
    """The brokers of a story."""

    def stop(self) -> object:
        """Close them."""


class Told(Protocol):
    """The steps of a story, and their outcome."""

    told: list[str]
    world: Stoppable

    def tell(self) -> None: ...
    def broken(self) -> list[str]: ...
    def counts(self) -> dict[str, int]:
        """Return counts for the summary."""


def soak(usage: str | None, make: Callable[[int], Told]) -> None:
    """Run the command; its exit status is 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=(usage or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=SOAK_COUNT)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    logging.getLogger("embedlog").setLevel(logging.CRITICAL + 1)
    began = time.process_time()
    counts: Counter[str] = Counter()
    bad = 0
    for number in range(1, arguments.count + 1):
        seed = arguments.seed + number - 1
        story = make(seed)
        broken = judged(story)
        counts.update(story.counts())
        if broken:
            bad += 1
            print("\n".join([f"seed {seed}", *story.told, *broken]), flush=True)
        if number % EVERY == 0 or number == arguments.count:
            done = ", ".join(f"{count:,} {what}" for what, count in counts.items())
            seconds = time.process_time() - began
            print(
                f"{number:,} stories, {done}; {bad} broken; {seconds:.0f} s of the processor",
                flush=True,
            )
    sys.exit(bool(bad))


def judged(story: Told) -> list[str]:
    """Tell a story and return the promises that it broke.

    An exception breaks them as well, and so does damage that `verify` finds in a directory.
    """
    with verified() as soundness:
        try:
            story.tell()
            broken = story.broken()
            story.world.stop()
        except Exception as error:
            return [repr(error)]
    return [*broken, *soundness.findings]
