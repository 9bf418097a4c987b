"""Spark's streaming listener: writes each progress as a line of JSON, and as metrics."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from embedlog.spark.pipeline.project import Project
from embedlog.spark.pipeline.running.metrics import Progress, PrometheusMetrics, parse_progress
from embedlog.spark.pipeline.running.state import StateDirectory


class ProgressListener(StreamingQueryListener):
    """Listens to the query of one pipeline. Spark calls it from a thread of its own."""

    def __init__(
        self,
        project: Project,
        state: StateDirectory,
        metrics: PrometheusMetrics | None,
        on_progress: Callable[[Progress], None],
    ) -> None:
        super().__init__()
        self._name = project.name
        self._state = state
        self._metrics = metrics
        self._on_progress = on_progress
        self._ended: set[str] = set()

    def has_ended(self, run_id: str) -> bool:
        """Whether Spark has reported the end of a run, which is its last report."""
        return run_id in self._ended

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Ignored: the runner notes the start."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        if event.progress.name != self._name:
            return
        newest_ms = self._state.totals().newest_ms
        now_ms = self._state.now_ms()
        progress = parse_progress(event.progress.json, newest_ms=newest_ms, now_ms=now_ms)
        self._state.note_progress(progress._asdict())
        if self._metrics is not None:
            self._metrics.progress(progress)
        self._on_progress(progress)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self._ended.add(str(event.runId))
