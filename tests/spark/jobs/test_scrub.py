"""A scrub finds all damage, and need not read sound segments again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from embedlog.cli import main
from embedlog.errors import ConfigError, UnknownTopicOrPartition
from embedlog.spark.jobs.scrub import scrub
from tests.spark.jobs.logs import segmented


@pytest.fixture
def log(tmp_path: Path) -> Path:
    with segmented(tmp_path / "log"):
        pass
    return tmp_path / "log"


def _rot(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    stat = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.slow
def test_a_bit_that_rotted_is_found_with_its_rule(
    spark: Any, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = scrub(spark, str(log), ["t"])
    assert report.counts["findings"] == 0
    assert report.counts["segments"] == 6
    assert report.counts["bytes"] == sum(each.stat().st_size for each in log.glob("t-*/*.log"))
    segment = log / "t-1" / f"{12:020d}.log"
    _rot(segment)
    told: list[tuple[int, int]] = []
    report = scrub(spark, str(log), progress=lambda *done: told.append(done))
    assert report.counts["by_rule"] == {"checksum": 1, "offsets": 1}
    row, following = report.rows
    assert "begins at offset 24, the segment before ends" in following["reason"]
    assert (row["topic"], row["partition"], row["file"]) == ("t", 1, str(segment))
    assert told[-1][0] == told[-1][1] > 0
    assert main(["pipeline", "scrub", str(log), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["counts"]["findings"] == 2
    assert main(["pipeline", "scrub", str(log), "--topic", "nope"]) == 2


@pytest.mark.slow
def test_what_was_sound_is_read_again_when_it_changed_or_its_time_has_come(
    spark: Any, log: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    first = scrub(spark, str(log), ["t"], state=state)
    assert first.counts["skipped"] == 0
    second = scrub(spark, str(log), ["t"], state=state)
    assert second.counts["skipped"] == 4
    assert second.counts["batches"] == first.counts["batches"]
    assert 0 < second.counts["bytes"] < first.counts["bytes"]
    _rot(log / "t-1" / f"{12:020d}.log")
    assert scrub(spark, str(log), ["t"], state=state).counts["findings"] == 0
    third = scrub(spark, str(log), ["t"], state=state, recheck_ms=0)
    assert third.counts["findings"] == 2
    assert third.counts["skipped"] == 0
    # Damaged segments are not remembered.
    again = scrub(spark, str(log), ["t"], state=state)
    assert again.counts["findings"] == 2
    assert again.counts["skipped"] == 3
    state.write_bytes(b"no state")
    damaged = scrub(spark, str(log), ["t"], state=state)
    assert damaged.counts["skipped"] == 0
    assert {row["file"] for row in damaged.rows} > {str(state)}


def test_what_is_not_there_is_refused(log: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a directory"):
        scrub(None, str(tmp_path / "nothing"))  # type: ignore[arg-type]
    with pytest.raises(UnknownTopicOrPartition, match="'nope'"):
        scrub(None, str(log), ["nope"])  # type: ignore[arg-type]
