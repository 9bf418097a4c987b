"""Writes a Parquet table of records to topics: the same keys, values, headers, times and
partitions.

Records of a partition keep their order; their new offsets begin at the end of the topic. Into a
data directory a restore is one commit of the exactly-once sink. Its application name is made of the
archive, the archive's version and the selection, so a second run does nothing. Over the wire it
is at least once, because brokers without transactions allow no more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import embedlog
from embedlog.errors import ConfigError
from embedlog.runtime import real_runtime
from embedlog.runtime.files import make_directory
from embedlog.runtime.os_files import absolute
from embedlog.spark.jobs.archive import archived_ranges
from embedlog.spark.jobs.report import Report
from embedlog.spark.jobs.targets import ensure_topic
from embedlog.spark.jobs.topics import JobTopics, Selection
from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.tables.manifest import ManifestTable
from embedlog.spark.pipeline.tables.table import ROWS
from embedlog.storage.state_files.commit_file import CommitFile

_CONFIG = {"retention.ms": "-1"}
_NEEDED = ("topic", "partition", "offset", "timestamp", "key", "value")


def restore(
    spark: SparkSession,
    table: str | Path,
    *,
    path: str | None = None,
    bootstrap_servers: str | None = None,
    chosen: Selection | None = None,
    names: Mapping[str, str] | None = None,
    append: bool = False,
    options: Mapping[str, str] | None = None,
) -> Report:
    """Write an archive to topics of a data directory, which may be new, or of brokers.

    `names` gives topics other names. Missing topics are made, with as many partitions as the
    archive knows and with `retention.ms=-1`, because the records are old. A topic that has records
    is refused unless `append` is set. `options` are the sink's, such as "kafka.compression.type".
    While another process owns the directory, the topics must exist.

    Raises:
        ConfigError: both or neither of `path` and `bootstrap_servers` are given; two topics would
            become one; or a topic is missing and another process owns the directory, so that only
            that process can make it.
        ProjectError: there is no table, nothing is selected, or a topic has records.
    """
    if (path is None) == (bootstrap_servers is None):
        raise ConfigError("one of path and bootstrap_servers is needed")
    chosen, names = chosen or Selection(), names or {}
    manifest = ManifestTable(str(Path(table).resolve()))
    state = manifest.state()
    files = manifest.files(ROWS)
    if not files:
        raise ProjectError(f"{table}: no archive, or an empty one")
    application = _application(manifest.path, chosen, names)
    if path is not None:
        path = absolute(path)
        make_directory(real_runtime().files, path, sync=True)
        if CommitFile(real_runtime().files, path).is_done(application, state.version):
            return Report("restore", {"records": 0, "repeated": 1})
    frame = _records(spark, [each.path for each in files], chosen)
    counts = _partition_counts(frame)
    for key in archived_ranges(state):
        if key.topic in counts:
            counts[key.topic] = max(counts[key.topic], key.partition + 1)
    targets = _targets(counts, names)
    _prepare(targets, path, bootstrap_servers, append=append)
    given = dict(options or {})
    if path is not None:
        given |= {"path": path, "txnAppId": application, "txnVersion": str(state.version)}
    else:
        assert bootstrap_servers is not None, "one of both was given"
        given["kafka.bootstrap.servers"] = bootstrap_servers
    frame = _renamed(frame, names).repartition(sum(targets.values()), "topic", "partition")
    frame = frame.sortWithinPartitions("topic", "partition", "offset").drop("offset")
    before = _sizes(targets, path, bootstrap_servers)
    frame.write.format("embedlog").options(**given).mode("append").save()
    after = _sizes(targets, path, bootstrap_servers)
    rows = tuple({"topic": name, "records": after[name] - before[name]} for name in sorted(targets))
    return Report("restore", {"records": sum(r["records"] for r in rows), "repeated": 0}, rows)


def _records(spark: SparkSession, paths: list[str], chosen: Selection) -> DataFrame:
    frame = spark.read.option("mergeSchema", "true").parquet(*paths)
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise ProjectError(f"{paths[0]}: no archive of records: it lacks {', '.join(missing)}")
    frame = frame.where(chosen.where)
    if chosen.topics:
        frame = frame.where(f.col("topic").isin(list(chosen.topics)))
    return frame.select(*_NEEDED, *(["headers"] if "headers" in frame.columns else []))


def _partition_counts(frame: DataFrame) -> dict[str, int]:
    found = frame.groupBy("topic").agg(f.max("partition")).collect()
    if not found:
        raise ProjectError("the archive has none of the records that were chosen")
    return {row[0]: row[1] + 1 for row in found}


def _renamed(frame: DataFrame, names: Mapping[str, str]) -> DataFrame:
    new = f.col("topic")
    for old, name in names.items():
        new = f.when(f.col("topic") == old, f.lit(name)).otherwise(new)
    return frame.withColumn("topic", new)


def _application(path: str, chosen: Selection, names: Mapping[str, str]) -> str:
    what = json.dumps([path, sorted(chosen.topics), chosen.where, sorted(names.items())])
    return f"restore:{hashlib.sha256(what.encode()).hexdigest()[:24]}"


def _targets(counts: Mapping[str, int], names: Mapping[str, str]) -> dict[str, int]:
    targets = {names.get(name, name): count for name, count in counts.items()}
    if len(targets) < len(counts):
        given = ", ".join(f"{name} as {names.get(name, name)}" for name in sorted(counts))
        raise ConfigError(f"two topics cannot become one: {given}")
    return targets


def _prepare(
    targets: Mapping[str, int], path: str | None, servers: str | None, *, append: bool
) -> None:
    """Make missing topics; refuse topics with records unless `append` is set."""
    if path is None:
        with embedlog.Admin(servers) as admin:
            _make_topics(admin, targets)
    else:
        with embedlog.open_reader(path) as reader:
            there = set(reader.topics())
        for name in sorted(targets.keys() - there):
            ensure_topic(path, name, targets[name], config=_CONFIG)
    full = {name: size for name, size in _sizes(targets, path, servers).items() if size}
    if full and not append:
        name = min(full)
        raise ProjectError(f"topic {name} has {full[name]} records already; append adds to them")


def _make_topics(admin: embedlog.Admin, targets: Mapping[str, int]) -> None:
    there = admin.list_topics()
    for name, count in targets.items():
        if name not in there:
            admin.create_topics([embedlog.NewTopic(name, count, configs=_CONFIG)]).check()


def _sizes(targets: Mapping[str, int], path: str | None, servers: str | None) -> dict[str, int]:
    sizes = dict.fromkeys(targets, 0)
    for key, (start, end) in JobTopics(tuple(targets), path, servers).bounds().items():
        sizes[key.topic] += end - start
    return sizes
