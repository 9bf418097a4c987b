"""A nemesis in real time: three brokers with real sockets, our clients and librdkafka, all faults.

The seeded stories of `tests/simulation/cluster` run in simulated time with clients of their own.
Here threads, sockets, timers and clients are the real ones:

    topics.py    the topics, with DeleteRecords, compaction, delete and create, transactions
    clients.py   our clients in process and over TCP, and librdkafka, behind one interface
    actors.py    writers, transactions, readers, members of groups
    faults.py    kills, losses of power, restarts, disks, network, controller, moves, new topics
    check.py     the promises, and their check
    story.py     one run

A run is not repeatable to the last step: its seed chooses the faults, threads choose the rest.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.crash.report import Options, Report
from tests.support.sizes import size

CI_COUNT = 3
SOAK_COUNT = 50
CI_S, SOAK_S = float(size(15, full=30)), 60.0
"""Length of the time with faults."""


def run(options: Options) -> Report:
    """Tell `options.count` runs, each with a seed of its own."""
    from tests.crash.nemesis.story import Story

    report = Report("nemesis", options)
    seconds = options.seconds or (SOAK_S if options.soak else CI_S)
    for seed in range(options.seed, options.seed + options.count):
        with tempfile.TemporaryDirectory(prefix="nemesis-") as folder:
            outcome = Story(seed, Path(folder)).tell(seconds)
        report.add("runs")
        report.add("faults", sum(outcome.faults.values()))
        report.add("records sent", outcome.records)
        report.add("acknowledged", outcome.acknowledged)
        report.add("transactions", outcome.transactions)
        report.add("records read", outcome.read)
        report.add("clients begun anew", len(outcome.restarts))
        for text in outcome.broken:
            report.fail(f"seed {seed}: {text}")
        if outcome.broken:
            print(*outcome.story, *outcome.restarts, sep="\n", file=sys.stderr, flush=True)
    return report
