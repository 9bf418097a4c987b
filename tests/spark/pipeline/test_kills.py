"""Processes that commit batches are killed at random moments: no batch is lost or doubled.

`python -m tests.spark.pipeline.test_kills FORMAT COUNT` kills COUNT processes.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

from embedlog.spark.pipeline.kit import table_rows
from tests.spark.pipeline.committer_process import APP, open_table

ROOT = Path(__file__).resolve().parents[3]
MODULE = "tests.spark.pipeline.committer_process"
BATCHES_A_KILL = {"parquet": 40, "delta": 12, "iceberg": 5}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BATCHES_A_KILL)
def test_committers_that_are_killed_lose_and_double_nothing(tmp_path: Path, kind: str) -> None:
    assert kill_often(kind, tmp_path / "table", kills=5, seed=random.randrange(1 << 30)) >= 2


def kill_often(kind: str, path: Path, *, kills: int, seed: int) -> int:
    """Return how many processes were killed in the middle of their work."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    killed = 0
    for number in range(1, kills + 1):
        killed += run(kind, path, number * BATCHES_A_KILL[kind], chance.random() * 0.5)
        check(kind, path)
    count = (kills + 1) * BATCHES_A_KILL[kind]
    run(kind, path, count, None)
    assert check(kind, path) == count
    return killed


def run(kind: str, path: Path, count: int, kill_after_s: float | None) -> bool:
    """Let a process commit, for at most `kill_after_s`; return whether it was killed."""
    command = [sys.executable, "-m", MODULE, kind, str(path), str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if kill_after_s is not None:
            time.sleep(kill_after_s)  # the moment is the point: there is no condition to wait for
            process.kill()
        said = [int(line) for line in process.stdout if line.endswith("\n")]
        status = process.wait()
    assert status in ((0,) if kill_after_s is None else (0, -signal.SIGKILL))
    if said:
        assert open_table(kind, str(path)).version_of(APP) >= said[-1], "printed, not there"
    return status != 0


def check(kind: str, path: Path) -> int:
    """Check that every batch up to the last one is there once; return their count."""
    numbers = sorted(row["n"] for row in table_rows(kind, str(path)))
    assert numbers == list(range(len(numbers)))
    last = open_table(kind, str(path)).version_of(APP)
    assert last == len(numbers) - 1
    return len(numbers)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        made = kill_often(
            sys.argv[1], Path(directory, "t"), kills=int(sys.argv[2]), seed=int(sys.argv[3])
        )
        print(f"{made} killed in the middle, all batches once")
