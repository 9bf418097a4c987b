"""Producers and Ctrl-C in the middle of a send."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("interrupted_producer.py")
INTERRUPTS = "100"


@pytest.mark.slow
@pytest.mark.parametrize("linger_ms", ["0", "5"])
@pytest.mark.parametrize("target", ["address", "cluster"])
def test_a_producer_goes_on_after_keyboard_interrupts_at_any_moment_of_a_send(
    target: str, linger_ms: str
) -> None:
    program = subprocess.run(
        [sys.executable, PROGRAM, INTERRUPTS, target, linger_ms],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert program.returncode == 0, program.stderr
