"""The soak: `python -m tests.simulation.transactions [--count 100000] [--seed FIRST]`."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.simulation.transactions.story import Story

SOAK_COUNT = 100_000
EVERY = 1000


def main() -> None:
    """The command; its exit status says whether any promise was broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=SOAK_COUNT)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    logging.getLogger("embedlog").setLevel(logging.CRITICAL + 1)
    began = time.monotonic()
    transactions = reads = bad = 0
    for number in range(1, arguments.count + 1):
        seed = arguments.seed + number - 1
        story = Story(seed)
        story.tell()
        transactions += len(story.history.transactions)
        reads += len(story.history.reads)
        broken = story.broken()
        if broken:
            bad += 1
            print("\n".join([f"seed {seed}", *story.told, *broken]), flush=True)
        if number % EVERY == 0 or number == arguments.count:
            seconds = time.monotonic() - began
            print(
                f"{number:,} stories, {transactions:,} transactions, {reads:,} records read; "
                f"{bad} broken; {seconds:.0f} s",
                flush=True,
            )
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
