"""The soak: `python -m tests.interop.chains [--count 20] [--seed FIRST] [--only NAME ...]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.interop.chains.story import Commands, tell


def main() -> int:
    """Tell stories; exit with the number of stories that broke a promise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--only", nargs="*", default=(), help="these copiers")
    given = parser.parse_args()
    broken_count = 0
    with tempfile.TemporaryDirectory() as compiled:
        commands = Commands(Path(compiled))
        for seed in range(given.seed, given.seed + given.count):
            with tempfile.TemporaryDirectory() as folder:
                story = tell(seed, Path(folder), commands, given.only)
            broken_count += bool(story.broken)
            print(
                f"seed {seed}: killed the broker {story.killed_brokers} times and copiers"
                f" {story.killed_copiers} times, {story.failed_copiers} failed,"
                f" {' '.join(story.stuck_copiers.elements()) or '0'} were stuck;"
                f" {', '.join(story.broken) or '0 broken'}",
                flush=True,
            )
    return broken_count


if __name__ == "__main__":
    sys.exit(main())
