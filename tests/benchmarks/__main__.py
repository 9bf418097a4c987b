"""`python -m tests.benchmarks [process|timers|direct|tcp|clients|transactions|testkit ...]`."""

from __future__ import annotations

import importlib
import sys

NAMES = (
    "process",
    "timers",
    "direct",
    "tcp",
    "transactions",
    "groups",
    "cluster",
    "faults",
    "spark",
    "scale",
    "testkit",
    "queues",
    "sharing",
    "delayed",
)

if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        print(f"\n=== {name}", flush=True)
        importlib.import_module(f"tests.benchmarks.{name}").main()
