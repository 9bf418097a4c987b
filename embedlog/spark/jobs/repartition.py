"""Writes a topic again with another number of partitions, or with other keys, exactly once.

Records with a key go to the partition that Kafka's default partitioner chooses (murmur2), records
without one to their old partition modulo the new number. Records of one key keep the order of their
old partition and offset: the tasks read in that order, nothing is shuffled, and the sink appends
the staged rows in the order of the tasks. One commit makes all of it visible. The commit has the
name "repartition/<source>/<target>" and a version: run a killed job again; a run after the commit
does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import embedlog
from embedlog.errors import ConfigError, UnknownTopicOrPartition
from embedlog.runtime import real_runtime
from embedlog.runtime.os_files import absolute
from embedlog.spark.jobs.report import Report
from embedlog.spark.jobs.targets import ensure_topic
from embedlog.storage.state_files.commit_file import CommitFile, read_last

_KEEPING_ALL = {"retention.ms": "-1"}
"""Default config of a new target: copied records keep their age, so retention by time is off."""


def repartition(
    spark: SparkSession,
    path: str,
    source: str,
    target: str,
    partitions: int,
    *,
    key: str | None = None,
    where: str | None = None,
    version: int = 1,
    config: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> Report:
    """Write the committed records of `source` to `target`, which has `partitions` partitions.

    A missing target is made with `config`, and without retention by time unless `config` sets it.
    `key` is an SQL expression over a record's columns for the new key, `where` selects the records.
    Another `version` writes again; `startingOffsets` in `options` limits that run to newer records.
    `options` belong to `format("embedlog")`, for source and target.

    Raises:
        ConfigError: source and target are the same, a number is not positive, or the target cannot
            be made because another process has the directory open.
        UnknownTopicOrPartition: the source does not exist.
        InvalidPartitions: the target has another number of partitions.
    """
    if source == target:
        raise ConfigError(f"source and target are both {source!r}: offsets would change in place")
    if partitions < 1 or version < 0:
        raise ConfigError(f"partitions={partitions}, version={version}: expected 1 and 0 or more")
    path = absolute(path)
    with embedlog.open_reader(path) as reader:
        count = len(reader.partitions(source))
    if not count:
        raise UnknownTopicOrPartition(f"{path} has no topic {source!r}")
    given = dict(options or {})
    servers = next((v for k, v in given.items() if k.lower() == "kafka.bootstrap.servers"), "")
    config = {**_KEEPING_ALL, **(config or {})}
    is_new = ensure_topic(path, target, partitions, servers=servers, config=config)
    application = f"repartition/{source}/{target}"
    files = real_runtime().files
    counts: dict[str, Any] = {"partitions_before": count, "partitions": partitions, "made": is_new}
    if CommitFile(files, path).is_done(application, version):
        return Report("repartition", {**counts, "records": 0, "done_already": True})
    reading = {"kafka.isolation.level": "read_committed", **given, "path": path}
    rows = spark.read.format("embedlog").options(**reading, includeHeaders="true")
    records = rows.option("subscribe", source).load()
    if where is not None:
        records = records.where(where)
    if key is not None:
        records = records.withColumn("key", f.expr(key).cast("string").cast("binary"))
    modulo = f.expr(f"case when key is null then cast(partition % {partitions} as int) end")
    made = records.select("key", "value", "headers", "timestamp", modulo.alias("partition"))
    own = {k: v for k, v in given.items() if not k.lower().startswith(("starting", "ending"))}
    writer = made.write.format("embedlog").mode("append").options(**own)
    writer = writer.option("path", path).option("topic", target)
    writer.options(txnAppId=application, txnVersion=str(version)).save()
    return _report(path, application, version, counts)


def _report(path: str, application: str, version: int, counts: dict[str, Any]) -> Report:
    """Report the ranges of the commit, unless a later commit has replaced them in the file."""
    last = read_last(real_runtime().files, path)
    rows: list[dict[str, Any]] = []
    if last is not None and (last.application, last.version) == (application, version):
        for each, (start, end) in sorted(last.ranges.items()):
            rows.append(
                {"topic": each.topic, "partition": each.partition, "start": start, "end": end}
            )
    counts = {**counts, "records": sum(row["end"] - row["start"] for row in rows)}
    return Report("repartition", {**counts, "done_already": False}, tuple(rows))
