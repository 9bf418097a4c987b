"""Compares an archive with its log, or two logs: sums of hashes first, then the rows that differ.

A record has a 64-bit hash of its key, value, headers and timestamp, and of flags for nulls. The
hashes of 65,536 offsets of a partition are summed, so each side comes down to a few numbers and the
order of its files does not matter. Records are compared one by one only where sums differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from embedlog.common import TopicPartition
from embedlog.spark.jobs.archive import archived_ranges
from embedlog.spark.jobs.report import Report
from embedlog.spark.jobs.topics import JobTopics
from embedlog.spark.offsets import Positions
from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.running.positions import within
from embedlog.spark.pipeline.tables.manifest import ManifestTable
from embedlog.spark.pipeline.tables.table import ROWS

ROWS_MAX = 1_000
_BUCKET = 65_536
_PLACE = ("topic", "partition")


def diff(
    spark: SparkSession, left: JobTopics | str | Path, right: JobTopics, *, rows_max: int = ROWS_MAX
) -> Report:
    """Compare the records of `left`, topics or the table of an archive, with those in `right`.

    The job compares the offsets that both sides should have: in each partition, from the greater of
    the two starts to the smaller of the two ends, as the log or the archive's commits say.
    The report has the first `rows_max` offsets that differ, and the side that lacks them.

    Raises:
        ProjectError: there is no archive at `left`.
        UnknownTopicOrPartition: a topic is not in the log.
    """
    if isinstance(left, JobTopics):
        starts, ends = _common(left.bounds(), right.bounds())
        ours = left.read(spark, starts, ends)
    else:
        table = ManifestTable(str(Path(left).resolve()))
        files = [each.path for each in table.files(ROWS)]
        if not files:
            raise ProjectError(f"{left}: no archive, or an empty one")
        ours = spark.read.option("mergeSchema", "true").parquet(*files)
        starts, ends = _common(archived_ranges(table.state()), right.bounds())
        ours = ours.where(within((key, start, ends[key]) for key, start in starts.items()))
    theirs = right.read(spark, starts, ends)
    return _compare(ours, theirs, starts, ends, rows_max)


def _common(
    left: Mapping[TopicPartition, tuple[int, int]], right: Mapping[TopicPartition, tuple[int, int]]
) -> tuple[Positions, Positions]:
    starts, ends = {}, {}
    for key in left.keys() & right.keys():
        starts[key] = max(left[key][0], right[key][0])
        ends[key] = max(starts[key], min(left[key][1], right[key][1]))
    for key, (start, _) in right.items():
        # Compare nothing in partitions that only the right side has.
        starts.setdefault(key, start)
        ends.setdefault(key, start)
    return starts, ends


def _compare(
    ours: DataFrame, theirs: DataFrame, starts: Positions, ends: Positions, rows_max: int
) -> Report:
    left, right = _hashed(ours), _hashed(theirs)
    place = [*_PLACE, "bucket"]
    sums = _sums(left, "left").join(_sums(right, "right"), place, "full").collect()
    records = {side: sum(row[f"{side}_count"] or 0 for row in sums) for side in ("left", "right")}
    differing = [row for row in sums if not _is_same(row)]
    rows: tuple[Mapping[str, Any], ...] = ()
    count = 0
    if differing:
        buckets = [(TopicPartition(*row[:2]), row["bucket"] * _BUCKET) for row in differing]
        chosen = within((key, start, start + _BUCKET) for key, start in buckets)
        by_offset = [*place, "offset"]
        both = (
            left.where(chosen).withColumnRenamed("hash", "left_hash")
            .join(right.where(chosen).withColumnRenamed("hash", "right_hash"), by_offset, "full")
            .where(~f.col("left_hash").eqNullSafe(f.col("right_hash")))
        )  # fmt: skip
        count = both.count()
        found = both.orderBy(*_PLACE, "offset").limit(rows_max).collect()
        rows = tuple(_told(row) for row in found)
    compared = sum(ends[key] - starts[key] for key in starts)
    counts = {
        "offsets": compared, "left": records["left"], "right": records["right"], "differing": count,
    }  # fmt: skip
    return Report("diff", counts, rows)


def _hashed(frame: DataFrame) -> DataFrame:
    # The hash skips nulls, so hash also which fields are null.
    headers = f.expr(
        "transform(headers, h -> struct(h.key, h.value IS NULL AS is_null, h.value AS value))"
    )
    fields = [f.col("key"), f.col("value"), headers]
    flags = [f.col("key").isNull(), f.col("value").isNull(), f.size("headers")]
    hashed = f.xxhash64(*fields, *flags, f.unix_millis("timestamp"))
    bucket = (f.col("offset") / _BUCKET).cast("bigint")
    return frame.select(*_PLACE, "offset", bucket.alias("bucket"), hashed.alias("hash"))


def _sums(frame: DataFrame, side: str) -> DataFrame:
    return frame.groupBy(*_PLACE, "bucket").agg(
        f.count("*").alias(f"{side}_count"),
        # A sum of 64-bit numbers would overflow.
        f.sum(f.col("hash").cast("decimal(38,0)")).alias(f"{side}_sum"),
    )


def _is_same(row: Any) -> bool:
    return bool(row["left_count"] == row["right_count"] and row["left_sum"] == row["right_sum"])


def _told(row: Any) -> Mapping[str, Any]:
    if row["left_hash"] is None:
        why = "left lacks it"
    else:
        why = "right lacks it" if row["right_hash"] is None else "differs"
    return {**{name: row[name] for name in (*_PLACE, "offset")}, "why": why}
