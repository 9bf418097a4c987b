"""Retention that waits for archives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog.errors import ConfigError, UnknownTopicOrPartition
from embedlog.runtime import real_runtime
from embedlog.storage.verification.directory import DirectoryCheck
from tests.spark.logs import add

OLD = {"segment.bytes": "1048576", "retention.ms": "1"}
WAITS = {**OLD, "embedlog.retention.archived": "true"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[embedlog.Cluster]:
    """Topics whose records are old: "waits" has three segments, "goes" one."""
    with embedlog.open(tmp_path, durability="os") as opened:
        opened.create_topic("waits", 1, config=WAITS)
        opened.create_topic("goes", 1, config=OLD)
        add(opened, "goes", 0, range(10))
        log = _log(opened)
        for first in (0, 10, 20):
            add(opened, "waits", 0, range(first, first + 10))
            with log.lock:
                log.roll()
        yield opened


def _log(cluster: embedlog.Cluster) -> Any:
    return cluster.broker().core.replica_manager.partition("waits", 0).log


def _start(cluster: embedlog.Cluster) -> int:
    cluster.maintain()
    start: int = _log(cluster).offsets.log_start_offset
    return start


def _publish(path: Path, offset: int, archive: str = "a") -> None:
    with embedlog.open_reader(path) as reader:
        reader.publish_archived(archive, {("waits", 0): offset})


def test_what_is_not_archived_stays(cluster: embedlog.Cluster, tmp_path: Path) -> None:
    assert _start(cluster) == 0, "nothing is archived yet"
    assert (
        cluster.broker().core.replica_manager.partition("goes", 0).log.offsets.log_start_offset
        == 10
    )
    for offset, start in ((9, 0), (10, 10), (25, 20), (30, 30)):
        _publish(tmp_path, offset)
        assert _start(cluster) == start


def test_the_archive_that_is_behind_counts_until_it_is_withdrawn(
    cluster: embedlog.Cluster, tmp_path: Path
) -> None:
    _publish(tmp_path, 30)
    _publish(tmp_path, 10, "b-2")
    assert _start(cluster) == 10
    with embedlog.open_reader(tmp_path) as reader:
        reader.withdraw_archived("b-2")
        reader.withdraw_archived("b-2")
    assert _start(cluster) == 30


def test_an_order_to_delete_does_not_wait(cluster: embedlog.Cluster) -> None:
    with cluster.admin() as admin:
        admin.delete_records({("waits", 0): 15}).check()
        assert _start(cluster) == 15
        admin.delete_topics(["waits"]).check()
    assert list(cluster.topics) == ["goes"]


def test_a_damaged_file_holds_everything_and_is_found(
    cluster: embedlog.Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _publish(tmp_path, 30)
    file = tmp_path / "embedlog-archived-a"
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes(content)
    assert _start(cluster) == 0
    assert "the archived offsets are unknown" in caplog.text
    cluster.close()
    found = DirectoryCheck(real_runtime().files, str(tmp_path), lambda _: None).findings()
    assert [each.path for each in found] == [str(file)]


def test_another_topic_of_that_name_is_not_archived(
    cluster: embedlog.Cluster, tmp_path: Path
) -> None:
    _publish(tmp_path, 30)
    with cluster.admin() as admin:
        admin.delete_topics(["waits"]).check()
    cluster.create_topic("waits", 1, config=WAITS)
    add(cluster, "waits", 0, range(10))
    with _log(cluster).lock:
        _log(cluster).roll()
    assert _start(cluster) == 0
    _publish(tmp_path, 10)
    assert _start(cluster) == 10


def test_a_restart_forgets_nothing(cluster: embedlog.Cluster, tmp_path: Path) -> None:
    _publish(tmp_path, 20)
    cluster.close()
    with embedlog.open(tmp_path, durability="os") as again:
        assert _start(again) == 20


def test_what_makes_no_sense_is_refused(cluster: embedlog.Cluster, tmp_path: Path) -> None:
    with embedlog.open_reader(tmp_path) as reader:
        with pytest.raises(UnknownTopicOrPartition, match="nope-0"):
            reader.publish_archived("a", {("nope", 0): 1})
        for name in ("", "a/b", "x" * 65):
            with pytest.raises(ConfigError, match="archive="):
                reader.publish_archived(name, {})
