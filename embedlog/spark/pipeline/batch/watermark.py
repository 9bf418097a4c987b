"""The pipeline's own watermark on event time, stored so that a repeated batch sees the same one.

The watermark of a batch is the greatest event time of earlier batches minus the delay. An older row
is late and becomes a dead letter; Spark's own watermark would drop it silently. The file holds the
greatest event time before and after the last batch, because the batch may be repeated:

    watermark.json   {"app": ..., "version": 7, "before_ms": ..., "after_ms": ...}
"""

from __future__ import annotations

import json
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from embedlog.runtime import real_runtime
from embedlog.runtime.files import make_directory, write_whole
from embedlog.spark.pipeline.project import Watermark
from embedlog.spark.pipeline.tables.table import CommitKey


class Marks(NamedTuple):
    """The greatest event time before and after a batch, in ms; None before the first row."""

    before_ms: int | None
    after_ms: int | None


class WatermarkFile:
    """The stored watermark of a pipeline's state directory."""

    def __init__(self, state: str) -> None:
        self._path = f"{state}/watermark.json"
        self._directory = state
        self._files = real_runtime().files

    def before(self, key: CommitKey) -> int | None:
        """Return the greatest event time of the batches before this one."""
        if self._files.stat(self._path) is None:
            return None
        found = json.loads(self._files.read(self._path))
        if found["app"] != key.app:
            return None
        newest: int | None = found["before_ms" if found["version"] >= key.version else "after_ms"]
        return newest

    def note(self, key: CommitKey, marks: Marks) -> None:
        """Store the marks of a batch. Call it before any row of the batch is written."""
        make_directory(self._files, self._directory, sync=True)
        document = {"app": key.app, "version": key.version, **marks._asdict()}
        write_whole(self._files, self._path, json.dumps(document).encode(), sync=True)


def reject_late(rows: DataFrame, watermark: Watermark, before_ms: int | None) -> DataFrame:
    """Set `_error` of rows that are late or have no event time."""
    time = event_ms(watermark)
    is_good = f.col("_error").isNull() & ~f.coalesce(f.col("_deleted"), f.lit(False))
    text = f.lit(f"{watermark.column}: no time; rows need an event time")
    is_late = time.isNull()
    if before_ms is not None:
        limit_ms = before_ms - watermark.delay_ms
        is_late = is_late | (time < limit_ms)
        shown = f.date_format(f.timestamp_millis(f.lit(limit_ms)), "yyyy-MM-dd HH:mm:ss.SSS")
        value = f.col(watermark.column).cast("string")
        late = f.concat(value, f.lit(" is before the watermark "), shown)
        text = f.coalesce(late, text)
    reason = f.struct(
        f.lit("late").alias("stage"), f.lit(None).cast("string").alias("rule"),
        text.alias("message"),
    )  # fmt: skip
    return rows.withColumn("_error", f.when(is_good & is_late, reason).otherwise(f.col("_error")))


def event_ms(watermark: Watermark) -> Column:
    """Return the event time of a row in milliseconds; null for a value that is no time."""
    return f.unix_millis(f.col(watermark.column).try_cast("timestamp"))
