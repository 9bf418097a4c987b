"""The soak: `python -m tests.interop.cluster [--count 20] [--seed FIRST] [--only NAME ...]`.

`--streams`: plain producers and group members instead of transactional copiers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.interop.chains.story import Commands
from tests.interop.cluster.story import FAILING_S, tell, tell_of_streams
from tests.interop.cluster.streams import Programs


def main() -> int:
    """Tell stories; exit with the number of stories that broke a promise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seconds", type=float, default=FAILING_S, help="of failures in each")
    parser.add_argument("--only", nargs="*", default=(), help="these clients")
    parser.add_argument("--streams", action="store_true", help="not the copiers")
    given = parser.parse_args()
    broken_count = 0
    with tempfile.TemporaryDirectory() as compiled:
        classes = Path(compiled)
        play = (
            partial(tell_of_streams, programs=Programs(classes))
            if given.streams
            else partial(tell, commands=Commands(classes))
        )
        for seed in range(given.seed, given.seed + given.count):
            with tempfile.TemporaryDirectory() as folder:
                story = play(seed, Path(folder), names=given.only, seconds=given.seconds)
            broken_count += bool(story.broken)
            faults = ", ".join(f"{count} x {name}" for name, count in sorted(story.faults.items()))
            print(
                f"seed {seed}: {faults}; {story.failed_copiers} programs failed,"
                f" {' '.join(story.stuck_copiers.elements()) or '0'} were stuck;"
                f" {', '.join(story.broken) or '0 broken'}",
                flush=True,
            )
    return broken_count


if __name__ == "__main__":
    sys.exit(main())
