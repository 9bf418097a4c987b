"""`embedlog pipeline archive, restore, diff`, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import embedlog
from embedlog.cli import main
from tests.spark.logs import add, filled


@pytest.mark.slow
def test_there_and_back(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, table, target = (str(tmp_path / name) for name in ("log", "table", "target"))
    with filled(tmp_path / "log", {"t": [20, 10]}):
        pass
    place = ["--path", log, "--topic", "t"]
    assert main(["pipeline", "archive", table, *place, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["records"] == 30
    assert main(["pipeline", "diff", table, *place]) == 0
    assert "differing 0" in capsys.readouterr().out
    (tmp_path / "target").mkdir()
    assert main(["pipeline", "restore", table, "--path", target, "--as", "t=u"]) == 0
    with embedlog.open_reader(target) as reader:
        assert [reader.partition("u", n).high_watermark for n in (0, 1)] == [20, 10]
    with embedlog.open(log, durability="os") as cluster:
        with cluster.admin() as admin:
            admin.delete_topics(["t"]).check()
        cluster.create_topic("t", 2)
        for partition in (0, 1):
            add(cluster, "t", partition, range(1, 21 - 10 * partition))
    assert main(["pipeline", "diff", table, *place, "--json"]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["counts"]["differing"] > 0
    assert main(["pipeline", "archive", table, *place]) == 2
    assert "was made anew" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["archive", "table"], "topics: at least one is needed"),
        (["archive", "table", "--topic", "t"], "one of path and bootstrap_servers"),
        (["diff", "table", "--topic", "t", "--path", "a", "--bootstrap-servers", "b"], "one of"),
        (["restore", "table", "--path", "log", "--as", "t"], "TOPIC=NAME"),
    ],
)
def test_what_is_missing_is_told_before_spark_starts(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", *arguments]) == 2
    assert message in capsys.readouterr().err
