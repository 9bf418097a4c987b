"""A worker killed with -9 again and again, at any moment: each number counts once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import embedlog
from embedlog import Producer
from tests.client.producer.transactions import test_promises as promises

ROOT = Path(__file__).resolve().parents[4]
NUMBERS = 600
KILLS = 6


def run_and_kill(connect: Callable[[], Any], address: str, seed: int) -> None:
    """Let the worker do its numbers, and kill it `KILLS` times; then check the results."""
    promises.make_topics(connect, taken=1, out=2)
    with Producer(connect()) as plain:
        plain.send_batch("taken", [b"%d" % number for number in range(NUMBERS)]).result()
    draw = Random(seed)
    for left in range(KILLS, -1, -1):
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.client.producer.transactions.killed_worker",
             address, str(NUMBERS)],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert worker.stdout is not None
        with worker.stdout:
            if left:
                # Wait for this many commits: the next one is cut at any point.
                for _ in range(draw.randrange(1, NUMBERS // 7 // KILLS)):
                    assert worker.stdout.readline().startswith("committed")
                worker.kill()
                worker.wait(30)
            else:
                rest = worker.stdout.read()
                assert worker.wait(60) == 0, rest
    assert sorted(map(int, promises.committed(connect))) == list(range(NUMBERS))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_worker_that_is_killed_does_each_number_once(seed: int) -> None:
    with embedlog.open() as cluster:
        address = cluster.listen("127.0.0.1", 0).address
        run_and_kill(lambda: cluster, address, seed)
