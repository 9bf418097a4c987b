"""The example projects do what they promise, over the logs that their own programs write."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import embedlog
from embedlog.cli import main
from embedlog.spark.pipeline import load
from embedlog.spark.pipeline.commands.sample import SampleRecord, last_records
from embedlog.spark.pipeline.kit import PipelineKit
from tests.spark.pipeline.support import plain

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]


def example(name: str, tmp_path: Path) -> Path:
    """A copy of an example with its log."""
    directory = tmp_path / name
    shutil.copytree(ROOT / "examples/pipelines" / name, directory)
    (program,) = [each.name for each in directory.glob("produce_*.py")]
    run(directory, program)
    return directory


def run(directory: Path, program: str) -> str:
    done = subprocess.run(
        [sys.executable, str(directory / program)], capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def records(directory: Path) -> list[SampleRecord]:
    found = last_records(load(directory).source, 10_000)
    return sorted(found, key=lambda each: (each.partition, each.offset))


def test_clicks_become_sessions_and_late_ones_dead_letters(spark: Any, tmp_path: Path) -> None:
    directory = example("clickstream", tmp_path)
    kit = PipelineKit(spark, directory, tmp_path / "kit")
    given = records(directory)
    for batch in (given[:6], given[6:9], given[9:]):
        kit.run_once(batch)
    names = ("user", "clicks", "entry", "exit")
    # Another click of eve may follow her last one; her session at 11:30 is over.
    assert plain(kit.rows("sessions"), *names) == [
        ("ada", 1, "/", "/"),
        ("ada", 2, "/", "/cart"),
        ("bob", 1, "/help", "/help"),
        ("eve", 1, "/", "/"),
    ]
    assert plain(kit.dead_letters, "offset", "error_stage", "error_rule") == [
        (4, "rule", "page is a path"),
        (6, "late", None),
        (7, "late", None),
        (9, "decode", None),
    ]


def test_changes_become_a_table_and_its_history(spark: Any, tmp_path: Path) -> None:
    directory = example("cdc", tmp_path)
    kit = PipelineKit(spark, directory, tmp_path / "kit")
    given = records(directory)
    kit.run_once(given[:2])
    totals = kit.run_once(given[2:]) and kit.restart()
    assert plain(kit.rows("customers"), "id", "city") == [(1, "Basel")]
    history = kit.rows("history", hidden=True)
    assert [
        (row["id"], row["city"], row["_valid_from"].day, row["_valid_to"] and row["_valid_to"].day)
        for row in sorted(history, key=lambda row: (row["id"], row["_valid_from"]))
    ] == [(1, "Bern", 1, 3), (1, "Basel", 3, None), (2, None, 2, 4)]
    assert totals.broken == {"has an address": 1}


def test_an_archive_is_queried_by_duckdb_and_restored(spark: Any, tmp_path: Path) -> None:
    directory = example("archive", tmp_path)
    log, table, target = (str(directory / name) for name in ("log", "tables/events", "restored"))
    assert main(["pipeline", "archive", table, "--path", log, "--topic", "events"]) == 0
    assert run(directory, "query.py").splitlines() == [
        "2026-01-01: 100 events, up to 99",
        "2026-01-02: 100 events, up to 199",
        "2026-01-03: 100 events, up to 299",
    ]
    assert main(["pipeline", "restore", table, "--path", target]) == 0
    assert everything(directory / "restored") == everything(directory / "log")


def everything(path: Path) -> list[Any]:
    with embedlog.open_reader(path) as reader:
        return [
            (number, record.offset, record.timestamp, record.key and bytes(record.key),
             record.value and bytes(record.value), [(k, bytes(v)) for k, v in record.headers])
            for number in reader.partitions("events")
            for record in reader.partition("events", number).records()
        ]  # fmt: skip
