"""Snapshots beside commits, recreated topics, and what a reader does at markers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import embedlog
from embedlog.errors import ClosedError, UnknownTopicOrPartition
from embedlog.reader import reader as reader_module
from embedlog.reader.reader import READ_COMMITTED, LogDirectoryReader, PartitionReader


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[embedlog.Cluster]:
    with embedlog.open(tmp_path) as cluster:
        cluster.create_topic("events", 1)
        yield cluster


@pytest.fixture
def reader(cluster: embedlog.Cluster, tmp_path: Path) -> Iterator[LogDirectoryReader]:
    with embedlog.open_reader(tmp_path) as reader:
        yield reader


def produce(cluster: embedlog.Cluster, count: int) -> None:
    with cluster.producer() as producer:
        for _ in range(count):
            producer.append("events", b"v")


def test_a_commit_during_a_snapshot_makes_it_read_again(
    reader: LogDirectoryReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[int] = []
    refreshed: list[int] = []
    known = reader.partition("events", 0)
    refresh = PartitionReader.refresh

    def refresh_beside_a_commit(self: PartitionReader) -> None:
        refresh(self)
        if not refreshed:
            commits.append(1)
        refreshed.append(1)

    monkeypatch.setattr(reader_module, "commit_key", lambda *_: len(commits))
    monkeypatch.setattr(PartitionReader, "refresh", refresh_beside_a_commit)
    assert reader.snapshot([("events", 0)], known=[known]) == [known]
    assert len(refreshed) == 2


def test_a_snapshot_refreshes_a_known_reader(
    cluster: embedlog.Cluster, reader: LogDirectoryReader
) -> None:
    known = reader.partition("events", 0)
    produce(cluster, 3)
    assert reader.snapshot([("events", 0)], known=[known]) == [known]
    assert known.high_watermark == 3


def test_a_snapshot_reads_a_recreated_topic_anew(
    cluster: embedlog.Cluster, reader: LogDirectoryReader
) -> None:
    produce(cluster, 3)
    known = reader.partition("events", 0)
    with cluster.admin() as admin:
        admin.delete_topics(["events"]).check()
    cluster.create_topic("events", 1)
    produce(cluster, 1)
    (found,) = reader.snapshot([("events", 0)], known=[known])
    assert found is not known
    assert (known.high_watermark, found.high_watermark) == (3, 1)


def test_following_passes_a_marker_at_the_end(
    cluster: embedlog.Cluster, reader: LogDirectoryReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster.producer(transactional_id="t") as producer:
        producer.init_transactions()
        with producer.transaction() as transaction:
            transaction.send("events", b"v")
    cluster.close()  # the marker is written by now
    partition = reader.partition("events", 0)
    refresh, looks = PartitionReader.refresh, []

    def look(self: PartitionReader) -> None:
        looks.append(1)
        assert len(looks) < 100, "it looks again and again at the marker"
        refresh(self)

    monkeypatch.setattr(PartitionReader, "refresh", look)
    found = partition.follow(timeout_ms=30, isolation_level=READ_COMMITTED)
    assert [record.offset for record in found] == [0]


def test_only_an_open_reader_pins_and_only_what_exists_is_archived(
    reader: LogDirectoryReader,
) -> None:
    with pytest.raises(UnknownTopicOrPartition, match="events-1"):
        reader.publish_archived("a", {("events", 0): 0, ("events", 1): 0})
    reader.close()
    for call in (
        lambda: reader.pin({("events", 0): 0}),
        lambda: reader.snapshot([("events", 0)]),
        lambda: reader.withdraw_archived("a"),
    ):
        with pytest.raises(ClosedError):
            call()
