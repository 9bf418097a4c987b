"""Small files of an Iceberg table become large ones, and readers see the same rows all the time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")

import pyarrow as pa
import pyarrow.parquet as pq

from embedlog.cli import main
from embedlog.errors import ConfigError
from embedlog.spark.jobs.compact import compact
from embedlog.spark.jobs.compact_iceberg import copy_pack, packs_of
from embedlog.spark.pipeline.errors import ProjectError, TableConflict
from embedlog.spark.pipeline.tables.iceberg import IcebergFormat
from embedlog.spark.pipeline.tables.table import CommitKey, DataFile


def _file(path: Path, key: CommitKey, name: str, **columns: list[Any]) -> DataFile:
    where = path / "data" / key.directory / f"{name}.parquet"
    where.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), where)
    return DataFile(str(where), len(columns["id"]), where.stat().st_size)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of 8 commits, partitioned by day; the last files have one column more."""
    path = tmp_path / "table"
    format = IcebergFormat(str(path), {}, ["day"])
    for version in range(8):
        key = CommitKey("q", version)
        more = {"new": [f"new{version}"]} if version > 5 else {}
        adds = [
            _file(path, key, f"day{day}", id=[100 * day + version], day=[str(day)], **more)
            for day in (1, 2)
        ]
        format.commit(key, adds)
    return path


def _rows(path: Path) -> list[Any]:
    table = IcebergFormat(str(path), {}).table()
    assert table is not None
    return sorted(table.scan().to_arrow().to_pylist(), key=str)


@pytest.mark.slow
def test_small_files_become_one_of_each_partition(spark: Any, table: Path) -> None:
    before = _rows(table)
    old = IcebergFormat(str(table), {}).table()
    report = compact(spark, table, format="iceberg")
    assert report.counts["files_before"] == report.counts["packed"] == report.counts["rows"] == 16
    assert report.counts["files_after"] == 2
    assert _rows(table) == before
    format = IcebergFormat(str(table), {})
    assert format.version_of("q") == 7
    found = format.table()
    assert found is not None
    assert [len(list(found.scan(f"day = '{day}'").plan_files())) for day in (1, 2, 3)] == [1, 1, 0]
    # A reader of the older snapshot can still read it.
    assert old is not None
    assert sorted(old.scan().to_arrow().to_pylist(), key=str) == before
    assert compact(spark, table, format="iceberg").counts["packed"] == 0


@pytest.mark.slow
def test_a_column_that_was_renamed_keeps_its_values(spark: Any, table: Path) -> None:
    found = IcebergFormat(str(table), {}).table()
    assert found is not None
    with found.update_schema() as update:
        update.rename_column("new", "newer")
    before = _rows(table)
    compact(spark, table, format="iceberg")
    assert _rows(table) == before
    assert sorted(filter(None, (row["newer"] for row in before))) == ["new6"] * 2 + ["new7"] * 2


@pytest.mark.slow
def test_a_commit_in_between_is_noticed_and_the_work_done_anew(spark: Any, table: Path) -> None:
    stream = IcebergFormat(str(table), {})
    taken = stream.files()[0]
    gone = pq.read_table(taken.path)["id"][0].as_py()
    versions = iter([8])

    def progress(done: int, total: int) -> None:
        for version in versions:
            key = CommitKey("q", version)
            stream.commit(key, [_file(table, key, "z", id=[-1], day=["1"])], [taken])

    report = compact(spark, table, format="iceberg", progress=progress)
    assert report.counts["files_after"] == 2
    ids = {100 * day + version for day in (1, 2) for version in range(8)}
    assert {row["id"] for row in _rows(table)} == (ids - {gone}) | {-1}
    assert len(_rows(table)) == 16


@pytest.mark.slow
def test_a_schema_that_changes_in_between_is_noticed(spark: Any, table: Path) -> None:
    found = IcebergFormat(str(table), {}).table()
    assert found is not None
    changes = iter(["new"])

    def progress(done: int, total: int) -> None:
        for column in changes:
            with found.update_schema() as update:
                update.delete_column(column)

    compact(spark, table, format="iceberg", progress=progress)
    assert {tuple(row) for row in _rows(table)} == {("id", "day")}
    assert len(IcebergFormat(str(table), {}).files()) == 2


@pytest.mark.slow
def test_a_task_whose_files_are_gone_says_so(table: Path) -> None:
    stream = IcebergFormat(str(table), {})
    plan = stream.table()
    assert plan is not None
    (pack, *_) = packs_of(plan, str(table), {}, CommitKey("c", 0), 1 << 20)
    stream.commit(CommitKey("q", 8), [], [pack.sources[0]])
    assert "took" in copy_pack(str(table), pack)["conflict"]


@pytest.mark.slow
def test_a_writer_whose_file_was_packed_learns_of_it(spark: Any, table: Path) -> None:
    stream = IcebergFormat(str(table), {})
    taken = stream.files()[0]
    compact(spark, table, format="iceberg")
    with pytest.raises(TableConflict, match="took .* away"):
        stream.commit(CommitKey("q", 8), [], [taken])


@pytest.mark.slow
def test_the_command_line_compacts_iceberg(
    spark: Any, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "compact", str(table), "--format", "iceberg"]) == 0
    assert "packed 16" in capsys.readouterr().out


@pytest.mark.slow
def test_what_cannot_be_compacted_is_refused(tmp_path: Path, table: Path) -> None:
    none: Any = None
    with pytest.raises(ProjectError, match="no Iceberg table"):
        compact(none, tmp_path / "none", format="iceberg")
    found = IcebergFormat(str(table), {}).table()
    assert found is not None
    with found.update_spec() as update:
        update.add_field("id", "bucket[4]")
    with pytest.raises(ConfigError, match="only identity can be compacted"):
        compact(none, table, format="iceberg")
