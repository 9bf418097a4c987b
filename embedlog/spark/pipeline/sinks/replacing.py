"""Replays into a table: removes the rows of the records that are read again, and adds new ones.

Coordinates tell which rows belong to which records, so a table without coordinates cannot be
replayed into. Files without any of the records stay; the others are rewritten. One commit does all
of it, and a second replay changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from embedlog.spark.pipeline.errors import ReplayRefused
from embedlog.spark.pipeline.tables.table import (
    ROWS,
    Basis,
    CommitKey,
    DataFile,
    TableFormat,
)
from embedlog.spark.pipeline.tables.task_files import stage


class ReplayScope(NamedTuple):
    """The coordinates (topic, partition, offset) of the replayed records, and their bounds."""

    coordinates: DataFrame
    bounds: Mapping[tuple[str, int], tuple[int, int]]
    """(topic, partition) -> the first and the last offset."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Files to add and to remove in one commit, and the count of new rows."""

    adds: list[DataFile]
    removes: list[DataFile]
    count: int
    bases: tuple[Basis, ...] = ()

    def plus(self, other: Staged) -> Staged:
        """Return both in one; the counts are summed."""
        return Staged(
            self.adds + other.adds,
            self.removes + other.removes,
            self.count + other.count,
            self.bases + other.bases,
        )


def scope_of(records: DataFrame) -> ReplayScope:
    """Return the scope of records."""
    coordinates = records.select("topic", "partition", "offset").distinct()
    found = coordinates.groupBy("topic", "partition").agg(f.min("offset"), f.max("offset"))
    return ReplayScope(coordinates, {(r[0], r[1]): (r[2], r[3]) for r in found.collect()})


def replace(
    table: TableFormat,
    rows: DataFrame,
    scope: ReplayScope,
    key: CommitKey,
    *,
    names: tuple[str, str, str],
    part: str = ROWS,
    partition_by: Sequence[str] = (),
) -> Staged:
    """Stage a replay's changes.

    `names` are the columns of the coordinates in this table.

    Raises:
        ReplayRefused: `rows`, or a file of the table, lacks one of these columns.
    """
    missing = [name for name in names if name not in rows.columns]
    if missing:
        raise ReplayRefused(
            f"{table.path}: its rows have no {', '.join(missing)}: let the transform keep the "
            "coordinates, or replay into another directory"
        )
    present = table.files(part)
    touched = [each for each in present if _may_hold(each, names, scope)]
    seen = frozenset(each.path for each in present)
    basis = Basis(seen, lambda file: file.part == part and _may_hold(file, names, scope))
    count = rows.count()
    if touched:
        reader = rows.sparkSession.read.option("mergeSchema", "true")
        old = reader.parquet(*[each.path for each in touched]).drop("_bucket")
        other = scope.coordinates
        same = [
            old[mine].eqNullSafe(other[theirs])
            for mine, theirs in zip(names, other.columns, strict=True)
        ]
        rows = rows.unionByName(old.join(other, same, "left_anti"), allowMissingColumns=True)
    adds = stage(rows, table.path, key, part=part, partition_by=partition_by)
    return Staged(adds, touched, count, (basis,))


def _may_hold(file: DataFile, names: tuple[str, str, str], scope: ReplayScope) -> bool:
    """Whether a file may hold a row of the scope. Missing statistics exclude no row."""
    metadata = pq.read_metadata(file.path)
    slots = {metadata.schema.column(n).path: n for n in range(metadata.num_columns)}
    if any(name not in slots for name in names):
        raise ReplayRefused(
            f"{file.path}: has no {' or no '.join(n for n in names if n not in slots)}: the "
            "records of its rows are unknown; replay into another directory"
        )
    for group in range(metadata.num_row_groups):
        found = [_bounds(metadata.row_group(group).column(slots[name])) for name in names]
        for (topic, partition), (first, last) in scope.bounds.items():
            wanted: list[tuple[Any, Any]] = [(topic, topic), (partition, partition), (first, last)]
            if all(
                have is None or (have[0] <= want[1] and want[0] <= have[1])
                for have, want in zip(found, wanted, strict=True)
            ):
                return True
    return False


def _bounds(column: Any) -> tuple[Any, Any] | None:
    statistics = column.statistics
    if statistics is None or not statistics.has_min_max:
        return None
    return statistics.min, statistics.max
