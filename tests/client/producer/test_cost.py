"""The cost of an acknowledged record, counted: the same on every machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def counted(*arguments: str) -> str:
    """Return the output of `tests.benchmarks.calls`.

    It runs in a process of its own, without locks that check their order: those take calls.
    """
    free = {name: value for name, value in os.environ.items() if name != "EMBEDLOG_CHECK_LOCKS"}
    return subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.calls", *arguments],
        cwd=ROOT,
        env=free,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_a_record_in_process_takes_few_calls_and_opcodes() -> None:
    found = re.findall(r"^(\S+) +(\d+) calls +(\d+) opcodes$", counted(), re.MULTILINE)
    counts = {name: (int(calls), int(opcodes)) for name, calls, opcodes in found}
    calls, opcodes = counts["send().result()"]
    assert calls <= 45
    assert opcodes <= 1_720
    calls, opcodes = counts["append()"]
    assert calls <= 25
    assert opcodes <= 1_000


@pytest.mark.slow
def test_a_record_over_tcp_takes_few_calls() -> None:
    found = re.search(r"^TCP send\(\)\.result\(\) (\d+) calls", counted("tcp"), re.MULTILINE)
    assert found is not None
    assert int(found.group(1)) <= 260
