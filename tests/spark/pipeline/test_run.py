"""A pipeline end to end: a stream of records to a Parquet table, through the runner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from embedlog.spark.pipeline import read_table
from embedlog.spark.pipeline.errors import PipelineFailed, ProjectError, QualityFailed
from embedlog.spark.pipeline.kit import KilledError
from embedlog.spark.pipeline.running.runner import Runner
from embedlog.spark.pipeline.running.state import StateDirectory
from tests.spark.pipeline.support import Stream, plain, project, record

pytestmark = pytest.mark.slow
RULES = [
    {"name": "positive", "expect": "amount > 0", "action": "drop"},
    {"name": "small", "expect": "amount < 100", "action": "warn"},
]


def rows(path: Path, **arguments: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_table(path, **arguments).to_arrow().to_pylist()
    return found


def test_good_rows_and_dead_letters_are_counted_and_written_once(
    spark: Any, tmp_path: Path
) -> None:
    made = project(
        tmp_path,
        rule=RULES,
        transform=[{"name": "doubled", "sql": "SELECT *, amount * 2 AS twice FROM input"}],
    )
    stream = Stream(spark, tmp_path)
    stream.put(
        record(0, {"id": 1, "amount": 2.5}),
        record(1, {"id": 2, "amount": 200}),
        record(2, b"nonsense"),
        record(3, {"id": "3"}),
        record(4, {"id": 4, "amount": -1, "extra": 1}),
    )
    totals = Runner(spark, made, read=stream.read).run()
    assert (totals.read, totals.dead, totals.unknown) == (5, 3, 1)
    assert totals.broken == {"positive": 1, "small": 1}
    assert totals.errors == {"decode": 1, "schema": 1, "rule": 1}
    stream.put(record(5, {"id": 5, "amount": 1}))
    totals = Runner(spark, made, read=stream.read).run()
    assert (totals.read, totals.written) == (6, {"orders": 3})
    table = tmp_path / "tables/orders"
    assert plain(rows(table), "id", "twice", "_offset") == [(1, 5.0, 0), (2, 400.0, 1), (5, 2.0, 5)]
    letters = rows(table, dead_letters=True)
    assert plain(letters, "offset", "error_stage", "error_rule", "value", "attempt") == [
        (2, "decode", None, b"nonsense", 1),
        (3, "schema", None, b'{"id": "3"}', 1),
        (4, "rule", "positive", b'{"id": 4, "amount": -1, "extra": 1}', 1),
    ]


def test_a_rule_that_fails_stops_the_pipeline_and_nothing_is_written(
    spark: Any, tmp_path: Path
) -> None:
    made = project(tmp_path, rule=[{"name": "paid", "expect": "amount > 0", "action": "fail"}])
    stream = Stream(spark, tmp_path)
    stream.put(record(0, {"id": 1, "amount": 1}))
    Runner(spark, made, read=stream.read).run()
    stream.put(record(1, {"id": 2, "amount": 1}), record(2, {"id": 3}))
    for _ in range(2):
        with pytest.raises(QualityFailed, match="'paid' .* 1 rows.* orders-0 offset 2"):
            Runner(spark, made, read=stream.read).run()
    assert plain(rows(tmp_path / "tables/orders"), "id") == [(1,)]
    assert StateDirectory(made.state).totals().read == 1


def test_rules_on_the_output_reject_rows_with_their_coordinates(spark: Any, tmp_path: Path) -> None:
    made = project(
        tmp_path,
        transform=[{"name": "half", "sql": "SELECT id, amount / 2 AS half, _topic, _offset "
                    "FROM input"}],
        rule=[{"name": "whole", "expect": "half = floor(half)", "action": "drop", "on": "output"}],
    )  # fmt: skip
    stream = Stream(spark, tmp_path)
    stream.put(record(0, {"id": 1, "amount": 2}), record(1, {"id": 2, "amount": 3}))
    totals = Runner(spark, made, read=stream.read).run()
    assert (totals.dead, totals.broken) == (1, {"whole": 1})
    table = tmp_path / "tables/orders"
    assert plain(rows(table), "id", "half") == [(1, 1.0)]
    (letter,) = rows(table, dead_letters=True)
    assert letter["value"] == b'{"id":2,"half":1.5}'
    assert (letter["topic"], letter["offset"], letter["partition"]) == ("orders", 1, None)


@pytest.mark.parametrize("step", ["orders: staged", "table: after the commit", "before the count"])
def test_killed_at_a_step_a_batch_is_in_the_table_once(
    spark: Any, tmp_path: Path, step: str
) -> None:
    made = project(tmp_path, rule=RULES)
    stream = Stream(spark, tmp_path)
    stream.put(record(0, {"id": 0, "amount": 1}))
    stream.put(record(1, {"id": 1, "amount": 1}), record(2, b"bad"))
    count = 0

    def reached(name: str) -> None:
        nonlocal count
        count += name == step
        if name == step and count == 2:
            raise KilledError(name)

    with pytest.raises(KilledError):
        Runner(spark, made, read=stream.read, reached=reached).run()
    stream.put(record(3, {"id": 3, "amount": 1}))
    totals = Runner(spark, made, read=stream.read).run()
    table = tmp_path / "tables/orders"
    assert plain(rows(table), "id") == [(0,), (1,), (3,)]
    assert plain(rows(table, dead_letters=True), "offset") == [(2,)]
    assert (totals.read, totals.dead) == (4, 1)
    live = {Path(p) for d in (False, True) for p in read_table(table, dead_letters=d).paths}
    assert set(table.rglob("*.parquet")) == live, "uncommitted files are swept"


def test_sql_that_cannot_be_analysed_names_its_transform(spark: Any, tmp_path: Path) -> None:
    from embedlog.spark.pipeline.commands.verbs import validate

    made = project(tmp_path, transform=[{"name": "wrong", "sql": "SELECT nope FROM input"}])
    with pytest.raises(ProjectError, match="transform 'wrong'.*nope"):
        validate(made, spark)
    made = project(tmp_path, rule=[{"name": "odd", "expect": "amount", "action": "warn"}])
    with pytest.raises(ProjectError, match="rule 'odd'.*double.*boolean"):
        validate(made, spark)
    assert validate(project(tmp_path), spark) == [
        "orders: id bigint, amount double, _topic string, _partition int, _offset bigint, "
        "_timestamp timestamp"
    ]


def test_what_spark_raises_in_a_batch_is_one_line(spark: Any, tmp_path: Path) -> None:
    made = project(
        tmp_path, transform=[{"name": "t", "sql": "SELECT id, 1 / (id - 1) AS x FROM input"}]
    )
    stream = Stream(spark, tmp_path)
    stream.put(record(0, {"id": 1}))
    with pytest.raises(PipelineFailed, match="DIVIDE_BY_ZERO") as caught:
        Runner(spark, made, read=stream.read).run()
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "tables/orders/_log").exists()
