"""Reads a pipeline's Parquet table without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.tables.manifest import ManifestTable, TableState
from embedlog.spark.pipeline.tables.table import DEAD_LETTERS, ROWS, DataFile

if TYPE_CHECKING:
    import pyarrow as pa


class TableSnapshot:
    """A table as it was when it was opened. Its `files` stay readable for at least an hour.

    Spark: `spark.read.parquet(*snapshot.paths)`. DuckDB: `duckdb.read_parquet(snapshot.paths)`.
    """

    def __init__(self, path: str, state: TableState, files: list[DataFile]) -> None:
        self.path = path
        self.version = state.version
        self.app_versions = dict(state.apps)
        """Application (the query's id) -> its last batch in this snapshot."""
        self.files = files
        self.row_count = sum(each.row_count for each in files)

    @property
    def paths(self) -> list[str]:
        return [each.path for each in self.files]

    def to_arrow(self) -> pa.Table:
        """Return all rows. A column that older files lack is null in their rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        tables = [pq.read_table(path, partitioning=None) for path in self.paths]
        return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


def read_table(path: str | Path, *, dead_letters: bool = False) -> TableSnapshot:
    """Return the newest state of a pipeline's Parquet table, or of the dead letters in it.

    Raises:
        ProjectError: there is no table at `path`.
        CorruptRecord: its manifest is damaged.
    """
    table = ManifestTable(str(Path(path).resolve()))
    state = table.state()
    if state.version < 0:
        raise ProjectError(f"{path}: no table: there is no commit in _log")
    part = DEAD_LETTERS if dead_letters else ROWS
    files = [table.data_file(each) for each in state.files.values() if each["part"] == part]
    return TableSnapshot(table.path, state, files)
