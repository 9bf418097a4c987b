"""A topic of changes to a table of states: SCD 1 (the last row of a key) and SCD 2 (its history).

A table is cut into buckets by a hash of its keys; the bucket is in the names of its files'
directories. A batch rewrites the buckets that it has a key of, in one commit: new files in, old
ones out. So a batch costs as much as the buckets that it touches, and no format has to know how to
merge.

Changes of a key are ordered by `sequence_by` and then by offset; what is older than what the table
has changes nothing, so a batch may come again. A row whose `_deleted` is true takes its key away
(SCD 1), or closes its last version (SCD 2). An SCD 2 table has three columns more:

    _valid_from   the record's time, or `sequence_by` when the sink names one
    _valid_to     when the next version or the deletion came; null for the current one
    _is_current   whether it is
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from embedlog.spark.pipeline.columns import COORDINATES, INTERNAL, KEPT
from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.project import Sink
from embedlog.spark.pipeline.quality import BROKEN
from embedlog.spark.pipeline.sinks.staging import stage
from embedlog.spark.pipeline.sinks.table import CommitKey, DataFile, TableFormat

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BUCKET = "_bucket"
_IN_PATH = re.compile(rf"/{BUCKET}=(\d+)/[^/]+$")
_HISTORY = ("_valid_from", "_valid_to", "_is_current")
_NEW = "_is_new"


def upsert(
    sink: Sink, table: TableFormat, rows: DataFrame, key: CommitKey
) -> tuple[list[DataFile], list[DataFile], int]:
    """Stage the buckets that `rows` touch: the files to add, to remove, and how many changes.

    Raises:
        ProjectError: the rows lack a key or a column that orders them.
    """
    from pyspark.sql import functions as f

    _check_columns(sink, rows)
    changes = rows.select(
        *_own(rows), f.coalesce("_deleted", f.lit(False)).alias("_deleted")
    ).withColumn(BUCKET, _bucket(sink))
    touched = {each[0]: each[1] for each in changes.groupBy(BUCKET).count().collect()}
    if None in touched:
        raise ProjectError(f"sink {sink.name!r}: rows whose keys {list(sink.keys)} are null")
    old_files = [each for each in table.files() if bucket_of(each.path) in touched]
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
    return adds, old_files, sum(touched.values())


def bucket_of(path: str) -> int:
    """The bucket of a file, -1 for one that has none."""
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


def _own(rows: DataFrame) -> list[str]:
    hidden = {*INTERNAL, BROKEN} - set(KEPT)
    return [name for name in rows.columns if name not in hidden]


def _bucket(sink: Sink) -> Column:
    from pyspark.sql import functions as f

    has_null = f.lit(False)
    for name in sink.keys:
        has_null = has_null | f.col(name).isNull()
    number = f.pmod(f.hash(*sink.keys), f.lit(sink.buckets))
    return f.when(~has_null, number)


def _scd1(sink: Sink, merged: DataFrame) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    newest = [f.col(name).desc_nulls_last() for name in (sink.sequence_by, "_offset")]
    # A replay brings the row that is there once more, perhaps changed: the new one counts.
    window = Window.partitionBy(*sink.keys).orderBy(*newest, f.col(_NEW).desc())
    last = merged.withColumn("_place", f.row_number().over(window)).where("_place = 1")
    return last.where("NOT _deleted").drop("_place")


def _scd2(sink: Sink, merged: DataFrame) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    for name in _HISTORY:
        if name not in merged.columns:
            kind = "boolean" if name == "_is_current" else "timestamp"
            merged = merged.withColumn(name, f.lit(None).cast(kind))
    same = Window.partitionBy(*sink.keys, *COORDINATES).orderBy(f.col(_NEW).desc())
    once = merged.withColumn("_place", f.row_number().over(same)).where("_place = 1")
    since = "_timestamp" if sink.sequence_by == "_offset" else sink.sequence_by
    dated = once.withColumn("_valid_from", f.col(since).cast("timestamp"))
    ordered = Window.partitionBy(*sink.keys).orderBy(
        f.col(sink.sequence_by).asc_nulls_first(), f.col("_offset").asc()
    )
    # An old version may have been closed by a deletion, of which there is no row.
    closed = f.when(f.col(_NEW), f.lit(None)).otherwise(f.col("_valid_to"))
    ended = dated.withColumn("_valid_to", f.least(f.lead("_valid_from").over(ordered), closed))
    versions = ended.where("NOT _deleted").drop("_place")
    return versions.withColumn("_is_current", f.col("_valid_to").isNull())
