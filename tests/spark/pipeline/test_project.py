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
    with pytest.raises(ProjectError, match=message):
        project(tmp_path, **tables)


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
