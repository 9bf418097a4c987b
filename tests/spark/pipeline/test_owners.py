"""State directories and tables have one owner, and a writer that lost its place cannot commit."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

from embedlog.spark.pipeline.batch.processor import BatchProcessor
from embedlog.spark.pipeline.errors import PipelineInUse, StagedFilesGone, TableConflict
from embedlog.spark.pipeline.kit import KilledError, table_rows
from embedlog.spark.pipeline.running.runner import Runner
from embedlog.spark.pipeline.running.state import StateDirectory
from embedlog.spark.pipeline.tables.manifest import ManifestTable
from embedlog.spark.pipeline.tables.one_time import at_work, owned, sweep_dead
from embedlog.spark.pipeline.tables.table import Basis, CommitKey, sweep_uncommitted
from tests.spark.pipeline.committer_process import open_table, stage
from tests.spark.pipeline.support import Stream, plain, project, record
from tests.support.kafka import free_port

ROOT = Path(__file__).resolve().parents[3]
FORMATS = ["parquet", "delta", "iceberg"]
KEY = CommitKey("query", 5)

_OWNER = """
import sys
from embedlog.spark.pipeline.running.state import StateDirectory
from embedlog.spark.pipeline.tables.manifest import ManifestTable
from embedlog.spark.pipeline.tables.one_time import owned
with StateDirectory(sys.argv[1]).owned(), owned([ManifestTable(sys.argv[2])], "query"):
    print("ready", flush=True)
    sys.stdin.read()
"""


@contextmanager
def owner(state: Path, table: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that owns the state directory and the table, until it is killed."""
    command = [sys.executable, "-c", _OWNER, str(state), str(table)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def numbers(kind: str, path: Path) -> list[int]:
    return sorted(row["n"] for row in table_rows(kind, str(path)))


@pytest.mark.slow
def test_a_second_run_is_refused_until_the_first_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embedlog.spark.pipeline.tables.one_time._LOCK_TIMEOUT_MS", 100)
    state, table = StateDirectory(str(tmp_path / "s")), ManifestTable(str(tmp_path / "t"))
    with owner(tmp_path / "s", tmp_path / "t") as process:
        with pytest.raises(PipelineInUse, match=f"running already.*{process.pid}"), state.owned():
            pass
        with pytest.raises(PipelineInUse, match="the same pipeline"), owned([table], "query"):
            pass
        with owned([table], "another query"):
            assert sweep_dead(table) == 0
        process.kill()
        process.wait()
    with state.owned(), owned([table], "query"):
        assert sweep_dead(table) == 0
    assert list((tmp_path / "t/_writers").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_a_commit_of_files_that_another_run_swept_is_refused(tmp_path: Path, kind: str) -> None:
    slow, fast = open_table(kind, str(tmp_path)), open_table(kind, str(tmp_path))
    slow.commit(CommitKey("query", 4), [stage(slow, CommitKey("query", 4), [1])], [])
    staged = stage(slow, KEY, [2])
    assert sweep_uncommitted(fast, "query") == 1
    with pytest.raises(StagedFilesGone, match="another run"):
        slow.commit(KEY, [staged], [])
    assert numbers(kind, tmp_path) == [1]
    assert fast.commit(KEY, [stage(fast, KEY, [2])], [])
    assert not slow.commit(KEY, [staged], [])
    assert numbers(kind, tmp_path) == [1, 2]


@pytest.mark.parametrize("kind", [*FORMATS[:1], *(pytest.param(k, marks=pytest.mark.slow)
                                                   for k in FORMATS[1:])])  # fmt: skip
def test_a_sweep_waits_for_a_commit_and_spares_its_files(tmp_path: Path, kind: str) -> None:
    earlier = open_table(kind, str(tmp_path))
    earlier.commit(CommitKey("query", 4), [stage(earlier, CommitKey("query", 4), [1])], [])
    swept: list[int] = []
    sweeper = threading.Thread(
        target=lambda: swept.append(sweep_uncommitted(open_table(kind, str(tmp_path)), "query"))
    )

    def reached(step: str) -> None:
        if step == "table: before the commit":
            sweeper.start()
            sweeper.join(0.2)  # a sweep that did not wait would be over by then
            assert swept == []

    first = open_table(kind, str(tmp_path), reached)
    first.commit(KEY, [stage(first, KEY, [2])], [])
    sweeper.join(30)
    assert swept == [0]
    assert numbers(kind, tmp_path) == [1, 2]


@pytest.mark.parametrize("kind", [*FORMATS[:1], *(pytest.param(k, marks=pytest.mark.slow)
                                                   for k in FORMATS[1:])])  # fmt: skip
def test_two_writers_cannot_both_bring_the_first_file_of_a_bucket(
    tmp_path: Path, kind: str
) -> None:
    first, second = open_table(kind, str(tmp_path)), open_table(kind, str(tmp_path))
    basis = Basis(frozenset(), lambda file: True)
    assert first.commit(KEY, [stage(first, KEY, [1])], [], [basis])
    other = CommitKey("another", 0)
    with pytest.raises(TableConflict, match="meanwhile"):
        second.commit(other, [stage(second, other, [1])], [], [basis])
    seen = frozenset(each.path for each in second.files())
    assert second.commit(other, [stage(second, other, [2])], [], [basis._replace(seen=seen)])
    assert numbers(kind, tmp_path) == [1, 2]


def test_events_of_many_threads_are_all_there(tmp_path: Path) -> None:
    state = StateDirectory(str(tmp_path))
    threads = [
        threading.Thread(target=lambda n=n: [state.event("e", {"n": n}) for _ in range(20)])
        for n in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 80


@pytest.mark.slow
def test_a_run_inside_of_a_run_is_refused_and_harms_nothing(spark: Any, tmp_path: Path) -> None:
    made = project(tmp_path)
    stream = Stream(spark, tmp_path)
    stream.put(record(0, {"id": 1}))
    refused: list[str] = []

    def reached(step: str) -> None:
        if step == "orders: staged":
            with pytest.raises(PipelineInUse) as caught:
                Runner(spark, made, read=stream.read).run()
            refused.append(str(caught.value))
            shutil.copytree(made.state, tmp_path / "copy", dirs_exist_ok=True)

    Runner(spark, made, read=stream.read, reached=reached).run()
    assert len(refused) == 1
    table = tmp_path / "tables/orders"
    assert plain(table_rows("parquet", str(table)), "id") == [(1,)]
    # Nothing is left: the next run owns state and tables.
    stream.put(record(1, {"id": 2}))
    Runner(spark, made, read=stream.read).run()
    assert plain(table_rows("parquet", str(table)), "id") == [(1,), (2,)]


@pytest.mark.slow
def test_totals_have_the_rows_that_were_committed_before_a_kill(spark: Any, tmp_path: Path) -> None:
    sinks = [
        {"name": name, "type": "parquet", "path": f"tables/{name}"} for name in ("orders", "copies")
    ]
    made = project(tmp_path, sink=sinks)
    stream = Stream(spark, tmp_path)
    stream.put(record(0, {"id": 1}), record(1, {"id": 2}))

    for step in ("orders: committed", "copies: committed", "before the count"):

        def reached(name: str, step: str = step) -> None:
            if name == step:
                raise KilledError(name)

        with pytest.raises(KilledError):
            Runner(spark, made, read=stream.read, reached=reached).run()
    stream.put(record(2, {"id": 3}))
    totals = Runner(spark, made, read=stream.read).run()
    assert totals.written == {"orders": 3, "copies": 3}
    assert totals.read == 3
    # Metrics have them from the start of the next run on.
    stream.put(record(3, {"id": 4}))
    port, texts = free_port(), []

    def fetch(name: str) -> None:
        if name == "evaluated":
            with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                texts.append(answer.read().decode())

    counting = replace(made, prometheus_port=port)
    Runner(spark, counting, read=stream.read, reached=fetch).run()
    assert 'embedlog_pipeline_rows_written{pipeline="orders",sink="copies"} 3.0' in texts[0]


@pytest.mark.slow
def test_two_replays_at_once_do_not_double_rows(spark: Any, tmp_path: Path) -> None:
    from embedlog.spark.pipeline.commands.sample import as_frame
    from embedlog.spark.pipeline.sinks.replacing import scope_of

    made = project(tmp_path)
    frame = as_frame(spark, [record(0, {"id": 1})])
    keys = [CommitKey(f"once:replay:{n}", 0) for n in range(2)]

    def reached(step: str) -> None:
        if step == "orders: staged":
            BatchProcessor(made).run(frame, keys[1], scope_of(frame))

    with pytest.raises(TableConflict):
        BatchProcessor(made, reached).run(frame, keys[0], scope_of(frame))
    assert plain(table_rows("parquet", str(tmp_path / "tables/orders")), "id") == [(1,)]
    with at_work([ManifestTable(str(tmp_path / "tables/orders"))], "once:x"):
        pass
    assert len(list((tmp_path / "tables/orders").rglob("*.parquet"))) == 1
