"""Sessions over event time: closed by the watermark, kept over runs; late rows are dead letters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from embedlog.spark.pipeline.kit import PipelineKit
from tests.spark.pipeline.support import START_MS, plain, project

pytestmark = pytest.mark.slow
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "user", "type": "string", "nullable": False},
        {"name": "at", "type": "timestamp", "nullable": False},
    ],
}


def kit(spark: Any, tmp_path: Path) -> PipelineKit:
    (tmp_path / "click.json").write_text(json.dumps(SCHEMA))
    made = project(
        tmp_path,
        decode={"format": "json", "schema": "click.json"},
        watermark={"column": "at", "delay": "10s"},
        transform=[
            {"name": "visits", "sessions": {"key": ["user"], "gap": "30s",
             "aggregates": {"clicks": "count(*)"}}},
        ],
    )  # fmt: skip
    return PipelineKit(spark, made, tmp_path / "kit")


def click(user: str, at_s: int) -> bytes:
    return json.dumps({"user": user, "at": START_MS + at_s * 1000}).encode()


def seen(rows: list[dict[str, Any]]) -> list[Any]:
    return [
        (row["user"], int(row["session_start"].timestamp() - START_MS / 1000),
         int(row["session_end"].timestamp() - START_MS / 1000), row["clicks"])
        for row in sorted(rows, key=lambda row: (row["session_start"], row["user"]))
    ]  # fmt: skip


def test_a_session_is_given_out_once_when_the_watermark_has_passed_it(
    spark: Any, tmp_path: Path
) -> None:
    made = kit(spark, tmp_path)
    assert made.run_once([click("a", 0), click("a", 20), click("b", 5)]) == []
    # 20 + the gap of 30 + the delay of 10: only a time greater than 60 closes the session.
    assert seen(made.run_once([click("b", 60)])) == [("b", 5, 5, 1)]
    assert seen(made.run_once([click("a", 51), click("c", 61)])) == [
        ("a", 0, 20, 2),
        ("b", 5, 5, 1),
    ]
    rows = made.run_once([click("a", 300)])
    assert seen(rows)[2:] == [("a", 51, 51, 1), ("b", 60, 60, 1), ("c", 61, 61, 1)]
    assert made.dead_letters == []


def test_late_rows_are_dead_letters_and_counted(spark: Any, tmp_path: Path) -> None:
    made = kit(spark, tmp_path)
    made.run_once([click("a", 100)])
    made.run_once([click("a", 89), click("a", 90)])
    assert plain(made.dead_letters, "offset", "error_stage") == [(1, "late")]
    assert "before the watermark 2026-01-01 00:01:30" in made.dead_letters[0]["error"]
    assert seen(made.run_once([click("z", 1000)])) == [("a", 90, 100, 2)]


@pytest.mark.parametrize("name", ["visits staged", "state kept"])
def test_killed_at_a_step_no_session_is_lost_doubled_or_cut(
    spark: Any, tmp_path: Path, name: str
) -> None:
    made = kit(spark, tmp_path)
    made.run_once([click("a", 0), click("b", 1)])
    step = "orders: staged" if name == "visits staged" else name
    with made.killed_at(step):
        made.run_once([click("a", 10), click("b", 100), click("b", 0)])
    rows = made.run_once([click("c", 500), click("a", 80)])
    assert seen(rows) == [("a", 0, 10, 2), ("b", 0, 1, 2), ("b", 100, 100, 1)]
    assert plain(made.dead_letters, "offset", "error_stage") == [(6, "late")]
