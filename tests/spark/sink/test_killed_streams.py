"""A query that is killed again and again, with failing tasks: each row is there once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import embedlog
from tests.spark.conftest import need_spark

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

JOB = Path(__file__).with_name("stream_job.py")
FILES, ROWS = 4, 500
KILLS = 1


def _start(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(JOB), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def _counts(data: str) -> dict[int, int]:
    """Return the rows of each file that readers see."""
    counts: dict[int, int] = {}
    with embedlog.open_reader(data) as reader:
        for part in reader.snapshot(("t", number) for number in range(3)):
            for record in part.records():
                file = int(bytes(record.value or b"")) // ROWS
                counts[file] = counts.get(file, 0) + 1
    return counts


def test_a_query_that_is_killed_writes_each_row_once(data: str, tmp_path: Path) -> None:
    need_spark()
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = tmp_path / "source"
    source.mkdir()
    for number in range(FILES):
        ids = pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())
        pq.write_table(pa.table({"id": ids}), source / f"{number:03}.parquet")
    chance = random.Random(2)
    for attempt in range(KILLS + 1):
        job = _start(data, source, tmp_path / "checkpoint", attempt)
        try:
            assert job.stdout is not None
            assert job.stdout.readline() == b"started\n"
            before = sum(_counts(data).values())
            if attempt < KILLS:
                while job.poll() is None and sum(_counts(data).values()) == before:
                    time.sleep(0.02)
                time.sleep(chance.random())
                assert set(_counts(data).values()) <= {ROWS}
            else:
                assert job.wait(200) == 0
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
            job.stdout.close()
    assert _counts(data) == dict.fromkeys(range(FILES), ROWS)
    with embedlog.open_reader(data) as reader:
        found = []
        for part in reader.snapshot(("t", number) for number in range(3)):
            offsets = []
            for record in part.records():
                offsets.append(record.offset)
                found.append(int(bytes(record.value or b"")))
            assert offsets == list(range(len(offsets)))
    assert sorted(found) == list(range(FILES * ROWS))
