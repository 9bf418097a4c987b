"""Runs a pipeline as a streaming query, until it has caught up or is stopped.

A stop is graceful: the current batch is finished and counted, and the next one does not begin. The
next run reads the records of that batch under the same batch id.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from embedlog.errors import EmbedlogError
from embedlog.runtime import real_runtime
from embedlog.runtime.threads import Parked
from embedlog.spark.pipeline.batch.processor import BatchProcessor
from embedlog.spark.pipeline.batch.report import BatchReport, Totals
from embedlog.spark.pipeline.errors import PipelineFailed, brief
from embedlog.spark.pipeline.project import Project, notes
from embedlog.spark.pipeline.running.metrics import Progress, PrometheusMetrics
from embedlog.spark.pipeline.running.state import StateDirectory, check_state
from embedlog.spark.pipeline.running.topics import read_stream
from embedlog.spark.pipeline.secrets import redacted
from embedlog.spark.pipeline.tables.one_time import owned
from embedlog.spark.pipeline.tables.table import CommitKey

_WATCH_S = 0.2
_TOLD_MS = 10_000
_POLL_MS = 10


class Runner:
    """One run of a pipeline. `stop` may be called from any thread and from a signal handler."""

    def __init__(
        self,
        spark: SparkSession,
        project: Project,
        *,
        on_batch: Callable[[BatchReport], None] = lambda report: None,
        reached: Callable[[str], None] = lambda step: None,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        read: Callable[[SparkSession, Project], DataFrame] = read_stream,
    ) -> None:
        self._spark = spark
        self.project = project
        self._state = StateDirectory(project.state)
        self._processor = BatchProcessor(project, reached)
        self._reached = reached
        self._on_batch = on_batch
        self._on_progress = on_progress
        port = project.prometheus_port
        self._metrics = None if port is None else PrometheusMetrics(project.name, port)
        self._read = read
        self._is_stopping = False
        self._is_in_batch = False
        self._is_over = False
        self._error: BaseException | None = None
        self._owned = ExitStack()
        """The state directory, and from the first batch on the tables."""
        self._app: str | None = None
        """The query as which this run owns the tables."""

    def run(self, *, available_now: bool | None = None, stop_timeout_ms: int = 60_000) -> Totals:
        """Run until the source is exhausted (`available_now`), or until `stop`.

        After `stop` the current batch has `stop_timeout_ms` to finish. After that it is
        interrupted, and the next run repeats it.

        Raises:
            QualityFailed: a row broke a rule with the action `fail`.
            ProjectError: the project does not fit its data, or the state is another pipeline's.
            PipelineInUse: another run of the pipeline is active, in this process or another.
            PipelineFailed: the query failed otherwise.
        """
        try:
            self._owned.enter_context(self._state.owned())
            check_state(self.project)
            self._state.write_status({"name": self.project.name})
            if self._metrics is not None:
                self._metrics.count(self._state.totals())
            return self._run(available_now, stop_timeout_ms)
        finally:
            self._release()
            if self._metrics is not None:
                self._metrics.close()

    def _run(self, available_now: bool | None, stop_timeout_ms: int) -> Totals:
        from embedlog.spark.pipeline.running.listener import ProgressListener

        listener = ProgressListener(self.project, self._state, self._metrics, self._on_progress)
        self._spark.streams.addListener(listener)
        try:
            query = self._start(available_now)
            try:
                return self._watch(query, stop_timeout_ms)
            finally:
                # Spark reports the last batches only after the query's end: wait for these reports.
                _wait_until(lambda: listener.has_ended(query.runId), _TOLD_MS)
        finally:
            self._spark.streams.removeListener(listener)

    def _release(self) -> None:
        """Let others own state and tables; if a batch goes on after the query's end, it does so."""
        _wait_until(lambda: not self._is_in_batch, _TOLD_MS)
        self._is_over = True
        if not self._is_in_batch:
            self._owned.close()

    def _watch(self, query: StreamingQuery, stop_timeout_ms: int) -> Totals:
        clock = real_runtime().clock
        stop_ms = -1
        facts = {"query": query.id, "run": query.runId, "notes": notes(self.project)}
        self._state.event("started", facts)
        try:
            while not _ended(query):
                if not self._is_stopping:
                    continue
                stop_ms = clock.monotonic_ms() if stop_ms < 0 else stop_ms
                if not self._is_in_batch or clock.monotonic_ms() - stop_ms > stop_timeout_ms:
                    query.stop()
        finally:
            if query.isActive:
                query.stop()
        self._raise(query)
        self._state.event("stopped", {"query": query.id, "is_asked": self._is_stopping})
        return self._state.totals()

    def stop(self) -> None:
        self._is_stopping = True

    def _start(self, available_now: bool | None) -> StreamingQuery:
        if available_now is None:
            available_now = self.project.every_ms is None
        trigger: dict[str, Any] = {"availableNow": True}
        if not available_now:
            trigger = {"processingTime": f"{self.project.every_ms or 0} milliseconds"}
        stream = self._read(self._spark, self.project)
        writer = stream.writeStream.foreachBatch(self._batch).trigger(**trigger)
        named = writer.queryName(self.project.name)
        return named.option("checkpointLocation", self._state.checkpoint).start()

    def _batch(self, records: DataFrame, batch_id: int) -> None:
        if self._is_stopping:
            raise _StoppedError
        self._is_in_batch = True
        try:
            key = CommitKey(self._state.query_id(), batch_id)
            if self._app is None:
                self._owned.enter_context(owned(self._processor.all_tables(), key.app))
                self._app = key.app
            report = self._processor.run(records, key)
            self._reached("before the count")
            totals = self._state.count(report)
            if self._metrics is not None:
                self._metrics.count(totals)
            self._state.event("batch", report.as_dict())
            self._on_batch(report)
        except BaseException as error:
            self._error = error
            raise
        finally:
            self._is_in_batch = False
            if self._is_over:
                self._owned.close()

    def _raise(self, query: StreamingQuery) -> None:
        error, self._error = self._error, None
        failure = error if error is not None else query.exception()
        if failure is None or self._is_stopping:
            return  # the next run repeats an interrupted batch
        text = redacted(brief(failure), self.project.secrets)
        self._state.event("failed", {"error": text})
        if isinstance(failure, EmbedlogError):
            raise failure
        # The cause's text is in every traceback.
        raise PipelineFailed(text) from (failure if text == brief(failure) else None)


class _StoppedError(EmbedlogError):
    """Ends the query between two batches; Spark has written nothing of the second one."""


def _ended(query: StreamingQuery) -> bool:
    """Whether the query ended within a short wait, for any reason."""
    try:
        return bool(query.awaitTermination(_WATCH_S))  # type: ignore[arg-type]
    except StreamingQueryException:
        return True


def _wait_until(is_true: Callable[[], bool], timeout_ms: int) -> None:
    clock = real_runtime().clock
    end_ms = clock.monotonic_ms() + timeout_ms
    while not is_true() and clock.monotonic_ms() < end_ms:
        Parked().sleep(_POLL_MS)
