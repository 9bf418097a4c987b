"""`python -m tests.crash [NAME] [--soak] [--seed N] [--count N]`: run one program, or all.

The soak of `images` takes many hours. `--progress FILE --seconds N` splits it: each run continues
where the last one stopped, and prints the sum.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys

from tests.crash.report import Options, Report

VERBS = {
    "kill": "SIGKILL of a writer at any moment",
    "disks": "a full disk, a process without descriptors",
    "forks": "fork while other threads append and read",
    "interrupts": "KeyboardInterrupt at any possible place",
    "nested": "a public call at any opcode of another call of its thread",
    "openers": "two processes open one directory at the same time",
    "power": "copies of a mounted disk; a disk whose syncs fail",
    "flips": "every bit of a small directory is flipped in turn",
    "images": "the disk after a crash at every file call of many workloads",
    "faults": "every file call of every workload fails in turn",
    "peers": "hostile requests, random frames and idle connections",
    "sink": "committers, tasks, drivers and owners die while batches are written exactly once",
    "tables": "drivers and tasks die while tables of three formats are written exactly once",
    "spark": "drivers, workers and owners die under streaming queries of a real Spark",
    "nemesis": "three brokers, our clients and librdkafka under all faults, in real time",
    "planted": "bugs planted on purpose are found by images, flips and faults",
}
"""The programs, one file each: CI_COUNT, SOAK_COUNT and `run(options) -> Report`."""

CI = Options(seed=1, count=0)


def run(name: str, options: Options = CI) -> Report:
    """Run one program; a count of 0 stands for its size in CI or in the soak."""
    module = importlib.import_module(f"tests.crash.{name}")
    wanted = options.count or (module.SOAK_COUNT if options.soak else module.CI_COUNT)
    report: Report = module.run(options._replace(count=wanted))
    return report


def main() -> int:
    listed = "\n".join(f"  {name:<11}{what}" for name, what in VERBS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash",
        description=f"Break things and count the losses.\n\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs to run; all by default")
    parser.add_argument(
        "--soak", action="store_true", help="run for a night, with more cases than in CI"
    )
    parser.add_argument("--seed", type=int, help="1 in CI; random with --soak, and printed")
    parser.add_argument(
        "--count", type=int, default=0, help="number of cases, instead of the default"
    )
    parser.add_argument("--processes", type=int, default=1, help="number of processes for `images`")
    parser.add_argument("--seconds", type=float, default=0, help="time limit for `images`")
    parser.add_argument(
        "--progress",
        default="",
        metavar="FILE",
        help="file with the progress of `images`, to continue from",
    )
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in VERBS]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}: choose from {', '.join(VERBS)}")
    seed = given.seed or (random.SystemRandom().randrange(1, 1 << 32) if given.soak else 1)
    options = Options(seed, given.count, given.soak, given.processes, given.seconds, given.progress)
    broken = 0
    for name in given.names or VERBS:
        try:
            run(name, options).check()
        except AssertionError:
            broken += 1
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
