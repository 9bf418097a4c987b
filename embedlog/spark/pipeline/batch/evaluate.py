"""Evaluates a batch without writing it: the rows of each view, and the dead letters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from embedlog.spark.pipeline.batch import dead_letters, transforms
from embedlog.spark.pipeline.batch.report import BatchReport
from embedlog.spark.pipeline.batch.rules import judge
from embedlog.spark.pipeline.batch.sessions import SessionState
from embedlog.spark.pipeline.batch.watermark import Marks, event_ms, reject_late
from embedlog.spark.pipeline.columns import BROKEN, ERROR, STAGES, key_columns, with_meta
from embedlog.spark.pipeline.decode.formats import row_schema
from embedlog.spark.pipeline.decode.task import decode_function
from embedlog.spark.pipeline.errors import QualityFailed
from embedlog.spark.pipeline.project import Project, Rule, Transform, Watermark, resolve
from embedlog.spark.pipeline.schema import all_nullable, ddl, to_json
from embedlog.spark.pipeline.tables.table import CommitKey


class Outcome(NamedTuple):
    """The frames of a batch: rows by the name of their view, and the dead letters."""

    views: dict[str, DataFrame]
    failed: DataFrame
    report: BatchReport
    marks: Marks
    keep: list[Callable[[], None]]
    """Functions that store the state of stateful transforms; call them when all is written."""


class Evaluator:
    """Evaluates batches of one project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._maps = [resolve(each, project.directory) for each in project.decode.maps]
        self.columns = key_columns(project.decode.key, row_schema(project.decode))

    def evaluate(
        self,
        records: DataFrame,
        key: CommitKey,
        cached: list[DataFrame],
        before_ms: int | None = None,
    ) -> Outcome:
        """Decode, judge and transform; `before_ms` is the greatest event time of earlier batches.

        The caller unpersists the frames that this adds to `cached`.

        Raises:
            QualityFailed: a row broke a rule with the action `fail`.
            ProjectError: a transform cannot be analysed.
        """
        project = self.project
        judged = self.judged(records, before_ms).persist()
        cached.append(judged)
        report, newest_ms = self._report(judged, key)
        known = [each for each in (before_ms, newest_ms) if each is not None]
        marks = Marks(before_ms, max(known, default=None))
        keep: list[Callable[[], None]] = []

        def sessions(transform: Transform, rows: DataFrame) -> DataFrame:
            closed, kept = self._sessions(transform).step(rows, key, marks, cached)
            keep.append(kept)
            return closed

        good = judged.where("_error IS NULL").drop(BROKEN, "_error", "_value")
        failed = dead_letters.letters(judged.where("_error IS NOT NULL"), key)
        views = transforms.apply(project, good, sessions)
        if self._rules("output"):
            name = transforms.source_of(project, None)
            views[name], more = self._judge_output(views[name], key, report, cached)
            failed = failed.unionByName(more)
        return Outcome(views, failed, report, marks, keep)

    def judged(self, records: DataFrame, before_ms: int | None = None) -> DataFrame:
        """Return the decoded rows, good and bad, with `_error` and the rules that they break."""
        project = self.project
        run = decode_function(project.decode, self._maps, self.columns)
        # Pass a StructType: Spark would analyse a text, which declarative pipelines forbid.
        columns = StructType.fromJson(to_json(all_nullable(with_meta(self.columns))))
        decoded = records.mapInArrow(run, columns)
        judged = judge(decoded, self._rules("input"))
        if project.watermark is None:
            return judged
        return reject_late(judged, project.watermark, before_ms)

    def _rules(self, on: str) -> list[Rule]:
        return [each for each in self.project.rules if each.on == on]

    def _sessions(self, transform: Transform) -> SessionState:
        assert transform.sessions is not None, transform
        assert self.project.watermark is not None, transform
        path = f"{self.project.state}/sessions_{transform.name}"
        return SessionState(path, transform.sessions, self.project.watermark)

    def _report(self, judged: DataFrame, key: CommitKey) -> tuple[BatchReport, int | None]:
        """Count the input, and find its greatest event time if there is a watermark."""
        report = BatchReport(key.app, key.version)
        row = _counts(judged, self._rules("input"), self.project.watermark)
        report.read, report.unknown = row["read"], row["unknown"] or 0
        report.newest_ms = row["newest"] if row["newest"] is not None else -1
        self._take_counts(report, row, judged, "input")
        return report, row["newest_event"]

    def _judge_output(
        self, rows: DataFrame, key: CommitKey, report: BatchReport, cached: list[DataFrame]
    ) -> tuple[DataFrame, DataFrame]:
        made = rows.withColumn("_error", f.lit(None).cast(ddl(ERROR)))
        if "_deleted" not in rows.columns:
            made = made.withColumn("_deleted", f.lit(False))
        rules = self._rules("output")
        judged = judge(made, rules).persist()
        cached.append(judged)
        self._take_counts(report, _counts(judged, rules), judged, "output")
        bad = dead_letters.as_records(judged.where("_error IS NOT NULL"))
        good = judged.where("_error IS NULL").select(*rows.columns)
        return good, dead_letters.letters(bad, key)

    def _take_counts(self, report: BatchReport, row: Any, judged: DataFrame, on: str) -> None:
        for rule in self._rules(on):
            count = row[f"rule {rule.name}"] or 0
            report.broken[rule.name] = count
            if rule.action == "fail" and count:
                raise QualityFailed(_why_failed(rule, count, judged))
        report.dead += row["dead"] or 0
        for stage in STAGES:
            count = row[f"stage {stage}"]
            if count:
                report.errors[stage] = report.errors.get(stage, 0) + count


def _counts(judged: DataFrame, rules: list[Rule], watermark: Watermark | None = None) -> Any:
    """Return one row with columns read, dead, unknown, newest, and `rule <name>` for each rule."""
    has = set(judged.columns)
    columns = [
        f.count(f.lit(1)).alias("read"),
        f.count_if(f.col("_error").isNotNull()).alias("dead"),
        (f.count_if(f.col("_unknown").isNotNull()) if "_unknown" in has else f.lit(0)).alias(
            "unknown"
        ),
        (f.max(f.unix_millis("_timestamp")) if "_timestamp" in has else f.lit(None)).alias(
            "newest"
        ),
    ]
    event = f.lit(None).cast("bigint")
    if watermark is not None:
        event = f.max(f.when(f.col("_error").isNull(), event_ms(watermark)))
    columns.append(event.alias("newest_event"))
    for stage in STAGES:
        columns.append(f.count_if(f.col("_error.stage") == stage).alias(f"stage {stage}"))
    for rule in rules:
        is_broken = f.array_contains(BROKEN, rule.name)
        columns.append(f.count_if(is_broken).alias(f"rule {rule.name}"))
    return judged.agg(*columns).collect()[0]


def _why_failed(rule: Rule, count: int, judged: DataFrame) -> str:
    text = (
        f"rule {rule.name!r} ({rule.expect}) is broken by {count} rows; nothing of the batch is "
        "written"
    )
    if not {"_topic", "_partition", "_offset"} <= set(judged.columns):
        return text
    broken = judged.where(f.array_contains(BROKEN, rule.name)).select(
        "_topic", "_partition", "_offset"
    )
    places = ", ".join(f"{r[0]}-{r[1]} offset {r[2]}" for r in broken.limit(3).collect())
    return f"{text}; the first: {places}"
