"""Describes topics: counts, sizes, rates, keys and disorder, by partition and in total.

With `headers_only` the job decodes no record: it reads the batches' headers, as the table `batches`
does. Times are then the largest timestamps of batches, and the report says nothing about keys,
values and the compression ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from embedlog.errors import ConfigError
from embedlog.runtime.os_files import absolute
from embedlog.spark.jobs.report import Report
from embedlog.spark.jobs.topics import partitions_of

_BY = ("topic", "partition")
_MINUTE_MS = 60_000


def profile(
    spark: SparkSession, path: str, topics: Sequence[str] = (), *, headers_only: bool = False
) -> Report:
    """Describe `topics` of the data directory at `path`, or all topics except internal ones.

    The report has a row for each partition; sizes are in bytes, times in milliseconds since 1970:

        records, batches, stored_bytes, first_offset, last_offset, codecs, transactional_batches
        first_ms, last_ms, per_minute (the mean), busiest_minute (most records in one)
        backwards                    records (batches) older than the one before
        null_keys, null_values, distinct_keys (approximate, 5 %), key_bytes, value_bytes
        value_sizes                  {power of two: records with a value of fewer bytes}
        compression_ratio            bytes of keys and values / bytes stored

    `counts` are sums, and `skew`: records of the fullest partition / records of the mean one.

    Raises:
        ConfigError: the directory has no topic.
        UnknownTopicOrPartition: a topic does not exist.
    """
    path = absolute(path)
    partitions = partitions_of(path, topics, internal=False)
    if not partitions:
        raise ConfigError(f"{path} has no topic to describe")
    names = ",".join(dict.fromkeys(key.topic for key in partitions))
    found: dict[tuple[str, int], dict[str, Any]] = {
        key: {"topic": key.topic, "partition": key.partition, "records": 0, "stored_bytes": 0}
        for key in partitions
    }

    def source(**options: str) -> DataFrame:
        options |= {"path": path, "subscribe": names}
        return spark.read.format("embedlog").options(**options).load()

    frames = _of_batches(source(table="batches"), with_times=headers_only)
    if not headers_only:
        frames += _of_records(source())
    for frame in frames:
        _merge(found, frame)
    rows = [found[key] for key in sorted(found)]
    for row in rows:
        _derive(row, is_decoded=not headers_only)
    return Report("profile", _counts(rows), tuple(rows))


def _of_batches(batches: DataFrame, *, with_times: bool) -> list[DataFrame]:
    data = batches.where("not isControl")
    whole = data.groupBy(*_BY).agg(
        f.sum("records").alias("records"),
        f.count(f.lit(1)).alias("batches"),
        f.sum("sizeBytes").alias("stored_bytes"),
        f.min("baseOffset").alias("first_offset"),
        f.max("lastOffset").alias("last_offset"),
        f.sort_array(f.collect_set("compression")).alias("codecs"),
        f.count_if("isTransactional").alias("transactional_batches"),
    )
    if not with_times:
        return [whole]
    timed = data.select(
        *_BY,
        f.col("baseOffset").alias("offset"),
        f.unix_millis("maxTimestamp").alias("ms"),
        f.col("records").alias("weight"),
    )
    return [whole, *_of_times(timed)]


def _of_times(timed: DataFrame) -> list[DataFrame]:
    """Return frames of times and busiest minutes; `timed` has offset, ms and weight (records)."""
    before = f.lag("ms").over(Window.partitionBy(*_BY).orderBy("offset"))
    steps = timed.withColumn("before", before)
    bounds = steps.groupBy(*_BY).agg(
        f.min("ms").alias("first_ms"),
        f.max("ms").alias("last_ms"),
        f.count_if(f.col("ms") < f.col("before")).alias("backwards"),
    )
    minute = f.expr(f"ms div {_MINUTE_MS}").alias("minute")
    minutes = timed.groupBy(*_BY, minute).agg(f.sum("weight").alias("in_minute"))
    busiest = minutes.groupBy(*_BY).agg(f.max("in_minute").alias("busiest_minute"))
    return [bounds, busiest]


def _of_records(records: DataFrame) -> list[DataFrame]:
    sized = records.withColumn("size", f.octet_length("value"))
    whole = sized.groupBy(*_BY).agg(
        f.count(f.lit(1)).alias("records"),
        f.count_if(f.col("key").isNull()).alias("null_keys"),
        f.count_if(f.col("value").isNull()).alias("null_values"),
        f.approx_count_distinct("key").alias("distinct_keys"),
        f.coalesce(f.sum(f.octet_length("key")), f.lit(0)).alias("key_bytes"),
        f.coalesce(f.sum("size"), f.lit(0)).alias("value_bytes"),
    )
    # 0 bytes -> 1, 1 -> 2, 2 and 3 -> 4: the smallest power of two that is greater.
    bucket = f.when(f.col("size") == 0, 1).otherwise(
        f.pow(2, f.floor(f.log2("size")) + 1).cast("bigint")
    )
    counted = sized.where("size is not null").groupBy(*_BY, bucket.alias("bucket")).count()
    sizes = counted.groupBy(*_BY).agg(
        f.map_from_entries(f.sort_array(f.collect_list(f.struct("bucket", "count")))).alias(
            "value_sizes"
        )
    )
    timed = records.select(
        *_BY, "offset", f.unix_millis("timestamp").alias("ms"), f.lit(1).alias("weight")
    )
    return [whole, sizes, *_of_times(timed)]


def _merge(found: dict[tuple[str, int], dict[str, Any]], frame: DataFrame) -> None:
    for row in frame.collect():
        values = row.asDict(recursive=True)
        found[values["topic"], values["partition"]].update(values)


def _derive(row: dict[str, Any], *, is_decoded: bool) -> None:
    if not row["records"]:
        return
    span = (row["last_ms"] - row["first_ms"]) / _MINUTE_MS
    row["per_minute"] = round(row["records"] / span, 3) if span > 0 else None
    if is_decoded and row["stored_bytes"]:
        payload = row["key_bytes"] + row["value_bytes"]
        row["compression_ratio"] = round(payload / row["stored_bytes"], 3)


def _counts(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    records = [row["records"] for row in rows]
    total = sum(records)
    counts: dict[str, Any] = {
        name: sum(row.get(name, 0) for row in rows)
        for name in ("records", "batches", "stored_bytes", "null_keys", "null_values", "backwards")
    }
    counts["partitions"] = len(rows)
    counts["skew"] = round(max(records) * len(records) / total, 3) if total else None
    return counts
