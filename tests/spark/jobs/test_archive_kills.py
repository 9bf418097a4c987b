"""Processes that archive are killed: the table has every record once, and retention the right
offsets.

`python -m tests.spark.jobs.test_archive_kills COUNT SEED` kills COUNT processes at random moments.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import embedlog
from embedlog.common import TopicPartition
from embedlog.runtime import real_runtime
from embedlog.spark.jobs.archive import archive, archived_ranges
from embedlog.spark.jobs.topics import JobTopics
from embedlog.spark.pipeline import read_table
from embedlog.spark.pipeline.tables.manifest import ManifestTable
from embedlog.storage.state_files.archived_offsets import read_archived
from tests.spark.conftest import need_spark
from tests.spark.jobs.archiver_process import STATUS
from tests.spark.logs import add
from tests.support.sizes import IS_FULL

ROOT = Path(__file__).resolve().parents[3]
MODULE = "tests.spark.jobs.archiver_process"
PARTITIONS = 3
COMMIT_RECORDS = 150
STEPS = [
    "archive: staged",
    "table: before the commit",
    "table: after the commit",
    "archive: committed",
]


class _Ended(BaseException):
    """Ends an archiver in this process, whose session costs nothing more."""


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_an_archiver_that_ends_at_any_step_loses_and_doubles_nothing(
    spark: Any, tmp_path: Path, step: str
) -> None:
    with _Archive(tmp_path) as one:
        for nth in (1, 2):  # in the very first commit, and in a later one
            one.grow(200)
            if IS_FULL:
                assert one.run(step, nth) == STATUS
            else:
                one.break_off(spark, step, nth)
            one.check()
        one.finish(spark)
        one.check(is_whole=True)


@pytest.mark.slow
def test_an_archiver_that_is_killed_at_any_moment_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    need_spark()
    kill_often(tmp_path, kills=1, seed=random.randrange(1 << 30))


def kill_often(path: Path, *, kills: int, seed: int) -> int:
    """Return how many processes were killed after their start and before their end."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    killed = 0
    with _Archive(path) as one:
        for _ in range(kills):
            one.grow(chance.randint(1, 400))
            status = one.run(kill_after_s=chance.random() * 6)
            assert status in (0, -signal.SIGKILL), status
            killed += status != 0
            one.check()
        assert one.run() == 0
        one.check(is_whole=True)
    return killed


class _Archive:
    """A log whose owner runs, and its archive."""

    def __init__(self, path: Path) -> None:
        self._log, self._table = path / "log", path / "table"
        # Its records are old: without the archive, retention would remove them after half a minute.
        self._cluster: Any = embedlog.open(self._log, durability="os", log_retention_ms=-1)
        self._cluster.create_topic("t", PARTITIONS)
        self._counts = [0] * PARTITIONS

    def __enter__(self) -> _Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close()

    def grow(self, count: int) -> None:
        """Append `count` records to each partition, and fewer to the last."""
        for number in range(PARTITIONS):
            more = count // (1 + number // 2)
            begin = self._counts[number]
            add(self._cluster, "t", number, range(begin, begin + more))
            self._counts[number] += more

    def run(self, step: str = "", nth: int = 1, kill_after_s: float | None = None) -> int:
        """Archive, perhaps until killed; return the exit status."""
        command = [sys.executable, "-m", MODULE, str(self._log), str(self._table)]
        command += [str(COMMIT_RECORDS), *([step, str(nth)] if step else [])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            if kill_after_s is not None:
                time.sleep(
                    kill_after_s
                )  # the moment is the point: there is no condition to wait for
                process.kill()
            return process.wait()

    def break_off(self, spark: Any, step: str, nth: int) -> None:
        """Archive in a session of this process, up to a step.

        It leaves the files of an archiver that dies there: only a lock is cleaned up after it.
        """
        left = nth

        def end(reached: str) -> None:
            nonlocal left
            left -= reached == step
            if reached == step and left == 0:
                raise _Ended

        with pytest.raises(_Ended):
            self._archive(spark, reached=end)

    def finish(self, spark: Any) -> None:
        """Archive the remaining records in a session of this process."""
        self._archive(spark)

    def _archive(self, spark: Any, reached: Callable[[str], None] = lambda step: None) -> None:
        topics = JobTopics(("t",), str(self._log))
        archive(spark, topics, self._table, commit_records=COMMIT_RECORDS, reached=reached)

    def check(self, *, is_whole: bool = False) -> None:
        """The table has the archived records once, and retention got no greater offsets."""
        state = ManifestTable(str(self._table)).state()
        ends = {key: end for key, (_, end) in archived_ranges(state).items()}
        found: dict[TopicPartition, list[int]] = {}
        if state.version >= 0:
            for row in read_table(self._table).to_arrow().to_pylist():
                assert row["value"] == b"v%d" % row["offset"]
                found.setdefault(TopicPartition("t", row["partition"]), []).append(row["offset"])
        assert {key: sorted(each) for key, each in found.items()} == {
            key: [*range(end)] for key, end in ends.items() if end
        }
        told = read_archived(real_runtime().files, str(self._log))
        assert all(offset <= ends[key] for key, offset in told.items()), (told, ends)
        if is_whole:
            whole = {TopicPartition("t", n): count for n, count in enumerate(self._counts)}
            assert ends == whole
            assert told == whole


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        count = kill_often(Path(directory), kills=int(sys.argv[1]), seed=int(sys.argv[2]))
        print(f"{count} of {sys.argv[1]} killed in the middle, all records once")
