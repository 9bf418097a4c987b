"""`embedlog pipeline`: the commands that need no stream, over a real data directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog.cli import main
from embedlog.spark.pipeline import load
from embedlog.spark.pipeline.batch.report import BatchReport
from embedlog.spark.pipeline.running.state import StateDirectory


@pytest.fixture
def log(tmp_path: Path) -> Path:
    with embedlog.open(tmp_path / "log") as cluster, cluster.producer() as producer:
        for number in range(5):
            value = json.dumps({"id": number, "amount": number / 2, "tags": ["a"]}).encode()
            producer.send("orders", value, partition=0).result()
        producer.send("orders", None, key=b"3", partition=0).result()
    return tmp_path / "log"


def init(log: Path, directory: Path, *more: str) -> int:
    return main(
        ["pipeline", "init", str(directory), "--path", str(log), "--topic", "orders", *more]
    )


def test_init_freezes_the_schema_of_the_last_records(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(log, tmp_path / "p") == 0
    project = load(tmp_path / "p")
    assert project.source.path == str(log)
    schema = json.loads((tmp_path / "p/schemas/orders.json").read_text())
    assert [(f["name"], f["nullable"]) for f in schema["fields"]] == [
        ("id", False), ("amount", False), ("tags", False),
    ]  # fmt: skip
    assert main(["pipeline", "validate", "--no-spark", str(tmp_path / "p")]) == 0
    assert "id\namount\ntags\n" in capsys.readouterr().out
    assert init(log, tmp_path / "p") == 2
    assert "is there already" in capsys.readouterr().err


def test_widen_takes_new_columns_and_refuses_new_types(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(log, tmp_path / "p") == 0
    with embedlog.open(log) as cluster, cluster.producer() as producer:
        producer.send("orders", b'{"id": 9, "amount": 1, "tags": [], "note": "n"}').result()
    assert main(["pipeline", "init", str(tmp_path / "p"), "--widen"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "widened: note"
    assert main(["pipeline", "init", str(tmp_path / "p"), "--widen"]) == 0
    assert capsys.readouterr().out == "nothing new\n"
    with embedlog.open(log) as cluster, cluster.producer() as producer:
        producer.send("orders", b'{"id": "ten", "amount": 1, "tags": []}').result()
    assert main(["pipeline", "init", str(tmp_path / "p"), "--widen"]) == 2
    assert "id: bigint and string" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["validate", "nowhere"], "nowhere"),
        (["init", "p"], "--topic"),
        (["init", "p", "--topic", "t", "--path", "nowhere"], "nowhere: not a directory"),
        (["status", "nowhere"], "nowhere"),
        (["run", "nowhere"], "nowhere"),
        (["replay", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["pipeline", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error


def test_a_topic_that_is_not_there_is_named(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = str(tmp_path / "p")
    status = main(["pipeline", "init", directory, "--path", str(log), "--topic", "payments"])
    assert status == 2
    assert "no topic 'payments'" in capsys.readouterr().err


def test_status_alerts_by_its_exit_status(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(log, tmp_path / "p") == 0
    file = tmp_path / "p/pipeline.toml"
    file.write_text(
        file.read_text() + "[dead_letters]\nlimit = 1\n[metrics]\nmax_lag_records = 10\n"
    )
    project = load(file)
    state = StateDirectory(project.state)
    assert main(["pipeline", "status", str(file)]) == 0
    state.count(BatchReport("q", 0, read=5, dead=1, errors={"decode": 1}, written={"orders": 4}))
    assert main(["pipeline", "status", str(file)]) == 0
    assert "dead letter: decode 1" in capsys.readouterr().out
    state.note_progress({"lag_records": 11, "lag_seconds": 2.0})
    assert main(["pipeline", "status", str(file)]) == 1
    assert "lag 11, 10 are allowed" in capsys.readouterr().err
    state.note_progress({"lag_records": 0, "lag_seconds": 0})
    state.count(BatchReport("q", 1, dead=1))
    state.count(BatchReport("q", 1, dead=1))  # a repeated batch counts once
    assert main(["pipeline", "status", "--json", str(file)]) == 1
    out, error = capsys.readouterr()
    assert json.loads(out)["totals"]["dead"] == 2
    assert "2 dead letters, 1 are allowed" in error


@pytest.mark.slow
def test_dry_run_shows_rows_and_rejects_and_writes_nothing(
    spark: Any, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(log, tmp_path / "p") == 0
    with embedlog.open(log) as cluster, cluster.producer() as producer:
        producer.send("orders", b"nonsense", partition=0).result()
    capsys.readouterr()
    before = set((tmp_path / "p").rglob("*"))
    assert main(["pipeline", "dry-run", "-n", "4", str(tmp_path / "p")]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["row"]["id"] for line in lines if "row" in line] == [3, 4, None]
    (rejected,) = [line["rejected"] for line in lines if "rejected" in line]
    assert (rejected["value"], rejected["offset"]) == ("nonsense", 6)
    assert lines[-1]["report"]["read"] == 4
    assert set((tmp_path / "p").rglob("*")) == before
