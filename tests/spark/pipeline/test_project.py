"""The project file is checked as a whole before a run, and errors name the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from embedlog.spark.pipeline import load
from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.project import resolve
from tests.spark.pipeline.support import project

TOML = """
[pipeline]
name = "orders"
[source]
topics = ["orders"]
path = "log"
[source.options]
maxOffsetsPerTrigger = 100
[decode]
format = "json"
schema = "order.json"
[[transform]]
name = "paid"
sql = "SELECT * FROM input WHERE amount > 0"
[[rule]]
name = "has an amount"
expect = "amount IS NOT NULL"
action = "drop"
[[sink]]
name = "orders"
type = "parquet"
path = "tables/orders"
[trigger]
every = "10s"
"""


def test_a_toml_file_and_a_python_file_say_the_same(tmp_path: Path) -> None:
    import tomllib

    (tmp_path / "pipeline.toml").write_text(TOML)
    (tmp_path / "same.py").write_text(f"PROJECT = {tomllib.loads(TOML)!r}\n")
    found = load(tmp_path)
    assert found == load(tmp_path / "same.py")
    assert found.every_ms == 10_000
    assert found.source.options == {"maxOffsetsPerTrigger": "100"}
    assert found.sinks[0].path == str(tmp_path / "tables/orders")
    assert found.state == str(tmp_path / ".pipeline/orders")


def sinks(*paths: str) -> list[dict[str, Any]]:
    return [{"name": n, "type": "parquet", "path": p} for n, p in zip("ab", paths, strict=False)]


def to_topic(topic: str, **more: Any) -> dict[str, Any]:
    return {"name": "t", "type": "topic", "topic": topic, **more}


def iceberg(name: str) -> dict[str, Any]:
    options = {"catalog.type": "rest", "catalog.uri": "http://localhost"}
    return {"name": name, "type": "iceberg", "path": name, "options": options}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"sinks": []}, r"unknown key `sinks`; did you mean `sink`\?"),
        ({"sink": []}, "no \\[\\[sink\\]\\]"),
        ({"source": {"topics": [], "path": "x"}}, "topics = \\[\\]"),
        ({"source": {"topics": ["a"]}}, "`path` or options"),
        ({"source": {"topics": ["a"], "format": "kafka"}}, "bootstrap.servers"),
        ({"source": {"topics": ["a"], "path": "x", "options": {"subscribe": "b"}}}, "own to set"),
        ({"decode": {"format": "xml"}}, "one of json, avro"),
        ({"decode": {"format": "json"}}, "`schema` is missing"),
        ({"decode": {"format": "avro", "schema": "s"}}, "registry"),
        ({"transform": [{"name": "a"}]}, "one of `sql`"),
        ({"transform": [{"name": "input", "sql": "x"}]}, "name = 'input'"),
        ({"rule": [{"name": "a", "expect": "b", "action": "skip"}]}, "one of warn, drop, fail"),
        ({"sink": [{"name": "a", "type": "parquet"}]}, "`path` is missing"),
        ({"sink": [{"name": "a", "type": "topic"}]}, "`topic` is missing"),
        ({"sink": [{"name": "a", "type": "parquet", "path": "s3://b"}]}, "s3:// is not"),
        ({"sink": [{"name": "a", "type": "parquet", "path": "p", "mode": "scd1"}]}, "`keys`"),
        ({"sink": [{"name": "a", "type": "console", "from": "b"}]}, "no transform gives"),
        ({"sink": [{"name": "a", "type": "parquet", "path": "s3a:/b"}]}, "s3a:// is not"),
        ({"sink": [{"name": "a", "type": "parquet", "path": "dbfs:b"}]}, "dbfs:// is not"),
        ({"sink": [{"name": "a", "type": "parquet", "path": "a\0b"}]}, "not a path"),
        ({"sink": sinks("out", "./out/../out")}, "sink 'b' is also the path of sink 'a'"),
        ({"sink": sinks("out", "link")}, "sink 'b' is also the path of sink 'a'"),
        ({"sink": sinks("out", "out/inner")}, "sink 'b' .* is inside of the path of sink 'a'"),
        ({"sink": sinks("link/inner", "out")}, "sink 'a' .* is inside of the path of sink 'b'"),
        ({"sink": sinks("state")}, "sink 'a' is also the state directory"),
        ({"sink": sinks("state/tables")}, "inside of the state directory"),
        ({"sink": sinks("log")}, "sink 'a' is also the source's path"),
        ({"sink": sinks("log/t-0")}, "inside of the source's path"),
        ({"sink": sinks(".")}, "state directory .* is inside of the path of sink 'a'"),
        ({"sink": sinks("out"), "dead_letters": {"path": "out"}}, "dead letters is also"),
        ({"sink": [to_topic("orders")]}, "topic 'orders', which the pipeline reads"),
        ({"sink": [to_topic("orders", path="./log")]}, "which the pipeline reads"),
        ({"sink": [to_topic("a", options={"dead_letter_topic": "orders"})]}, "pipeline reads"),
        ({"sink": [to_topic("a.*")]}, "'a.\\*' is no topic's name"),
        ({"sink": [to_topic("a", options={"dead_letter_topic": "a,b"})]}, "no topic's name"),
        ({"source": {"topics": ["a.*"], "path": "x"}}, "'a.\\*' is no topic's name"),
        ({"source": {"topics": ["a,b"], "path": "x"}}, "'a,b' is no topic's name"),
        ({"source": {"topics": ["a", "a"], "path": "x"}}, "'a' comes twice"),
        ({"pipeline": {"name": "../../x"}}, "name = '../../x'"),
        ({"pipeline": {"name": ".."}}, "name = '..'"),
        ({"pipeline": {"name": "x" * 101}}, "100 bytes are allowed"),
        ({"sink": [{"name": "a/b", "type": "console"}]}, "name = 'a/b'"),
        ({"metrics": {"prometheus_port": 99_999}}, "prometheus_port = 99999.* up to 65535"),
        ({"metrics": {"prometheus_port": True}}, "prometheus_port = True"),
        ({"sink": [iceberg("a"), iceberg("b")]}, "'a' and 'b' write to one table"),
        ({"trigger": {}}, "either available_now"),
        ({"trigger": {"every": "10 parsecs"}}, "a time such as"),
        ({"watermark": {"column": "a", "delay": "5"}}, "a time such as"),
        (
            {"transform": [{"name": "s", "sessions": {"key": ["a"], "gap": "5m"}}]},
            "needs a \\[watermark\\]",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_its_place(
    tmp_path: Path, tables: dict[str, Any], message: str
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    with pytest.raises(ProjectError, match=message):
        project(tmp_path, **tables)


def test_places_and_topics_that_are_apart_are_taken(tmp_path: Path) -> None:
    other = {"kafka.bootstrap.servers": "elsewhere:9092"}
    made = project(
        tmp_path,
        sink=[
            *sinks("out", "out2"),
            to_topic("orders", path="other log"),
            {**to_topic("orders", options=other), "name": "far"},
            {**to_topic("bills"), "name": "near"},
        ],
        dead_letters={"path": "letters"},
    )
    assert [each.path for each in made.sinks[:2]] == [str(tmp_path / p) for p in ("out", "out2")]


def test_a_file_that_is_no_project_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="pipeline.toml"):
        load(tmp_path)
    (tmp_path / "pipeline.toml").write_text("[pipeline")
    with pytest.raises(ProjectError, match="pipeline.toml"):
        load(tmp_path)
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(ProjectError, match="assigns no PROJECT"):
        load(tmp_path / "empty.py")


def test_functions_are_found_in_files_and_modules(tmp_path: Path) -> None:
    (tmp_path / "functions.py").write_text("def double(row):\n    return row * 2\n")
    assert resolve("functions.py:double", str(tmp_path))(4) == 8
    assert resolve("json:loads", str(tmp_path))("[]") == []
    for wrong in ("functions.py:triple", "functions.py", "no_such_module:f", "gone.py:f"):
        with pytest.raises(ProjectError, match=wrong.partition(":")[0]):
            resolve(wrong, str(tmp_path))


def test_a_new_version_beside_a_project_needs_directories_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from embedlog.spark.pipeline.running.replay import Replayer

    made = project(tmp_path)
    for into, message in (("tables", "sink 'orders'"), ("log", "source's path"), ("s3a:/x", "s3a")):
        with pytest.raises(ProjectError, match=message):
            place = into if ":" in into else str(tmp_path / into)
            Replayer(None, made, into=place)  # type: ignore[arg-type]
