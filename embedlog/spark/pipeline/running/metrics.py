"""Progress of a pipeline as Spark reports it, and metrics for Prometheus.

Lag in records is the count of records that no batch has read; lag in seconds is the age of the
newest record read, while there is lag in records. Metrics carry the pipeline's name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from embedlog.errors import TimedOut
from embedlog.spark.offsets import is_id
from embedlog.spark.pipeline.batch.report import Totals
from embedlog.spark.pipeline.errors import ProjectError


class Progress(NamedTuple):
    """One batch as Spark saw it. Times are in milliseconds; -1 means unknown."""

    batch: int
    rows: int
    rows_per_second: float
    batch_ms: int
    lag_records: int
    lag_seconds: float
    durations_ms: Mapping[str, int]


def parse_progress(text: str, *, newest_ms: int, now_ms: int) -> Progress:
    """Parse the progress in Spark's JSON. `newest_ms` is the time of the newest record read."""
    found = json.loads(text)
    lags = [lag(each.get("endOffset"), each.get("latestOffset")) for each in found["sources"]]
    records = -1 if -1 in lags or not lags else sum(lags)
    seconds = 0.0
    if records < 0:
        seconds = -1.0
    elif records and newest_ms >= 0:
        seconds = max(0, now_ms - newest_ms) / 1000
    durations = found.get("durationMs", {})
    return Progress(
        batch=found["batchId"],
        rows=found["numInputRows"],
        rows_per_second=float(found.get("processedRowsPerSecond") or 0),
        batch_ms=durations.get("triggerExecution", -1),
        lag_records=records,
        lag_seconds=seconds,
        durations_ms=durations,
    )


def lag(end: Any, latest: Any) -> int:
    """Return the records between two positions, -1 if a source has no offsets by partition."""
    if not isinstance(end, Mapping) or not isinstance(latest, Mapping):
        return -1
    count = 0
    for topic, partitions in latest.items():
        if not isinstance(partitions, Mapping):
            return -1
        done = end.get(topic, {})
        for partition, offset in partitions.items():
            if is_id(partition):
                continue
            count += max(0, int(offset) - int(done.get(partition, 0)))
    return count


class PrometheusMetrics:
    """Serves metrics on loopback at `port` (0 for any free port) until closed."""

    def __init__(self, name: str, port: int) -> None:
        try:
            import prometheus_client as prometheus
        except ImportError:
            raise ProjectError(
                "prometheus-client is missing: pip install 'embedlog[pipeline]'"
            ) from None
        registry = prometheus.CollectorRegistry()
        self._name = name

        def gauge(metric: str, text: str, *labels: str) -> Any:
            full = f"embedlog_pipeline_{metric}"
            return prometheus.Gauge(full, text, ["pipeline", *labels], registry=registry)

        self._read = gauge("records_read", "Records read")
        self._batch = gauge("batch", "The last batch that is done")
        self._written = gauge("rows_written", "Rows written, by sink", "sink")
        self._letters = gauge("dead_letters", "Dead letters, by stage", "stage")
        self._broken = gauge("rule_broken", "Rows that broke a rule", "rule")
        self._lag = gauge("lag_records", "Records that no batch has read")
        self._lag_seconds = gauge("lag_seconds", "Age of the newest record read, while it lags")
        self._rate = gauge("rows_per_second", "Rows of the last batch a second")
        self._batch_seconds = gauge("batch_seconds", "Duration of the last batch")
        try:
            self._server, self._thread = prometheus.start_http_server(
                port, addr="127.0.0.1", registry=registry
            )
        except OSError as error:
            raise ProjectError(f"metrics.prometheus_port {port}: {error}") from None
        self.port: int = self._server.server_port

    def progress(self, progress: Progress) -> None:
        self._lag.labels(self._name).set(progress.lag_records)
        self._lag_seconds.labels(self._name).set(progress.lag_seconds)
        self._rate.labels(self._name).set(progress.rows_per_second)
        self._batch_seconds.labels(self._name).set(progress.batch_ms / 1000)

    def count(self, totals: Totals) -> None:
        self._read.labels(self._name).set(totals.read)
        self._batch.labels(self._name).set(totals.last_version)
        for family, counts in (
            (self._written, totals.written),
            (self._letters, totals.errors),
            (self._broken, totals.broken),
        ):
            for label, count in counts.items():
                family.labels(self._name, label).set(count)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
        if self._thread.is_alive():
            raise TimedOut("the server of the metrics does not end")
