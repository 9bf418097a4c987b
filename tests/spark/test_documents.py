"""The documents' code for Spark runs, and runs again with one line changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import embedlog
from tests.spark.conftest import KAFKA
from tests.support.tools import need_jars

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = ROOT / "docs" / "spark.md"
FIRST = 'fmt, place = "embedlog", {"path": "data"}\n'

pytestmark = pytest.mark.slow


def _lines(number: int = 0) -> str:
    """Return a block of Python of the chapter."""
    chapter = CHAPTER.read_text().split("## Read by Spark\n")[1].split("\n## ")[0]
    return chapter.split("```python\n")[1 + number].split("```")[0]


def test_the_same_lines_read_a_directory_and_a_cluster(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_jars(KAFKA)
    monkeypatch.chdir(tmp_path)
    lines = _lines()
    assert FIRST in lines
    assert lines in (ROOT / "README.md").read_text()
    with embedlog.open(tmp_path / "data") as cluster:
        cluster.create_topic("events", 2)
        with cluster.producer() as producer:
            for number in range(30):
                producer.send("events", b"event %d" % (number % 3))
        address = cluster.listen("127.0.0.1", 0).address
        # Spark looks for a directory where it was started, so the test gives the whole path.
        paths = {"path": str(tmp_path / "data")}
        expected = {(f"event {number}", 10) for number in range(3)}
        for fmt, place in (
            ("embedlog", paths),
            ("kafka", {"kafka.bootstrap.servers": address}),
            ("embedlog", {"kafka.bootstrap.servers": address}),
        ):
            names: dict[str, Any] = {}
            exec(lines.replace(FIRST, f"fmt, place = {fmt!r}, {place!r}\n"), names)
            assert {tuple(row) for row in names["counts"].collect()} == expected


def test_the_streams_lines_go_on_at_their_checkpoint_also_with_the_other_format(
    spark: Any, tmp_path: Path
) -> None:
    need_jars(KAFKA)
    table, lines = str(tmp_path / "table"), _lines(1)
    for name in ("table", "checkpoint"):
        assert lines.count(f'"{name}")') == 1
        lines = lines.replace(f'"{name}")', f'"{tmp_path / name}")')
    with embedlog.open(tmp_path / "data") as cluster:
        cluster.create_topic("events", 2)
        address = cluster.listen("127.0.0.1", 0).address
        sent = []
        for fmt, place in (
            ("embedlog", {"path": str(tmp_path / "data")}),
            ("kafka", {"kafka.bootstrap.servers": address}),
            ("embedlog", {"path": str(tmp_path / "data")}),
        ):
            with cluster.producer() as producer:
                for _ in range(5):
                    sent.append(b"event %d" % len(sent))
                    producer.send("events", sent[-1])
            exec(lines, {"spark": spark, "fmt": fmt, "place": place})
            found = [bytes(row.value) for row in spark.read.parquet(table).collect()]
            assert sorted(found) == sorted(sent)
