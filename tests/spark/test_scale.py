"""Workers hold a batch, not a log: 200 MB in four partitions, each read by one task."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.conftest import need_spark

pytest.importorskip("pyspark")

from tests.benchmarks.scale import fill, measure

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

COUNT, SIZE = 200_000, 1_000
PER_TRIGGER = 20_000
SCRUB_MAX, STREAM_MAX = 100_000_000, 200_000_000
"""Limit for one worker. 66 MB, and 117 to 173 MB, were seen. Python and Arrow take 66; a stream has
up to three Arrow batches more, each with the bytes and columns that it is made of. One of two
workers reads 100 MB in all, so a worker that kept its records would exceed the limit.
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_spark()
    path = tmp_path_factory.mktemp("scale") / "log"
    assert fill(path, COUNT, SIZE) > COUNT * SIZE
    return path


def test_a_scrub_reads_all_and_holds_little(log: Path, tmp_path: Path) -> None:
    result = measure("scrub", log, tmp_path)
    assert result.value == 0
    assert 0 < result.peaks["worker"].own < SCRUB_MAX
    segment = next(log.glob("t-2/*.log"))
    with segment.open("r+b") as file:
        file.seek(segment.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
    try:
        assert measure("scrub", log, tmp_path).value > 0
    finally:
        with segment.open("r+b") as file:
            file.seek(segment.stat().st_size // 2)
            file.write(bytes([byte]))


def test_a_stream_counts_every_record_and_holds_a_micro_batch(log: Path, tmp_path: Path) -> None:
    result = measure("stream", log, tmp_path, PER_TRIGGER)
    assert result.value == COUNT
    assert 0 < result.peaks["worker"].own < STREAM_MAX
