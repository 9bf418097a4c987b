"""Small files of a table become large ones, and readers see the same rows all the time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

import pyarrow as pa
import pyarrow.parquet as pq

from embedlog.cli import main
from embedlog.errors import ConfigError
from embedlog.spark.jobs.compact import compact
from embedlog.spark.pipeline.errors import ProjectError, TableConflict
from embedlog.spark.pipeline.tables.manifest import ManifestTable
from embedlog.spark.pipeline.tables.parquet import read_table
from embedlog.spark.pipeline.tables.table import DEAD_LETTERS, ROWS, CommitKey, DataFile


def _file(path: Path, key: CommitKey, day: str, name: str, part: str, **columns: list) -> DataFile:
    where = path / "data" / key.directory / f"day={day}" / f"{name}.parquet"
    where.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), where)
    count = len(next(iter(columns.values())))
    return DataFile(str(where), count, where.stat().st_size, part, (("day", day),))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of 12 commits over two days; the last files have one column more."""
    path = tmp_path / "table"
    for version in range(12):
        key = CommitKey("q", version)
        more = {"new": [f"new{version}"]} if version > 8 else {}
        adds = [
            _file(path, key, "1", "a", ROWS, id=[version], **more),
            _file(path, key, "2", "b", ROWS, id=[100 + version], **more),
        ]
        if version < 3:
            adds.append(_file(path, key, "1", "d", DEAD_LETTERS, error=[f"e{version}"]))
        ManifestTable(str(path)).commit(key, adds)
    return path


def _rows(path: Path, **which: bool) -> list[Any]:
    return sorted(read_table(path, **which).to_arrow().to_pylist(), key=str)


def _data_files(path: Path) -> set[str]:
    return {str(each) for each in (path / "data").rglob("*.parquet")}


@pytest.mark.slow
def test_one_file_of_each_day_is_left_with_all_rows(spark: Any, table: Path) -> None:
    before, letters = _rows(table), _rows(table, dead_letters=True)
    snapshot = read_table(table)
    report = compact(spark, table)
    assert report.counts["files_before"] == report.counts["packed"] == 27
    assert report.counts["files_after"] == 3
    assert report.counts["rows"] == 27
    assert _rows(table) == before
    assert _rows(table, dead_letters=True) == letters
    assert sorted(file.partition[0] for file in read_table(table).files) == [
        ("day", "1"),
        ("day", "2"),
    ]
    assert all("/day=" in file for file in read_table(table).paths)
    # A reader that has listed the files before can still read them.
    assert sorted(snapshot.to_arrow().to_pylist(), key=str) == before
    again = compact(spark, table)
    assert again.counts["packed"] == 0
    assert ManifestTable(str(table)).version_of("q") == 11


@pytest.mark.slow
def test_files_are_filled_up_to_the_target_and_no_further(spark: Any, table: Path) -> None:
    size = max(file.size_bytes for file in read_table(table).files)
    report = compact(spark, table, target_bytes=size * 4)
    assert 6 < report.counts["files_after"] < 12
    assert len(_rows(table)) == 24


@pytest.mark.slow
def test_a_commit_in_between_is_noticed_and_the_work_done_anew(spark: Any, table: Path) -> None:
    stream = ManifestTable(str(table))
    taken = stream.files()[0]
    versions = iter(range(12, 13))

    def progress(done: int, total: int) -> None:
        for version in versions:
            key = CommitKey("q", version)
            new = _file(table, key, "1", "z", ROWS, id=[-1])
            stream.commit(key, [new], [taken])

    report = compact(spark, table, progress=progress)
    ids = sorted(row["id"] for row in _rows(table))
    assert ids == [-1, *range(1, 12), *range(100, 112)]
    assert report.counts["files_after"] == 3
    # The first attempt's packed file is gone; the old files stay for readers that have listed them.
    live = {*read_table(table).paths, *read_table(table, dead_letters=True).paths}
    removed = {f"{table}/{path}" for path in stream.state().removed}
    assert _data_files(table) == live | removed


@pytest.mark.slow
def test_after_five_lost_races_it_gives_up(spark: Any, table: Path) -> None:
    stream = ManifestTable(str(table))
    version = 11

    def progress(done: int, total: int) -> None:
        nonlocal version
        if done == total:
            version += 1
            key = CommitKey("q", version)
            taken = next(file for file in stream.files() if file.partition == (("day", "2"),))
            stream.commit(key, [_file(table, key, "2", "z", ROWS, id=[version])], [taken])

    with pytest.raises(TableConflict, match="took .* away"):
        compact(spark, table, progress=progress)
    assert version == 16


@pytest.mark.slow
def test_delta_compacts_by_its_own_library(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deltalake = pytest.importorskip("deltalake")
    path = str(tmp_path / "delta")
    for number in range(6):
        deltalake.write_deltalake(path, pa.table({"id": [number]}), mode="append")
    assert main(["pipeline", "compact", path, "--format", "delta"]) == 0
    assert "packed 6" in capsys.readouterr().out
    found = deltalake.DeltaTable(path)
    assert len(found.file_uris()) == 1
    assert sorted(found.to_pyarrow_table()["id"].to_pylist()) == list(range(6))


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    none: Any = None
    with pytest.raises(ProjectError, match="no table"):
        compact(none, tmp_path)
    with pytest.raises(ProjectError, match="no Delta table"):
        compact(none, tmp_path, format="delta")
    with pytest.raises(ConfigError, match="'orc': expected parquet, iceberg or delta"):
        compact(none, tmp_path, format="orc")
    with pytest.raises(ConfigError, match="target_bytes=0"):
        compact(none, tmp_path, target_bytes=0)
