"""Sinks that are not tables: topics and the console.

Spark's writer of the source's format writes a topic. `format("embedlog")` gets (query id, batch id)
and writes a batch once; `format("kafka")` writes it at least once. The dead letters of a batch go
into the same write, to the topic `dead_letter_topic`.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from embedlog.spark.pipeline.columns import BROKEN, INTERNAL
from embedlog.spark.pipeline.project import Project, Sink
from embedlog.spark.pipeline.tables.table import CommitKey

_SHOWN_MAX = 20
_OWN = ("dead_letter_topic",)


def write_topic(
    project: Project, sink: Sink, rows: DataFrame, dead: DataFrame | None, key: CommitKey
) -> None:
    """Write rows, and dead letters if the sink takes them, to topics in one write."""
    records = as_topic_rows(sink, rows)
    letters = sink.options.get("dead_letter_topic")
    if dead is not None and letters is not None:
        records = records.unionByName(as_letter_rows(dead, letters))
    options = {k: v for k, v in project.source.options.items() if k.lower().startswith("kafka.")}
    options.update({k: v for k, v in sink.options.items() if k not in _OWN})
    if project.source.format == "embedlog":
        options.update(txnAppId=f"{key.app}/{sink.name}", txnVersion=str(key.version))
        path = sink.path or project.source.path
        if path is not None:
            options["path"] = path
    writer = records.write.format(project.source.format).mode("append")
    writer.options(**options).save()


def as_topic_rows(sink: Sink, rows: DataFrame) -> DataFrame:
    """Return rows as key, value, headers and topic; a row without `value` gives its JSON."""
    own = [name for name in rows.columns if name not in (*INTERNAL, BROKEN)]
    if "value" in own:
        value = f.col("value").cast("binary")
    else:
        value = f.to_json(f.struct(*own)).cast("binary")
    if "_deleted" in rows.columns:
        value = f.when(f.coalesce("_deleted", f.lit(False)), f.lit(None)).otherwise(value)
    key = f.lit(None).cast("binary")
    if "key" in own:
        key = f.col("key").cast("binary")
    elif sink.keys:
        columns = [f.col(name) for name in sink.keys]
        single = columns[0].cast("string") if len(columns) == 1 else f.to_json(f.struct(*columns))
        key = single.cast("binary")
    elif "_key" in rows.columns:
        key = f.col("_key")
    headers = f.lit(None).cast("array<struct<key:string,value:binary>>")
    return rows.select(
        key.alias("key"), value.alias("value"), headers.alias("headers"),
        f.lit(sink.topic).alias("topic"),
    )  # fmt: skip


def as_letter_rows(dead: DataFrame, topic: str) -> DataFrame:
    """Return dead letters as records: key and value as they came, all else in headers."""
    named = ("error_stage", "error_rule", "error", "topic", "partition", "offset", "attempt")
    headers = f.array(
        *[
            f.struct(
                f.lit(f"embedlog.{name}").alias("key"),
                f.col(name).cast("string").cast("binary").alias("value"),
            )
            for name in named
        ]
    )
    return dead.select("key", "value", headers.alias("headers"), f.lit(topic).alias("topic"))


def write_console(sink: Sink, rows: DataFrame, key: CommitKey) -> None:
    """Print the first rows of the batch as JSON lines."""
    kept = [name for name in rows.columns if name not in ("_error", BROKEN)]
    for row in rows.select(*kept).limit(_SHOWN_MAX).toJSON().collect():
        sys.stdout.write(f"{sink.name} batch {key.version}: {row}\n")
    sys.stdout.flush()
