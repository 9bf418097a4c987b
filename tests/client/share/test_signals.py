"""Ctrl-C ends calls of a share consumer: no record is lost, and the consumer goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sizes import size

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("interrupted_share_consumer.py")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["implicit", "explicit"])
@pytest.mark.parametrize("call", ["poll", "commit", "close"])
def test_an_interrupted_call_loses_no_record(call: str, mode: str) -> None:
    run(call, mode, str(size(83, full=3)))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["cluster", "address"])
def test_no_record_is_lost_when_signals_come_at_any_time(way: str) -> None:
    # The check of locks is Python code, which a signal may leave half done.
    run("signals", way, str(size(40, full=400)), EMBEDLOG_CHECK_LOCKS="")


def run(*arguments: str, **more: str) -> None:
    program = subprocess.run(
        [sys.executable, PROGRAM, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert program.returncode == 0, program.stderr
