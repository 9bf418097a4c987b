"""Staged files of one-time writers are removed after their death, and never while they work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

from embedlog.runtime import real_runtime
from embedlog.spark.pipeline.batch.processor import BatchProcessor
from embedlog.spark.pipeline.commands.sample import as_frame
from embedlog.spark.pipeline.kit import table_rows
from embedlog.spark.pipeline.tables import one_time
from embedlog.spark.pipeline.tables.manifest import ONE_TIME
from embedlog.spark.pipeline.tables.one_time import at_work, sweep_dead
from embedlog.spark.pipeline.tables.table import CommitKey
from tests.spark.pipeline.committer_process import open_table, stage
from tests.spark.pipeline.support import plain, project, record

ROOT = Path(__file__).resolve().parents[3]
KEY = CommitKey(f"{ONE_TIME}replay:0123456789abcdef", 0)

_WRITER = f"""
import sys
from embedlog.spark.pipeline.tables.one_time import at_work
from embedlog.spark.pipeline.tables.table import CommitKey
from tests.spark.pipeline.committer_process import open_table, stage
kind, path, does_commit = sys.argv[1:]
table, key = open_table(kind, path), CommitKey({KEY.app!r}, 0)
with at_work([table], key.app):
    file = stage(table, key, [7])
    if does_commit == "True":
        table.commit(key, [file], [])
    print("ready", flush=True)
    sys.stdin.read()
"""


@contextmanager
def writer(kind: str, path: Path, *, does_commit: bool) -> Iterator[subprocess.Popen[bytes]]:
    """A process in the middle of one-time work; it is killed at the end at the latest."""
    command = [sys.executable, "-c", _WRITER, kind, str(path), str(does_commit)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def staged_files(path: Path) -> list[str]:
    return sorted(each.name for each in path.glob(f"data/{KEY.directory}/**/*.parquet"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_what_a_writer_staged_stays_while_it_lives_and_goes_when_it_is_killed(
    tmp_path: Path, kind: str
) -> None:
    table = open_table(kind, str(tmp_path))
    table.commit(CommitKey("query", 0), [stage(table, CommitKey("query", 0), [1])], [])
    with writer(kind, tmp_path, does_commit=False) as process:
        assert sweep_dead(table) == 0
        assert len(staged_files(tmp_path)) == 1
        process.kill()
        process.wait()
        assert sweep_dead(table) == 1
    assert staged_files(tmp_path) == []
    assert list((tmp_path / "_writers").iterdir()) == []
    assert [row["n"] for row in table_rows(kind, str(tmp_path))] == [1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_what_a_writer_committed_stays_when_it_is_killed_right_after(
    tmp_path: Path, kind: str
) -> None:
    with writer(kind, tmp_path, does_commit=True) as process:
        process.kill()
        process.wait()
    table = open_table(kind, str(tmp_path))
    assert sweep_dead(table) == 1
    assert [row["n"] for row in table_rows(kind, str(tmp_path))] == [7]
    assert len(staged_files(tmp_path)) == 1
    assert list((tmp_path / "_writers").iterdir()) == []


def test_a_writer_that_fails_leaves_nothing_and_others_alone(tmp_path: Path) -> None:
    table = open_table("parquet", str(tmp_path))
    other = CommitKey("query", 4)
    stage(table, other, [1])
    with pytest.raises(ZeroDivisionError), at_work([table], KEY.app):
        stage(table, KEY, [7])
        assert sweep_dead(table) == 0, "its writer is at work in this process"
        raise ZeroDivisionError
    assert staged_files(tmp_path) == []
    assert {each.name for each in (tmp_path / "data").iterdir()} == {other.directory}
    assert list((tmp_path / "_writers").iterdir()) == []


def test_a_table_that_is_named_twice_is_owned_once(tmp_path: Path) -> None:
    rows, letters = (open_table("parquet", str(tmp_path)) for _ in range(2))
    with at_work([rows, letters], KEY.app):
        assert len(list((tmp_path / "_writers").iterdir())) == 1
    assert list((tmp_path / "_writers").iterdir()) == []


def test_a_file_that_is_no_writers_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "_writers").mkdir()
    (tmp_path / "_writers" / "notes.txt").write_text("mine")
    assert sweep_dead(open_table("parquet", str(tmp_path))) == 0
    assert (tmp_path / "_writers" / "notes.txt").read_text() == "mine"
    assert real_runtime().files.stat(str(tmp_path / "data")) is None


_REPLAY = """
import os, signal, sys
from pathlib import Path
from embedlog.spark.pipeline.kit import session_for_tests
from embedlog.spark.pipeline.running.replay import ReplayRange, Replayer
from embedlog.spark.pipeline.commands.sample import as_frame
from tests.spark.pipeline.support import project, record

def reached(step):
    if step == "orders: staged":
        os.killpg(0, signal.SIGKILL)

records = [record(n, {"id": n, "amount": 2.0}) for n in range(3)]
with session_for_tests() as spark:
    Replayer(
        spark,
        project(Path(sys.argv[1])),
        read=lambda spark, project, options: as_frame(spark, records),
        positions=lambda checkpoint: {("orders", 0): 3},
        reached=reached,
    ).replay(ReplayRange())
"""


@pytest.mark.slow
def test_a_streams_next_batch_sweeps_what_a_killed_replay_staged(
    spark: Any, tmp_path: Path
) -> None:
    made = project(tmp_path)
    processor = BatchProcessor(made)
    records = [record(n, {"id": n, "amount": 1.0}) for n in range(4)]
    processor.run(as_frame(spark, records[:3]), CommitKey("query", 0))
    table = tmp_path / "tables/orders"
    before = set(table.rglob("*.parquet"))
    child = subprocess.run(
        [sys.executable, "-c", _REPLAY, str(tmp_path)],
        start_new_session=True,
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    assert len(set(table.rglob("*.parquet")) - before) >= 1, "it was killed before it staged"
    processor.run(as_frame(spark, records[3:]), CommitKey("query", 1))
    live = {Path(each.path) for each in processor.table("orders").files()}
    assert set(table.rglob("*.parquet")) == live
    assert plain(table_rows("parquet", str(table)), "id", "amount") == [(n, 1.0) for n in range(4)]


def test_a_writer_whose_lock_file_was_swept_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait, taken = one_time.wait_for_lock, []

    def swept_at_first(runtime: Any, name: str, timeout_ms: int) -> Any:
        lock = wait(runtime, name, timeout_ms)
        if not taken:
            Path(name).unlink()
        taken.append(name)
        return lock

    monkeypatch.setattr(one_time, "wait_for_lock", swept_at_first)
    table = open_table("parquet", str(tmp_path / "table"))
    with at_work([table], KEY.app):
        assert len(taken) == 2
        assert Path(taken[0]).exists()
