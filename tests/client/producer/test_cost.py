"""What an acknowledged record in process may cost, counted: the same on every machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_a_record_in_process_takes_few_calls_and_opcodes() -> None:
    # In a process of its own, as locks that check their order take calls.
    free = {name: value for name, value in os.environ.items() if name != "EMBEDLOG_CHECK_LOCKS"}
    told = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.calls"],
        cwd=ROOT,
        env=free,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = re.findall(r"^(\S+) +(\d+) calls +(\d+) opcodes$", told, re.MULTILINE)
    counts = {name: (int(calls), int(opcodes)) for name, calls, opcodes in found}
    calls, opcodes = counts["send().result()"]
    assert calls <= 45
    assert opcodes <= 1_700
    calls, opcodes = counts["append()"]
    assert calls <= 25
    assert opcodes <= 1_000
