"""Fork while other threads append and read; children leave `with`, close, use, or just end.

No child hangs, fails, or can write, and the parent's data is complete: at both levels.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from tests.crash.report import Options, Report
from tests.support.sizes import size

CI_COUNT = size(100, full=500)
SOAK_COUNT = 20_000

_PER_HOST = 2_000
"""Forks of one parent: a fork takes longer the more the parent has written."""

_LEVELS = ("os", "fsync")


def run(options: Options) -> Report:
    report = Report("forks", options)
    left = options.count
    number = 0
    while left > 0:
        count = min(_PER_HOST, (left + 1) // 2 if number == 0 else left)
        with tempfile.TemporaryDirectory(prefix="crash-forks-") as base:
            _host(report, f"{base}/data", _LEVELS[number % 2], count)
        left -= count
        number += 1
    return report


def _host(report: Report, directory: str, durability: str, count: int) -> None:
    command = [sys.executable, "-m", "tests.crash.fork_host"]
    # Python warns of every fork of a process with threads.
    host = subprocess.run(
        [*command, directory, durability, str(count)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "default,ignore::DeprecationWarning"},
        check=False,
    )
    forked = 0
    for line in host.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word == "ok":
            forked += 1
            report.add("children")
        elif word == "records":
            report.add("records of the parents", int(rest))
        else:
            report.fail(f"at {durability}: {rest}")
    if host.returncode or forked != count:
        report.fail(f"at {durability}: {forked} of {count} children, exit code {host.returncode}")
    if host.stderr:
        report.fail(f"at {durability}: {host.stderr[-3000:]}")
