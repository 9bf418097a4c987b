"""Rewriting as a job on Spark, with an owner and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import embedlog
from embedlog.errors import ConfigError, UnknownTopicOrPartition
from embedlog.runtime import real_runtime
from embedlog.spark.jobs.rewrite import rewrite
from embedlog.storage.verification.directory import DirectoryCheck
from tests.spark.jobs.logs import read, segmented

KEYS = [b"k1", b"k14", b"k32"]


def _is_sound(path: Path) -> bool:
    return not list(DirectoryCheck(real_runtime().files, str(path), lambda _: None).findings())


@pytest.mark.slow
@pytest.mark.parametrize("is_owned", [True, False])
def test_keys_are_erased_where_segments_are_closed(
    spark: Any, tmp_path: Path, is_owned: bool
) -> None:
    with segmented(tmp_path / "log") as cluster:
        before = [read(tmp_path / "log", partition) for partition in range(2)]
        if not is_owned:
            cluster.close()
        told: list[tuple[int, int]] = []
        report = rewrite(
            spark,
            str(tmp_path / "log"),
            ["t"],
            keys=KEYS,
            compression="zstd",
            progress=lambda *done: told.append(done),
        )
        after = [read(tmp_path / "log", partition) for partition in range(2)]
    for found, known in zip(after, before, strict=True):
        assert found == [row for row in known if row[1] not in KEYS or row[0] >= 24]
    assert report.counts["erased"] == 4
    assert report.counts["rewritten"] == 4
    assert report.counts["refused"] == 0
    assert [row["left_offsets"] for row in report.rows] == [[32], [32]]
    assert told[-1][0] == told[-1][1] > 0
    assert _is_sound(tmp_path / "log")
    assert not (tmp_path / "log" / ".exchange").exists()


@pytest.mark.slow
def test_a_roll_lets_nothing_be_left(spark: Any, tmp_path: Path) -> None:
    with segmented(tmp_path / "log"):
        report = rewrite(spark, str(tmp_path / "log"), keys=KEYS, roll=True)
        assert report.counts["left"] == 0
        assert report.counts["erased"] == 6
        assert not [row for row in read(tmp_path / "log") if row[1] in KEYS]
        again = rewrite(spark, str(tmp_path / "log"), keys=KEYS)
    assert again.counts["rewritten"] == again.counts["erased"] == 0


@pytest.mark.slow
def test_of_each_key_the_last_committed_record_stays(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "log"
    with embedlog.open(path, durability="os", background=True) as cluster:
        cluster.create_topic("t", 1)
        with cluster.producer(linger_ms=0) as producer:
            for number in range(30):
                key = None if number % 10 == 9 else b"k%d" % (number % 4)
                producer.send("t", b"%d" % number, key=key, partition=0).result()
        report = rewrite(spark, str(path), compact=True, roll=True)
        found = read(path)
    latest = {b"k%d" % (n % 4): n for n in range(30) if n % 10 != 9}
    expected = {*latest.values(), 9, 19, 29}
    assert [offset for offset, _, _ in found] == sorted(expected)
    assert report.counts["superseded"] == 30 - len(expected)


def test_what_cannot_be_done_is_refused_before_anything_is(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "log") as cluster:
        cluster.create_topic("t", 1)
    path = str(tmp_path / "log")
    with pytest.raises(ConfigError, match="nothing is to be done"):
        rewrite(None, path)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="compression='brotli'"):
        rewrite(None, path, compression="brotli")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="coordinator"):
        rewrite(None, path, ["__consumer_offsets"], compact=True)  # type: ignore[arg-type]
    with pytest.raises(UnknownTopicOrPartition, match="'nope'"):
        rewrite(None, path, ["nope"], compact=True)  # type: ignore[arg-type]
