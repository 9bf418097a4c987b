"""Writing one batch to one sink, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from embedlog.spark.pipeline.columns import INTERNAL, KEPT
from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.project import Sink
from embedlog.spark.pipeline.quality import BROKEN
from embedlog.spark.pipeline.sinks.manifest import ManifestTable
from embedlog.spark.pipeline.sinks.table import CommitKey, DataFile, TableFormat, sweep
from embedlog.spark.pipeline.staging import stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def open_table(sink: Sink, reached: Callable[[str], None] = lambda step: None) -> TableFormat:
    """The table of a sink of a table type.

    Raises:
        ProjectError: the library of its format is missing.
    """
    assert sink.path is not None, sink
    return ManifestTable(sink.path, reached=reached)


def write_table(
    sink: Sink,
    table: TableFormat,
    rows: DataFrame,
    key: CommitKey,
    *,
    also: Sequence[DataFile] = (),
    reached: Callable[[str], None] = lambda step: None,
) -> int:
    """Append `rows`; returns how many there were, -1 when the batch was in the table before.

    `also` are files that go into the same commit: the dead letters.
    """
    committed = table.version_of(key.app)
    if committed >= key.version:
        return -1
    kept = rows_to_keep(rows, sink)
    for name in sink.partition_by:
        if name not in kept.columns:
            raise ProjectError(
                f"sink {sink.name!r}: partition_by {name!r}, which is no column of its rows: "
                f"{', '.join(kept.columns)}"
            )
    staged = stage(
        kept,
        table.path,
        key,
        partition_by=sink.partition_by,
        drop_partition_columns=sink.type == "delta",
    )
    reached(f"{sink.name}: staged")
    files = [*staged, *also]
    if files:
        table.commit(key, files, ())
    reached(f"{sink.name}: committed")
    return sum(each.row_count for each in staged)


def rows_to_keep(rows: DataFrame, sink: Sink) -> DataFrame:
    """The columns of a table: the rows' own, and the coordinates that the transform kept."""
    if not sink.tombstones and "_tombstone" in rows.columns:
        rows = rows.where("NOT _tombstone")
    hidden = {*INTERNAL, BROKEN} - set(KEPT)
    return rows.select(*[name for name in rows.columns if name not in hidden])


def sweep_table(table: TableFormat, app: str) -> None:
    """Remove what an earlier run staged and did not commit."""
    sweep(table.path, app, after=table.version_of(app))
