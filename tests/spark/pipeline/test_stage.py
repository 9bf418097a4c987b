"""Only the files of the winning attempts of a task stay, however late the others write."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq

from embedlog.runtime import real_runtime
from embedlog.spark.pipeline.tables.stage import close_stage, make_durable, new_file, open_stage
from embedlog.spark.pipeline.tables.table import CommitKey, sweep
from embedlog.spark.pipeline.tables.task_files import TaskFiles, give_places

KEY = CommitKey("q", 3)
ROWS = pa.table({"n": [1, 2]})


def write(stage: str) -> str:
    path = new_file(stage)
    pq.write_table(ROWS, path)
    assert make_durable(real_runtime().files, path) == Path(path).stat().st_size
    return path


def files(table: Path) -> set[str]:
    return {str(each) for each in table.rglob("*") if each.is_file()}


def test_an_attempt_that_is_late_leaves_nothing(tmp_path: Path) -> None:
    stage = open_stage(str(tmp_path), KEY.directory)
    won, also_won, lost = write(stage), write(stage), write(stage)
    writing = pq.ParquetWriter(new_file(stage), ROWS.schema)
    writing.write_table(ROWS)
    directory = f"{tmp_path}/data/{KEY.directory}"
    places = {won: f"{directory}/a.parquet", also_won: f"{directory}/day=1/b.parquet"}
    close_stage(stage, places)
    writing.write_table(ROWS)
    writing.close()
    with pytest.raises(FileNotFoundError):
        write(stage)
    assert lost not in places
    assert files(tmp_path) == set(places.values())
    assert all(pq.read_table(each, partitioning=None) == ROWS for each in places.values())
    assert [each.name for each in (tmp_path / "data").iterdir()] == [KEY.directory]


def test_a_task_that_outlives_its_driver_leaves_nothing(tmp_path: Path) -> None:
    stage = open_stage(str(tmp_path), KEY.directory)
    other = open_stage(str(tmp_path), CommitKey("another", 3).directory)
    write(stage)
    writing = pq.ParquetWriter(new_file(stage), ROWS.schema)
    assert sweep(str(tmp_path), KEY.app, after=KEY.version) == 1
    writing.write_table(ROWS)
    writing.close()
    with pytest.raises(FileNotFoundError):
        write(stage)
    assert files(tmp_path) == set()
    assert [str(each) for each in (tmp_path / "data").iterdir()] == [other]


def test_a_driver_that_died_while_it_closed_is_cleaned_up_after(tmp_path: Path) -> None:
    stage = open_stage(str(tmp_path), KEY.directory)
    Path(write(stage)).rename(tmp_path / "kept.parquet")
    write(stage)
    Path(stage).rename(stage.replace(".staging", ".closed"))
    assert sweep(str(tmp_path), KEY.app, after=-1) == 1
    assert files(tmp_path) == {str(tmp_path / "kept.parquet")}


def test_a_partition_of_any_text_has_a_directory(tmp_path: Path) -> None:
    table = tmp_path / "table"
    texts = ["x" * 1000, "x" * 1000 + "y", "\U0001f600" * 100, "../..", "", None, "a/b\0c"]
    stage = open_stage(str(table), KEY.directory)
    task = TaskFiles(stage, ("../name",))
    task.write(pa.RecordBatch.from_pydict({"../name": pa.array(texts)}))
    placed = give_places(task.finish(), stage, str(table), KEY)
    found = [pq.read_table(each.path, partitioning=None).to_pylist() for each in placed]
    assert {rows[0]["../name"] for rows in found} == set(texts)
    assert files(tmp_path) == {each.path for each in placed}
    assert {each.relative_to(table / "data").parts[0] for each in map(Path, files(table))} == {
        KEY.directory
    }
