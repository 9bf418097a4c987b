"""Plans of reads of a directory, without Spark."""

from __future__ import annotations

from pathlib import Path

import embedlog
from embedlog.common import TopicPartition
from embedlog.spark.access.directory import DirectoryAccess
from tests.spark.logs import add

KEY = TopicPartition("t", 0)
OLD = {"segment.bytes": "1048576", "retention.ms": "1"}


def _count(cluster: embedlog.Cluster) -> int:
    log = cluster.broker().core.replica_manager.partition("t", 0).log
    return log.log_end_offset - log.offsets.log_start_offset


def test_what_is_planned_outlives_retention(tmp_path: Path) -> None:
    with embedlog.open(tmp_path, durability="os") as cluster:
        cluster.create_topic("t", 1, config=OLD)
        add(cluster, "t", 0, range(10))
        access = DirectoryAccess(str(tmp_path), read_committed=False)
        assert access.bounds([KEY]) == {KEY: (0, 10)}
        access.pin({KEY: 3})
        cluster.maintain()
        assert _count(cluster) == 10, "one segment holds all records"
        planned = access.slice(KEY, 3, 10)
        assert [r.offset for b in planned.range.batches() for r in b.records()][-7:] == [
            *range(3, 10)
        ]
        access.pin({KEY: 10})
        cluster.maintain()
        assert _count(cluster) == 0
        access.close()


def test_who_may_only_read_pins_nothing(tmp_path: Path) -> None:
    with embedlog.open(tmp_path, durability="os") as cluster:
        cluster.create_topic("t", 1)
        add(cluster, "t", 0, range(3))
    access = DirectoryAccess(str(tmp_path), read_committed=False)
    (tmp_path / ".exchange").write_text("no directory")
    access.pin({KEY: 0})
    assert access.bounds([KEY]) == {KEY: (0, 3)}


def test_bounds_are_asked_again_of_what_was_read_before(tmp_path: Path) -> None:
    with embedlog.open(tmp_path, durability="os") as cluster:
        cluster.create_topic("t", 1)
        add(cluster, "t", 0, range(10))
        access = DirectoryAccess(str(tmp_path), read_committed=False)
        assert access.bounds([KEY]) == {KEY: (0, 10)}
        known = access.part(KEY)
        add(cluster, "t", 0, range(10, 15))
        assert access.bounds([KEY]) == {KEY: (0, 15)}
        assert access.part(KEY) is known, "it continues, and reads no segment again"
        with cluster.admin() as admin:
            admin.delete_topics(["t"]).check()
        assert access.bounds([KEY]) == {}
        cluster.create_topic("t", 1)
        add(cluster, "t", 0, range(3))
        assert access.bounds([KEY]) == {KEY: (0, 3)}
        assert access.part(KEY) is not known
        access.close()
