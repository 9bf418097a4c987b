"""Commands and readers ask the question that `open` asks, and write nothing before its answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import embedlog
from embedlog.cli import main
from embedlog.errors import ConfigError
from embedlog.spark.committer import commit
from embedlog.storage.staging.manifest import Manifest
from tests.support.snapshots import snapshot


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A directory like /etc: one name in it looks like a partition's."""
    (tmp_path / "dbus-1").mkdir()
    (tmp_path / "dbus-1/session.conf").write_text("no log")
    (tmp_path / "passwd").write_text("of others")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify"],
        ["dump", "--files"],
        ["tail", "dbus"],
        ["salvage"],
        ["salvage", "--dry-run"],
        ["backup", "elsewhere"],
        ["serve"],
    ],
)
def test_a_command_refuses_a_directory_of_others(
    arguments: list[str], foreign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = snapshot(foreign)
    verb, *rest = arguments
    path = ["--data", str(foreign)] if verb == "serve" else [str(foreign)]
    rest = [str(foreign / each) if each == "elsewhere" else each for each in rest]
    assert main([verb, *path, *rest]) == 2
    said = capsys.readouterr()
    assert "is no data directory: it holds dbus-1, passwd" in said.err
    assert said.out == ""
    assert snapshot(foreign) == before


def test_readers_and_commits_refuse_it(foreign: Path) -> None:
    from pyspark.sql.types import StringType, StructField, StructType

    from embedlog.spark.sink.writers import BatchWriter

    before = snapshot(foreign)
    schema = StructType([StructField("value", StringType())])
    for call in (
        lambda: embedlog.open_reader(foreign),
        lambda: commit(str(foreign), Manifest("a" * 32, ()), timeout_ms=1),
        lambda: BatchWriter({"path": str(foreign), "topic": "t"}, schema, overwrite=False),
    ):
        with pytest.raises(ConfigError, match="is no data directory"):
            call()
    assert snapshot(foreign) == before


def test_an_empty_directory_is_not_called_sound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(tmp_path)]) == 2
    assert "is no data directory: it is empty" in capsys.readouterr().err


def test_a_dry_salvage_leaves_a_damaged_directory_as_it_is(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "data", durability="os") as cluster:
        cluster.create_topic("t", 1)
        with cluster.producer() as producer:
            for number in range(3):
                producer.append("t", b"%d" % number)
    log = tmp_path / "data/t-0/00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    before = snapshot(tmp_path)
    assert main(["salvage", str(tmp_path / "data"), "--dry-run"]) == 1
    assert snapshot(tmp_path) == before


def test_a_link_to_a_data_directory_is_one(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "data", durability="os") as cluster:
        cluster.create_topic("t", 1)
    (tmp_path / "link").symlink_to("data")
    assert main(["verify", str(tmp_path / "link")]) == 0
    with embedlog.open_reader(tmp_path / "link") as reader:
        assert reader.partitions("t") == [0]
    embedlog.open(tmp_path / "link").close()


def test_verify_prints_one_object_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with embedlog.open(tmp_path / "data", durability="os") as cluster:
        cluster.create_topic("t", 1)
        with cluster.producer() as producer:
            producer.append("t", b"first")
            producer.append("t", b"second")
    assert main(["verify", "--json", str(tmp_path / "data")]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert (found["kind"], found["damaged"]) == ("summary", 0)
    assert found["partitions"] == 2
    log = tmp_path / "data/t-0/00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[66] ^= 1
    log.write_bytes(content)
    assert main(["verify", "--json", str(tmp_path / "data")]) == 1
    first, *_, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["kind"] == "damage"
    assert str(log) in first.values()
    assert last["damaged"] >= 1
