"""A profile counts what a reader of all records would count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import embedlog
from embedlog.cli import main
from embedlog.errors import ConfigError, UnknownTopicOrPartition
from embedlog.spark.jobs.profile import profile

FIRST_MS = 1_700_000_040_000
SIZES = (0, 1, 2, 3, 4, 100)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Partition 0: 60 records, all but two 10 s after the one before; 1: 20 records; 2: none."""
    with embedlog.open(tmp_path / "log", durability="os") as cluster:
        cluster.create_topic("t", 3)
        with cluster.producer(linger_ms=50, compression_type="gzip") as producer:
            for partition, count in ((0, 60), (1, 20)):
                for n in range(count):
                    producer.send(
                        "t",
                        None if n % 10 == 9 else b"x" * SIZES[n % 6],
                        key=None if n % 3 == 0 else b"k%d" % (n % 4),
                        partition=partition,
                        timestamp_ms=FIRST_MS + 10_000 * (n - 5 if n in (20, 40) else n),
                    )
            producer.flush()
    return tmp_path / "log"


@pytest.mark.slow
def test_records_are_counted_by_what_they_are(spark: Any, log: Path) -> None:
    report = profile(spark, str(log))
    first, second, empty = report.rows
    assert (first["records"], second["records"], empty["records"]) == (60, 20, 0)
    assert (first["first_offset"], first["last_offset"]) == (0, 59)
    assert first["null_keys"] == 20
    assert first["null_values"] == 6
    assert first["distinct_keys"] == 4
    assert first["backwards"] == 2
    assert (first["first_ms"], first["last_ms"]) == (FIRST_MS, FIRST_MS + 590_000)
    assert first["per_minute"] == pytest.approx(60 / (590 / 60), abs=0.001)
    # Record 20 falls into the minute of record 15, and record 40 into the minute of 35.
    assert first["busiest_minute"] == 7
    sizes = [SIZES[n % 6] for n in range(60) if n % 10 != 9]
    limits = {1: 0, 2: 0, 4: 0, 8: 0, 128: 0}
    for size in sizes:
        limits[next(limit for limit in limits if size < limit)] += 1
    assert first["value_sizes"] == limits
    assert first["value_bytes"] == sum(sizes)
    assert first["codecs"] == ["gzip"]
    payload = first["value_bytes"] + first["key_bytes"]
    assert first["compression_ratio"] == round(payload / first["stored_bytes"], 3)
    segments = sum(each.stat().st_size for each in log.glob("t-*/*.log"))
    assert report.counts["stored_bytes"] == segments
    assert report.counts["skew"] == round(60 * 3 / 80, 3)


@pytest.mark.slow
def test_headers_alone_give_the_same_counts(
    spark: Any, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "profile", str(log), "--headers-only", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    whole = profile(spark, str(log))
    for name in ("records", "batches", "stored_bytes", "skew", "partitions"):
        assert report["counts"][name] == whole.counts[name]
    assert "distinct_keys" not in report["rows"][0]
    assert report["rows"][0]["last_ms"] == FIRST_MS + 590_000


def test_a_topic_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "log"):
        pass
    none: Any = None
    with pytest.raises(UnknownTopicOrPartition, match="'nope'"):
        profile(none, str(tmp_path / "log"), ["nope"])
    with pytest.raises(ConfigError, match="no topic to describe"):
        profile(none, str(tmp_path / "log"))
