"""Lag, Spark's progress, totals that count a batch once, and Prometheus."""

from __future__ import annotations

import json
from urllib.request import urlopen

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("prometheus_client")

from embedlog.spark.pipeline.batch.report import BatchReport, Totals
from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.running.metrics import Progress, PrometheusMetrics, lag, parse_progress
from embedlog.spark.pipeline.running.positions import offsets_json, parse_offsets


@pytest.mark.parametrize(
    ("end", "latest", "found"),
    [
        ({"t": {"0": 10}}, {"t": {"0": 15, "1": 3}}, 8),
        ({"t": {"0": 10}}, {"t": {"0": 10}}, 0),
        ({"t": {"0": 10}}, {"t": {"0": 5}}, 0),
        (None, {"t": {"0": 5}}, -1),
        ({"logOffset": 1}, {"logOffset": 2}, -1),
    ],
)
def test_lag_is_what_no_batch_was_given(end: object, latest: object, found: int) -> None:
    assert lag(end, latest) == found


def test_lag_in_seconds_is_the_age_of_the_newest_record_while_it_lags() -> None:
    source = {"endOffset": {"t": {"0": 1}}, "latestOffset": {"t": {"0": 3}}}
    text = {"batchId": 4, "numInputRows": 5, "processedRowsPerSecond": 2.5, "sources": [source],
            "durationMs": {"triggerExecution": 70}}  # fmt: skip
    found = parse_progress(json.dumps(text), newest_ms=1000, now_ms=4500)
    assert (found.lag_records, found.lag_seconds, found.batch_ms) == (2, 3.5, 70)
    source["latestOffset"] = source["endOffset"]
    found = parse_progress(json.dumps(text), newest_ms=1000, now_ms=4500)
    assert (found.lag_records, found.lag_seconds) == (0, 0.0)


def test_a_batch_that_comes_again_counts_once() -> None:
    totals = Totals()
    for version in (0, 1, 1, 0):
        totals.add(BatchReport("q", version, read=2, errors={"decode": 1}, newest_ms=version))
    assert (totals.read, totals.errors, totals.newest_ms) == (4, {"decode": 2}, 1)
    totals.add(BatchReport("another query", 0, read=1))
    assert (totals.read, totals.last_version) == (5, 0)
    assert Totals(**json.loads(json.dumps(totals.as_dict()))) == totals


@pytest.mark.slow
def test_prometheus_reads_totals_and_lag() -> None:
    metrics = PrometheusMetrics("orders", 0)
    try:
        metrics.count(Totals("q", 3, read=10, errors={"decode": 2}, written={"table": 8}))
        metrics.progress(Progress(3, 10, 5.0, 250, 7, 1.5, {}))
        with urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        assert 'embedlog_pipeline_records_read{pipeline="orders"} 10.0' in lines
        assert 'embedlog_pipeline_dead_letters{pipeline="orders",stage="decode"} 2.0' in lines
        assert 'embedlog_pipeline_lag_records{pipeline="orders"} 7.0' in lines
        assert 'embedlog_pipeline_batch_seconds{pipeline="orders"} 0.25' in lines
        with pytest.raises(ProjectError, match=f"prometheus_port {metrics.port}"):
            PrometheusMetrics("orders", metrics.port)
    finally:
        metrics.close()


def test_offsets_are_spark_s_json() -> None:
    positions = {("b", 10): 1, ("b", 2): 5, ("a", 0): 7}
    text = '{"a": {"0": 7}, "b": {"2": 5, "10": 1}}'
    assert offsets_json(positions) == text
    assert parse_offsets(text) == positions
    for wrong in ("first", "[]", '{"a": 1}', '{"a": {"x": 1}}'):
        with pytest.raises(ProjectError, match="expected offsets"):
            parse_offsets(wrong)
