"""`peers`: hostile requests, frames and connections; waits of other clients, and memory used.

Each attack has a broker of its own in a child process. During the attack another client repeats a
small request. The count is the number of random frames.
"""

from __future__ import annotations

from tests.crash.peers.attacks import ATTACKS
from tests.crash.peers.frames import send_random_frames
from tests.crash.peers.idlers import hold_connections
from tests.crash.peers.victim import Victim
from tests.crash.report import Options, Report
from tests.support.sizes import size

CI_COUNT = size(500, full=5_000)
SOAK_COUNT = 1_000_000

MEMORY_MAX_KB = 64 * 1024
"""More than the idle broker had."""
SOAK_WAIT_MAX_S = 0.05
CI_WAIT_MAX_S = 1.0
"""Twenty times the soak's limit: a busy machine tells little about milliseconds. The limit still
tells a listener that serves from a listener that works on one request for seconds.
"""
SOAK_HOLD_S = 600
CI_HOLD_S = 10


def run(options: Options) -> Report:
    """Run every attack in turn, then random frames, then as many connections as possible."""
    report = Report("peers", options)
    wait_max = SOAK_WAIT_MAX_S if options.soak else CI_WAIT_MAX_S
    attacks = dict(ATTACKS)
    attacks["random frames"] = lambda victim: send_random_frames(victim, options)
    seconds = SOAK_HOLD_S if options.soak else CI_HOLD_S
    attacks["idle and slow peers"] = lambda victim: hold_connections(victim, seconds)
    for name, attack in attacks.items():
        with Victim() as victim:
            attack(victim)
            wait, memory = victim.longest_wait, victim.memory_kb()
        report.add("attacks")
        print(
            f"{name}: other clients waited {wait * 1_000:.1f} ms, {memory / 1024:.1f} MB",
            flush=True,
        )
        if wait > wait_max:
            report.fail(f"{name}: another client waited {wait:.3f} s")
        if memory > MEMORY_MAX_KB:
            report.fail(f"{name}: {memory / 1024:.1f} MB more than when idle")
    return report
