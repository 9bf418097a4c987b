"""Writes one batch to one table, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import DataFrame

from embedlog.spark.pipeline.columns import COORDINATES, kept_columns
from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.project import Sink
from embedlog.spark.pipeline.sinks.replacing import ReplayScope, Staged, replace
from embedlog.spark.pipeline.sinks.upserts import upsert
from embedlog.spark.pipeline.tables.manifest import ManifestTable
from embedlog.spark.pipeline.tables.table import (
    DEAD_LETTERS,
    CommitKey,
    TableFormat,
)
from embedlog.spark.pipeline.tables.task_files import stage

Reached = Callable[[str], None]
_NO_TEXT = ("binary", "array", "map", "struct", "variant")
_LETTER_COORDINATES = ("topic", "partition", "offset")


class TableWrite(NamedTuple):
    """The rows to write and the commit's key; with `scope`, a replay that replaces rows."""

    rows: DataFrame
    key: CommitKey
    scope: ReplayScope | None = None
    letters: DataFrame | None = None
    """Dead letters for the same commit."""
    note: Callable[[int], None] = lambda count: None
    """Called with the count of rows before they are committed."""


def open_table(sink: Sink, reached: Reached = lambda step: None) -> TableFormat:
    """Open the table of a sink with a table type.

    Raises:
        ProjectError: the library of its format is missing.
    """
    assert sink.path is not None, sink
    if sink.type == "delta":
        from embedlog.spark.pipeline.tables.delta import DeltaFormat

        return DeltaFormat(sink.path, sink.partition_by, reached)
    if sink.type == "iceberg":
        from embedlog.spark.pipeline.tables.iceberg import IcebergFormat

        return IcebergFormat(sink.path, sink.options, sink.partition_by, reached)
    return ManifestTable(sink.path, reached=reached)


def write_table(sink: Sink, table: TableFormat, work: TableWrite, reached: Reached) -> int:
    """Write to a table; return the count of rows, or -1 if the table had the batch before."""
    if table.version_of(work.key.app) >= work.key.version:
        return -1
    staged = _stage_rows(sink, table, work)
    count = staged.count
    if work.letters is not None:
        staged = staged.plus(_stage_letters(table, work))
    work.note(count)
    reached(f"{sink.name}: staged")
    if staged.adds or staged.removes:
        table.commit(work.key, staged.adds, staged.removes, staged.bases)
    reached(f"{sink.name}: committed")
    return count


def write_letters(table: ManifestTable, work: TableWrite, reached: Reached) -> None:
    """Write dead letters to a table that holds nothing else."""
    if table.version_of(work.key.app) < work.key.version:
        staged = _stage_letters(table, work)
        reached("dead letters: staged")
        if staged.adds or staged.removes:
            table.commit(work.key, staged.adds, staged.removes, staged.bases)
    reached("dead letters: committed")


def _stage_rows(sink: Sink, table: TableFormat, work: TableWrite) -> Staged:
    if sink.mode != "append":
        return upsert(sink, table, work.rows, work.key)
    kept = rows_to_keep(work.rows, sink)
    check_partitions(sink, kept)
    if work.scope is not None:
        return replace(
            table, kept, work.scope, work.key, names=COORDINATES, partition_by=sink.partition_by
        )
    adds = stage(kept, table.path, work.key, partition_by=sink.partition_by)
    return Staged(adds, [], sum(each.row_count for each in adds))


def _stage_letters(table: TableFormat, work: TableWrite) -> Staged:
    assert work.letters is not None, work
    if work.scope is None:
        adds = stage(work.letters, table.path, work.key, part=DEAD_LETTERS)
        return Staged(adds, [], sum(each.row_count for each in adds))
    return replace(
        table, work.letters, work.scope, work.key, names=_LETTER_COORDINATES, part=DEAD_LETTERS
    )


def check_partitions(sink: Sink, rows: DataFrame) -> None:
    """Refuse to partition by a column that is missing, or whose values have no text."""
    for name in sink.partition_by:
        if name not in rows.columns:
            raise ProjectError(
                f"sink {sink.name!r}: partition_by {name!r} is not a column of its rows: "
                f"{', '.join(rows.columns)}"
            )
        kind = rows.schema[name].dataType.typeName()
        if kind in _NO_TEXT:
            raise ProjectError(
                f"sink {sink.name!r}: partition_by {name!r}: a {kind} cannot name a directory"
            )


def rows_to_keep(rows: DataFrame, sink: Sink) -> DataFrame:
    """Return a table's columns: the rows' own, and the coordinates that the transform kept."""
    if not sink.tombstones and "_tombstone" in rows.columns:
        rows = rows.where("NOT _tombstone")
    return rows.select(*kept_columns(rows.columns))
