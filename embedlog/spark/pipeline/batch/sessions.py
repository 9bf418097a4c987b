"""Sessions of keys over event time, with the pipeline's own state.

Rows of a key belong to one session if they are at most the gap apart. A session is closed, and
becomes a row, once the watermark has passed its end plus the gap: any later row for it would be
late. The rows of open sessions are the state. Each batch writes a new state and keeps the previous
one, so a repeated batch begins from the same state.

    <state>/sessions_<name>   a Parquet table whose part `<query>-<batch>` is the state after it

Columns: the key, `session_start`, `session_end` (its last row's time), and the aggregates.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from embedlog.spark.pipeline.batch.watermark import Marks, event_ms
from embedlog.spark.pipeline.project import SessionSettings, Watermark
from embedlog.spark.pipeline.tables.manifest import ManifestTable
from embedlog.spark.pipeline.tables.table import CommitKey, sweep_uncommitted
from embedlog.spark.pipeline.tables.task_files import stage

_TIME, _SESSION = "_event_time", "_session"


class SessionState:
    """The open sessions of one transform."""

    def __init__(self, path: str, sessions: SessionSettings, watermark: Watermark) -> None:
        self._table = ManifestTable(path)
        self._sessions = sessions
        self._watermark = watermark

    def step(
        self, rows: DataFrame, key: CommitKey, marks: Marks, cached: list[DataFrame]
    ) -> tuple[DataFrame, Callable[[], None]]:
        """Return the sessions that this batch closes, and a function that stores the open ones.

        Call the function once the batch is written.
        """
        before = self._version_before(key)
        files = self._table.files(_part(key, before))
        if files:
            reader = rows.sparkSession.read.option("mergeSchema", "true")
            old = reader.parquet(*[each.path for each in files])
            rows = rows.unionByName(old, allowMissingColumns=True)
        marked = _marked(rows, self._sessions, self._watermark).persist()
        cached.append(marked)
        ends = f.max(_TIME).over(Window.partitionBy(*self._sessions.key, _SESSION))
        behind = ends + self._sessions.gap_ms
        limit = -1 if marks.after_ms is None else marks.after_ms - self._watermark.delay_ms
        judged = marked.withColumn("_is_closed", behind < limit)
        closed = _aggregated(judged.where("_is_closed"), self._sessions)
        still_open = judged.where("NOT _is_closed").drop(_TIME, _SESSION, "_is_closed")

        def keep() -> None:
            if self._table.version_of(key.app) >= key.version:
                return
            sweep_uncommitted(self._table, key.app)
            staged = stage(still_open, self._table.path, key, part=_part(key, key.version))
            kept = (_part(key, before), _part(key, key.version))
            gone = [
                file
                for part in self._table.parts()
                if part not in kept
                for file in self._table.files(part)
            ]
            noted = {"app": key.app, "version": key.version, "before": before}
            self._table.commit(key, staged, gone, properties=noted)

        return closed, keep

    def _version_before(self, key: CommitKey) -> int:
        """Return the batch whose state this batch begins from, or -1."""
        noted = self._table.state().properties
        if noted.get("app") != key.app:
            return -1
        version: int = noted["version" if noted["version"] < key.version else "before"]
        return version


def aggregate(rows: DataFrame, sessions: SessionSettings, watermark: Watermark) -> DataFrame:
    """Return all sessions of the rows."""
    return _aggregated(_marked(rows, sessions, watermark), sessions)


def _marked(rows: DataFrame, sessions: SessionSettings, watermark: Watermark) -> DataFrame:
    """Add each row's event time and the number of its session."""
    # A tombstone has no event time and belongs to no session.
    timed = rows.withColumn(_TIME, event_ms(watermark)).where(f.col(_TIME).isNotNull())
    ordered = Window.partitionBy(*sessions.key).orderBy(_TIME)
    is_first = f.col(_TIME) - f.lag(_TIME).over(ordered) > sessions.gap_ms
    number = f.sum(f.coalesce(is_first, f.lit(False)).cast("long")).over(ordered)
    return timed.withColumn(_SESSION, number)


def _aggregated(rows: DataFrame, sessions: SessionSettings) -> DataFrame:
    own = [
        f.timestamp_millis(f.min(_TIME)).alias("session_start"),
        f.timestamp_millis(f.max(_TIME)).alias("session_end"),
    ]
    for name, expression in sessions.aggregates.items():
        own.append(f.expr(expression).alias(name))
    return rows.groupBy(*sessions.key, _SESSION).agg(*own).drop(_SESSION)


def _part(key: CommitKey, version: int) -> str:
    return f"{key.app}-{version}"
