"""Turns a topic of changes into a table of states: SCD 1 (a key's last row) or SCD 2 (its history).

A hash of the keys divides a table into buckets; the names of its files' directories contain the
bucket. A batch rewrites the buckets of its keys in one commit that adds new files and removes old
ones. So a batch costs as much as the buckets that it touches, and no table format needs a merge.

Changes of a key are ordered by `sequence_by` if the sink names a column of its own, and else as the
log has them. Offsets order the changes of one partition. They say nothing about a key that moved to
another partition, as when partitions are added: there the records' times decide, and a change
counts as no older than the changes before it in its partition. Times come from the clocks of
producers. Only a sequence in the data orders the changes of several partitions for sure.

A change that is older than the table's row changes nothing, so a batch may be repeated. A row whose
`_deleted` is true removes its key (SCD 1), or closes its last version (SCD 2). An SCD 2 table has
three more columns:

    _valid_from   `sequence_by` if the sink names a column of times; else the record's time, or the
                  later time of an earlier change in its partition
    _valid_to     the time of the next version or the deletion; null for the current version
    _is_current   whether this is the current version
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from embedlog.spark.pipeline.columns import COORDINATES, kept_columns
from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.project import Sink
from embedlog.spark.pipeline.sinks.replacing import Staged
from embedlog.spark.pipeline.tables.table import ROWS, Basis, CommitKey, TableFormat
from embedlog.spark.pipeline.tables.task_files import stage

BUCKET = "_bucket"
_IN_PATH = re.compile(rf"/{BUCKET}=(\d+)/[^/]+$")
_HISTORY = ("_valid_from", "_valid_to", "_is_current")
_NEW = "_is_new"
_REACHED = "_reached_time"


def upsert(sink: Sink, table: TableFormat, rows: DataFrame, key: CommitKey) -> Staged:
    """Stage the buckets that `rows` touch; `count` is the number of changes.

    Raises:
        ProjectError: the rows lack a key or a column that orders them.
    """
    _check_columns(sink, rows)
    changes = rows.select(
        *kept_columns(rows.columns), f.coalesce("_deleted", f.lit(False)).alias("_deleted")
    ).withColumn(BUCKET, _bucket(sink))
    touched = {each[0]: each[1] for each in changes.groupBy(BUCKET).count().collect()}
    if None in touched:
        raise ProjectError(f"sink {sink.name!r}: rows whose keys {list(sink.keys)} are null")
    present = table.files()
    old_files = [each for each in present if bucket_of(each.path) in touched]
    # Two writers may bring the first file of a bucket at once, and no removed file would tell.
    seen = frozenset(each.path for each in present)
    basis = Basis(seen, lambda file: file.part == ROWS and bucket_of(file.path) in touched)
    merged = changes.withColumn(_NEW, f.lit(True))
    if old_files:
        reader = rows.sparkSession.read.option("mergeSchema", "true")
        old = reader.parquet(*[each.path for each in old_files]).drop(BUCKET)
        old = old.withColumn(BUCKET, _bucket(sink)).withColumn(_NEW, f.lit(False))
        merged = merged.unionByName(
            old.withColumn("_deleted", f.lit(False)), allowMissingColumns=True
        )
    result = _scd1(sink, merged) if sink.mode == "scd1" else _scd2(sink, merged)
    adds = stage(result.drop(_NEW, "_deleted"), table.path, key, bucket=BUCKET)
    return Staged(adds, old_files, sum(touched.values()), (basis,))


def bucket_of(path: str) -> int:
    """Return the bucket of a file, or -1 for a file without one."""
    found = _IN_PATH.search(path)
    return int(found[1]) if found else -1


def _check_columns(sink: Sink, rows: DataFrame) -> None:
    needed: Sequence[str] = (*sink.keys, sink.sequence_by, *COORDINATES, "_timestamp", "_deleted")
    for name in needed:
        if name not in rows.columns:
            raise ProjectError(
                f"sink {sink.name!r}, mode {sink.mode}, needs the column {name!r}; its rows have "
                f"{', '.join(rows.columns)}"
            )


def _bucket(sink: Sink) -> Column:
    has_null = f.lit(False)
    for name in sink.keys:
        has_null = has_null | f.col(name).isNull()
    number = f.pmod(f.hash(*sink.keys), f.lit(sink.buckets))
    return f.when(~has_null, number)


def _scd1(sink: Sink, merged: DataFrame) -> DataFrame:
    newest = [f.col(name).desc_nulls_last() for name in _order(sink)]
    # A replay brings an existing row once more, perhaps changed: keep the new one.
    window = Window.partitionBy(*sink.keys).orderBy(*newest, f.col(_NEW).desc())
    placed = _with_reached(sink, merged).withColumn("_place", f.row_number().over(window))
    return placed.where("_place = 1").where("NOT _deleted").drop("_place", _REACHED)


def _order(sink: Sink) -> tuple[str, ...]:
    """Return the columns that order the changes of a key, the first one foremost."""
    own = () if sink.sequence_by == "_offset" else (sink.sequence_by,)
    return (*own, _REACHED, *COORDINATES)


def _with_reached(sink: Sink, merged: DataFrame) -> DataFrame:
    """Add the greatest time of a key's changes in their partition, up to each change.

    It never falls from one offset to the next. So the order by time, then partition, then offset
    keeps the order of each partition, also where the times of records do not.
    """
    earlier = Window.partitionBy(*sink.keys, "_topic", "_partition").orderBy("_offset")
    upto = earlier.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return merged.withColumn(_REACHED, f.max("_timestamp").over(upto))


def _scd2(sink: Sink, merged: DataFrame) -> DataFrame:
    for name in _HISTORY:
        if name not in merged.columns:
            kind = "boolean" if name == "_is_current" else "timestamp"
            merged = merged.withColumn(name, f.lit(None).cast(kind))
    same = Window.partitionBy(*sink.keys, *COORDINATES).orderBy(f.col(_NEW).desc())
    once = merged.withColumn("_place", f.row_number().over(same)).where("_place = 1")
    since = f.col(_REACHED)
    if sink.sequence_by != "_offset":
        since = f.coalesce(f.col(sink.sequence_by).try_cast("timestamp"), since)
    dated = _with_reached(sink, once).withColumn("_valid_from", since)
    ordered = Window.partitionBy(*sink.keys).orderBy(
        *[f.col(name).asc_nulls_first() for name in _order(sink)]
    )
    # Keep the end of an old version: a deletion, which has no row, may have closed it.
    closed = f.when(f.col(_NEW), f.lit(None)).otherwise(f.col("_valid_to"))
    ended = dated.withColumn("_valid_to", f.least(f.lead("_valid_from").over(ordered), closed))
    versions = ended.where("NOT _deleted").drop("_place", _REACHED)
    return versions.withColumn("_is_current", f.col("_valid_to").isNull())
