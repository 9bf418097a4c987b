"""A relative path names the directory of the moment of the call, whatever `chdir` comes after it.

Every entry that takes a path has a case here: `open` (path, log_dirs, log.dirs, several brokers),
`open_reader` with its ranges and pins, the commands, the options of `format("embedlog")`, Spark
jobs, and a pipeline's project with its files. `serve` and commits of staged files open a `Cluster`,
and clients read their TLS files once, when they are made.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog.cli import main
from embedlog.cluster.cluster import Cluster
from tests.support.snapshots import snapshot

SETTINGS = {"internal.segment.bytes": "2000"}


def fill(cluster: Cluster, first: int, end: int) -> None:
    with cluster.producer() as producer:
        for number in range(first, end):
            producer.append("t", b"%d " % number + b"x" * 300, partition=0)


def count(path: Path, **more: Any) -> int:
    with embedlog.open(path, **more) as cluster, cluster.consumer() as consumer:
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        found = 0
        while records := list(consumer.poll(1000)):
            found += len(records)
            if found == consumer.end_offsets([embedlog.TopicPartition("t", 0)])[("t", 0)]:
                break
        return found


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two places with a "data" and a "more" each; the first is the working directory."""
    here, there = tmp_path / "here", tmp_path / "there"
    for place in (here, there):
        place.mkdir()
        with embedlog.open(place / "data", log_dirs=[place / "more"], durability="os") as cluster:
            cluster.create_topic("t", 2, config=SETTINGS)
            fill(cluster, 0, 5)
    monkeypatch.chdir(here)
    return here, there


def of_one(**how: Any) -> Callable[[], Cluster]:
    return lambda: embedlog.open(durability="os", **how)


@pytest.mark.parametrize(
    "opened",
    [
        of_one(path="data", log_dirs=["more"]),
        of_one(path=Path("data"), log_dirs=[Path("./more")]),
        of_one(path="data", config={"log.dirs": "data,more"}),
        of_one(path="../here/./data", log_dirs=["../here/more"]),
    ],
)
def test_a_cluster_stays_in_its_directories(
    opened: Callable[[], Cluster], places: tuple[Path, Path]
) -> None:
    here, there = places
    before = snapshot(there)
    cluster = opened()
    os.chdir(there)
    fill(cluster, 5, 40)
    cluster.create_topic("new", 4)
    cluster.maintain()
    assert cluster.path == str(here / "data")
    assert cluster.log_dirs == (str(here / "more"),)
    with cluster.admin() as admin:
        assert set(admin.describe_log_dirs([1])[1]) == {str(here / "data"), str(here / "more")}
    cluster.close()
    assert snapshot(there) == before
    assert count(here / "data", log_dirs=[here / "more"]) == 40


def test_several_brokers_stay_in_their_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with embedlog.open("data", brokers=2, log_dirs=["more"], durability="os") as cluster:
        cluster.create_topic("t", 1, replication_factor=2)
        os.chdir("elsewhere")
        cluster.broker(2).stop()
        cluster.broker(2).start()
        cluster.controller.stop()
        cluster.controller.start()
        cluster.add_broker()
        fill(cluster, 0, 3)
    assert os.listdir(".") == []
    assert count(tmp_path / "data", log_dirs=[tmp_path / "more"]) == 3


def test_a_link_before_two_dots_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    monkeypatch.chdir(tmp_path)
    with embedlog.open("link/../data", durability="os") as cluster:
        assert cluster.path == str((tmp_path / "a/data").resolve())


def test_cordoned_directories_are_named_as_the_log_directories(places: tuple[Path, Path]) -> None:
    config = {"cordoned.log.dirs": "more"}
    with embedlog.open("data", log_dirs=["more"], durability="os", config=config) as cluster:
        cluster.create_topic("new", 3)
        with cluster.admin() as admin:
            found = admin.describe_log_dirs([1])[1]
        assert not any(topic == "new" for topic, _ in found[str(places[0] / "more")].replicas)


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a "data" of one log directory, and an "elsewhere"."""
    (tmp_path / "elsewhere").mkdir()
    with embedlog.open(tmp_path / "data", durability="os") as cluster:
        cluster.create_topic("t", 1)
        fill(cluster, 0, 5)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_reader_its_ranges_and_its_pins_stay(plain: Path) -> None:
    with embedlog.open_reader("data") as reader:
        partition = reader.partition("t", 0)
        part = partition.range(0, 5)
        pin = reader.pin({("t", 0): 0})
        os.chdir("elsewhere")
        partition.refresh()
        assert reader.partitions("t") == [0]
        assert sum(len(list(each.records())) for each in part.batches()) == 5
        pin.renew()
        pin.release()
        reader.publish_archived("a", {("t", 0): 1})
    assert os.listdir(".") == []
    assert os.listdir(plain / "data/.exchange/pins") == []


def test_the_commands_take_relative_paths(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("verify", "dump"):
        assert main([verb, "data"]) == 0
    assert main(["tail", "data", "t"]) == 0
    assert main(["salvage", "data"]) == 0
    assert f"{plain}/data: no damage" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_text_that_no_file_can_be_named_is_refused(text: str) -> None:
    for opened in (embedlog.open, embedlog.open_reader):
        with pytest.raises(embedlog.ConfigError, match="is no path"):
            opened(text)


def test_spark_gets_absolute_paths(plain: Path) -> None:
    from embedlog.spark.jobs.topics import JobTopics
    from embedlog.spark.options import SourceOptions
    from embedlog.spark.sink import options as sink_options

    given = {"path": "data", "topic": "t"}
    source = SourceOptions.parse({"path": "data", "subscribe": "t"}, streaming=False)
    sink, topics = sink_options.parse(given), JobTopics(("t",), "data")
    os.chdir("elsewhere")
    assert {source.path, sink.path, topics.path} == {str(plain / "data")}
    assert list(topics.bounds().values()) == [(0, 5)]
    over_the_wire = sink_options.parse({"kafka.bootstrap.servers": "a:1"})
    assert over_the_wire.path == ""


def test_a_project_and_its_files_stay(plain: Path) -> None:
    from embedlog.spark.pipeline.project import load

    Path("pipeline.toml").write_text(
        '[pipeline]\nname = "p"\n[source]\ntopics = ["t"]\npath = "data"\n'
        '[decode]\nformat = "json"\nschema = "s.json"\n'
        '[[sink]]\nname = "rows"\ntype = "parquet"\npath = "tables/rows"\n'
    )
    project = load("pipeline.toml")
    os.chdir("elsewhere")
    found = [project.state, project.source.path, project.decode.schema, project.sinks[0].path]
    assert all(each and each.startswith(f"{plain}/") for each in found), found
