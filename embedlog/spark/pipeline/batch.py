"""One batch through the pipeline: decode, judge, transform, write to every sink.

The batch's key is (query id, batch id). When a run ended in the middle, Spark gives the same
records under the same key again, each sink that has the key already says so, and the others are
written. So every sink has every batch once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from embedlog.spark.pipeline import dead_letters, transforms
from embedlog.spark.pipeline.columns import ERROR, key_columns, with_meta
from embedlog.spark.pipeline.decode.formats import row_schema
from embedlog.spark.pipeline.decode.task import decode_function
from embedlog.spark.pipeline.errors import QualityFailed
from embedlog.spark.pipeline.project import TABLE_TYPES, Project, Sink, resolve
from embedlog.spark.pipeline.quality import BROKEN, judge
from embedlog.spark.pipeline.replacing import Scope
from embedlog.spark.pipeline.report import BatchReport
from embedlog.spark.pipeline.schema import columns_ddl, ddl
from embedlog.spark.pipeline.sinks.foreign import write_console, write_topic
from embedlog.spark.pipeline.sinks.manifest import ManifestTable
from embedlog.spark.pipeline.sinks.table import CommitKey, TableFormat
from embedlog.spark.pipeline.sinks.write import (
    Work,
    open_table,
    sweep_table,
    write_letters,
    write_table,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Reached = Callable[[str], None]


class Outcome(NamedTuple):
    """The frames of a batch: rows by the name of their view, and the dead letters."""

    views: dict[str, DataFrame]
    failed: DataFrame
    report: BatchReport


class BatchProcessor:
    """Knows a project, its tables and its state; processes batches one at a time."""

    def __init__(self, project: Project, reached: Reached = lambda step: None) -> None:
        self.project = project
        self._reached = reached
        """Told of each step; a test ends the work there."""
        self._maps = [resolve(each, project.directory) for each in project.decode.maps]
        self._columns = key_columns(project.decode.key, row_schema(project.decode))
        self._tables = {
            sink.name: open_table(sink, reached)
            for sink in project.sinks
            if sink.type in TABLE_TYPES
        }
        self._letters = self._dead_letter_table()
        self._swept: set[str] = set()

    def run(self, records: DataFrame, key: CommitKey, scope: Scope | None = None) -> BatchReport:
        """Process the records of one batch and write to all sinks.

        With `scope` it is a replay: rows and letters of these records are replaced in tables, and
        other sinks are left alone.

        Raises:
            QualityFailed: a row broke a rule of the action `fail`; nothing was written.
        """
        self._sweep(key.app)
        cached: list[DataFrame] = []
        try:
            outcome = self.evaluate(records, key, cached)
            self._reached("evaluated")
            self._write(outcome, key, scope)
            return outcome.report
        finally:
            for each in cached:
                each.unpersist()

    def evaluate(self, records: DataFrame, key: CommitKey, cached: list[DataFrame]) -> Outcome:
        """Everything but writing. Frames in `cached` are to be unpersisted by the caller."""
        schema = with_meta(self._columns)
        run = decode_function(self.project.decode, self._maps, self._columns)
        decoded = records.mapInArrow(run, columns_ddl(schema))
        on_input = [each for each in self.project.rules if each.on == "input"]
        judged = judge(decoded, on_input).persist()
        cached.append(judged)
        report = self._report(judged, key)
        good = judged.where("_error IS NULL").drop(BROKEN, "_error", "_value")
        failed = dead_letters.letters(judged.where("_error IS NOT NULL"), key)
        views = transforms.apply(self.project, good)
        on_output = [each for each in self.project.rules if each.on == "output"]
        if on_output:
            name = transforms.source_of(self.project, None)
            views[name], more = self._judge_output(views[name], key, report, cached)
            failed = failed.unionByName(more)
        return Outcome(views, failed, report)

    def _report(self, judged: DataFrame, key: CommitKey) -> BatchReport:
        report = BatchReport(key.app, key.version)
        rules = [each for each in self.project.rules if each.on == "input"]
        row = _counts(judged, [rule.name for rule in rules])
        report.read, report.unknown = row["read"], row["unknown"] or 0
        report.newest_ms = row["newest"] if row["newest"] is not None else -1
        self._take_counts(report, row, judged, "input")
        return report

    def _judge_output(
        self, rows: DataFrame, key: CommitKey, report: BatchReport, cached: list[DataFrame]
    ) -> tuple[DataFrame, DataFrame]:
        from pyspark.sql import functions as f

        made = rows.withColumn("_error", f.lit(None).cast(ddl(ERROR)))
        if "_deleted" not in rows.columns:
            made = made.withColumn("_deleted", f.lit(False))
        rules = [each for each in self.project.rules if each.on == "output"]
        judged = judge(made, rules).persist()
        cached.append(judged)
        self._take_counts(report, _counts(judged, [r.name for r in rules]), judged, "output")
        bad = dead_letters.as_records(judged.where("_error IS NOT NULL"))
        good = judged.where("_error IS NULL").select(*rows.columns)
        return good, dead_letters.letters(bad, key)

    def _take_counts(self, report: BatchReport, row: Any, judged: DataFrame, on: str) -> None:
        for rule in self.project.rules:
            if rule.on == on:
                count = row[f"rule {rule.name}"] or 0
                report.broken[rule.name] = count
                if rule.action == "fail" and count:
                    raise QualityFailed(_why_failed(rule.name, rule.expect, count, judged))
        if row["dead"]:
            report.dead += row["dead"]
            stages = judged.where("_error IS NOT NULL").groupBy("_error.stage").count()
            for each in stages.collect():
                report.errors[each[0]] = report.errors.get(each[0], 0) + each[1]

    def _write(self, outcome: Outcome, key: CommitKey, scope: Scope | None) -> None:
        report = outcome.report
        holder = self._holder_of_letters()
        # A replay may take letters away although it makes none.
        letters = outcome.failed if report.dead or scope is not None else None
        for sink in self.project.sinks:
            rows = outcome.views[transforms.source_of(self.project, sink.source)]
            work = Work(rows, key, scope, letters if sink is holder else None)
            count = self._write_sink(sink, work, outcome.failed if report.dead else None)
            if count < 0:
                report.repeated.append(sink.name)
            else:
                report.written[sink.name] = count
        if holder is None and letters is not None:
            work = Work(letters, key, scope, letters)
            write_letters(self._letters, work, self._reached)

    def _write_sink(self, sink: Sink, work: Work, dead: DataFrame | None) -> int:
        if sink.name in self._tables:
            return write_table(sink, self._tables[sink.name], work, self._reached)
        if work.scope is not None:
            return 0  # records that are in a topic cannot be replaced
        if sink.type == "console":
            write_console(sink, work.rows, work.key)
        else:
            write_topic(self.project, sink, work.rows, dead, work.key)
        self._reached(f"{sink.name}: committed")
        return work.rows.count()

    def _holder_of_letters(self) -> Sink | None:
        """The Parquet sink whose commits take the dead letters with them, if there is one."""
        if self.project.dead_letters.path is not None:
            return None
        return next((each for each in self.project.sinks if each.type == "parquet"), None)

    def _dead_letter_table(self) -> ManifestTable:
        holder = self._holder_of_letters()
        path = self.project.dead_letters.path or f"{self.project.state}/dead_letters"
        if holder is not None and holder.path is not None:
            path = holder.path
        return ManifestTable(path, reached=self._reached)

    @property
    def dead_letter_table(self) -> ManifestTable:
        """The table that holds the dead letters, as its part `dead_letters`."""
        return self._letters

    def table(self, sink: str) -> TableFormat:
        """The table of a sink."""
        return self._tables[sink]

    def _sweep(self, app: str) -> None:
        if app not in self._swept:
            self._swept.add(app)
            for table in (*self._tables.values(), self._letters):
                sweep_table(table, app)


def _counts(judged: DataFrame, rules: list[str]) -> Any:
    """One row: read, dead, unknown, newest, and `rule <name>` for each rule."""
    from pyspark.sql import functions as f

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
    for name in rules:
        columns.append(f.count_if(f.array_contains(BROKEN, name)).alias(f"rule {name}"))
    return judged.agg(*columns).collect()[0]


def _why_failed(name: str, expect: str, count: int, judged: DataFrame) -> str:
    from pyspark.sql import functions as f

    text = f"rule {name!r} ({expect}) is broken by {count} rows; nothing of the batch is written"
    if not {"_topic", "_partition", "_offset"} <= set(judged.columns):
        return text
    broken = judged.where(f.array_contains(BROKEN, name)).select("_topic", "_partition", "_offset")
    places = ", ".join(f"{r[0]}-{r[1]} offset {r[2]}" for r in broken.limit(3).collect())
    return f"{text}; the first: {places}"
