"""Two processes open one directory at once: one gets it, the other gets an error, each time.

The winner holds it until both have reported, and then closes it, ends without a close, or is
killed. A third opener must succeed at once: no lock is left. Directories are new, used, or taken
over while their last owner is still dying.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable

import embedlog
from tests.crash.child import Child, Gate, Say
from tests.crash.report import Options, Report
from tests.support.sizes import size

CI_COUNT = size(100, full=1_000)
SOAK_COUNT = 100_000

_WON = b"won"
_LOST = b"lost"


def run(options: Options) -> Report:
    report = Report("openers", options)
    chance = random.Random(options.seed)
    _warm()
    with tempfile.TemporaryDirectory(prefix="crash-openers-") as base:
        directory = f"{base}/data"
        for number in range(options.count):
            if chance.random() < 0.2:
                shutil.rmtree(directory, ignore_errors=True)
            _race(report, number, chance, directory)
    return report


def _warm() -> None:
    """Import the modules of an open, so that children are forked with them."""
    with tempfile.TemporaryDirectory() as base, embedlog.open(f"{base}/data"):
        pass


def _race(report: Report, number: int, chance: random.Random, directory: str) -> None:
    level = chance.choice(("os", "fsync"))
    ending = chance.choice(("close", "leave", "kill"))
    gate = Gate()
    told = [os.pipe(), os.pipe()]
    children = [
        Child(_opener(directory, level, ending, chance.random() * 0.0005, told[k][0]), gate=gate)
        for k in range(2)
    ]
    gate.open()
    answers = [child.line() for child in children]
    if sorted(answers) == [_LOST, _WON]:
        report.add("races with one winner")
    else:
        report.fail(f"race {number} at {level}: the two openers say {answers}")
    for child, (reader, writer) in zip(children, told, strict=True):
        if ending == "kill":
            child.kill()
        else:
            os.write(writer, b"!")
        os.close(writer)
        os.close(reader)
    # A killed owner is gone; another may need a moment to end, which is no stuck lock.
    endings = [child.end() for child in children]
    if ending != "kill" and any(endings):
        report.fail(f"race {number} at {level}, {ending}: openers ended with {endings}")
    for child in children:
        child.close()
    try:
        with embedlog.open(directory, durability=level) as cluster:
            assert cluster.topics == []
        report.add("opened afterwards")
    except embedlog.EmbedlogError as error:
        report.fail(f"race {number} at {level}, {ending}: a third opener gets {error!r}")


def _opener(
    directory: str, level: str, ending: str, delay_s: float, told: int
) -> Callable[[Say], None]:
    def work(say: Say) -> None:
        until = time.perf_counter() + delay_s
        while time.perf_counter() < until:
            pass
        try:
            cluster = embedlog.open(directory, durability=level)
        except embedlog.DirectoryLocked as error:
            parent = rf"\bpid {os.getppid()}\b"
            say(b"blames the parent" if re.search(parent, str(error)) else _LOST)
            return
        say(_WON)
        os.read(told, 1)
        if ending == "close":
            cluster.close()

    return work
