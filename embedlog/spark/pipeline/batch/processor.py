"""Runs one batch through the pipeline: decode, judge, transform, write to every sink.

The batch's key is (query id, batch id). If a run ends in the middle, Spark gives the next run the
same records with the same key: sinks that have the key skip the batch, and the others write it. So
every table gets every batch once; `sinks.topics` explains what topics get.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame

from embedlog.spark.pipeline.batch import transforms
from embedlog.spark.pipeline.batch.evaluate import Evaluator, Outcome
from embedlog.spark.pipeline.batch.report import BatchReport
from embedlog.spark.pipeline.batch.watermark import WatermarkFile
from embedlog.spark.pipeline.batch.written import WrittenFile
from embedlog.spark.pipeline.project import TABLE_TYPES, Project, Sink
from embedlog.spark.pipeline.sinks.replacing import ReplayScope
from embedlog.spark.pipeline.sinks.topics import write_console, write_topic
from embedlog.spark.pipeline.sinks.write import (
    Reached,
    TableWrite,
    open_table,
    write_letters,
    write_table,
)
from embedlog.spark.pipeline.tables.manifest import ONE_TIME, ManifestTable
from embedlog.spark.pipeline.tables.one_time import at_work, sweep_dead
from embedlog.spark.pipeline.tables.table import CommitKey, TableFormat, sweep_uncommitted


class BatchProcessor:
    """Processes the batches of one project, one at a time."""

    def __init__(self, project: Project, reached: Reached = lambda step: None) -> None:
        self.project = project
        self._reached = reached
        """Called with the name of each step; a test raises in it to end the work."""
        self._evaluator = Evaluator(project)
        self._watermark = WatermarkFile(project.state)
        self._written = WrittenFile(project.state)
        self._tables = {
            sink.name: open_table(sink, reached)
            for sink in project.sinks
            if sink.type in TABLE_TYPES
        }
        self.dead_letter_table = self._open_letters()
        """The table whose part `dead_letters` holds the dead letters."""
        self._swept: set[str] = set()

    def run(
        self, records: DataFrame, key: CommitKey, scope: ReplayScope | None = None
    ) -> BatchReport:
        """Process the records of one batch and write to all sinks.

        With `scope` the batch is a replay: tables replace the rows and letters of these records,
        and other sinks do not change.

        Raises:
            QualityFailed: a row broke a rule with the action `fail`; nothing was written.
        """
        if key.app.startswith(ONE_TIME):
            with at_work(self.all_tables(), key.app):
                return self._run(records, key, scope)
        self._sweep(key.app)
        try:
            return self._run(records, key, scope)
        except BaseException:
            self._swept.discard(key.app)  # the next try removes its staged files
            raise

    def _run(self, records: DataFrame, key: CommitKey, scope: ReplayScope | None) -> BatchReport:
        cached: list[DataFrame] = []
        try:
            # A replay reads old rows on purpose: none of them is late.
            is_marked = self.project.watermark is not None and scope is None
            before_ms = self._watermark.before(key) if is_marked else None
            outcome = self._evaluator.evaluate(records, key, cached, before_ms)
            if is_marked:
                self._watermark.note(key, outcome.marks)
            self._reached("evaluated")
            if not outcome.report.read and scope is None:
                return outcome.report  # such as the first batch of a query, which has no records
            self._write(outcome, key, scope)
            for keep in outcome.keep:
                keep()
                self._reached("state kept")
            return outcome.report
        finally:
            for each in cached:
                each.unpersist()

    def evaluate(self, records: DataFrame, key: CommitKey, cached: list[DataFrame]) -> Outcome:
        """Evaluate a batch without writing it. The caller unpersists the frames in `cached`."""
        return self._evaluator.evaluate(records, key, cached)

    def _write(self, outcome: Outcome, key: CommitKey, scope: ReplayScope | None) -> None:
        report = outcome.report
        holder = self._holder_of_letters()
        # A replay may remove letters although it makes none.
        letters = outcome.failed if report.dead or scope is not None else None
        sinks = list(self.project.sinks)
        if scope is not None and holder is not None:
            # Remove letters last: once they are gone, no redrive finds their records again.
            sinks.sort(key=lambda each: each is holder)
        for sink in sinks:
            rows = outcome.views[transforms.source_of(self.project, sink.source)]
            work = TableWrite(rows, key, scope, letters if sink is holder else None)
            if scope is None:
                work = work._replace(note=partial(self._written.note, key, sink.name))
            count = self._write_sink(sink, work, outcome.failed if report.dead else None)
            if count < 0:
                report.repeated.append(sink.name)
                count = self._written.noted(key, sink.name)
            report.written[sink.name] = count
        if holder is None and letters is not None:
            work = TableWrite(letters, key, scope, letters)
            write_letters(self.dead_letter_table, work, self._reached)

    def _write_sink(self, sink: Sink, work: TableWrite, dead: DataFrame | None) -> int:
        if sink.name in self._tables:
            return write_table(sink, self._tables[sink.name], work, self._reached)
        if work.scope is not None:
            return 0  # a topic's records cannot be replaced
        if sink.type == "console":
            write_console(sink, work.rows, work.key)
        else:
            write_topic(self.project, sink, work.rows, dead, work.key)
        self._reached(f"{sink.name}: committed")
        return work.rows.count()

    def _holder_of_letters(self) -> Sink | None:
        """Return the Parquet sink whose commits include the dead letters, or None."""
        if self.project.dead_letters.path is not None:
            return None
        return next((each for each in self.project.sinks if each.type == "parquet"), None)

    def _open_letters(self) -> ManifestTable:
        holder = self._holder_of_letters()
        path = self.project.dead_letters.path or f"{self.project.state}/dead_letters"
        if holder is not None and holder.path is not None:
            path = holder.path
        return ManifestTable(path, reached=self._reached)

    def table(self, sink: str) -> TableFormat:
        return self._tables[sink]

    def all_tables(self) -> list[TableFormat]:
        """Return the tables of all sinks and of the dead letters."""
        return [*self._tables.values(), self.dead_letter_table]

    def _sweep(self, app: str) -> None:
        """Remove files that earlier runs of `app`, and dead replays, staged and did not commit."""
        for table in self.all_tables():
            if app not in self._swept:
                sweep_uncommitted(table, app)
            sweep_dead(table)
        self._swept.add(app)
