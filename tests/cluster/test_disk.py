"""A full disk refuses records and topics, and still serves its content."""

from __future__ import annotations

from errno import ENOSPC

import pytest

from embedlog import errors
from embedlog.cluster.cluster import Cluster
from embedlog.cluster.faults.disk import Disk
from embedlog.runtime.memory_files import MemoryFiles
from tests.cluster.conftest import leader_of


@pytest.fixture
def disk() -> Disk:
    made = Disk(MemoryFiles())
    made.make_directory("d")
    made.open("d/f", create=True).write([b"abc"], 0)
    return made


def test_a_full_disk_takes_no_records_and_no_topics(disk: Disk) -> None:
    disk.is_full = True
    file = disk.open("d/f")
    for refused in (
        lambda: file.write([b"d"], 3),
        lambda: file.reserve(10),
        lambda: disk.open("d/g", create=True),
        lambda: disk.make_directory("e"),
    ):
        with pytest.raises(OSError) as told:
            refused()
        assert told.value.errno == ENOSPC


def test_a_full_disk_can_be_read_changed_and_emptied(disk: Disk) -> None:
    disk.is_full = True
    file = disk.open("d/f", create=True)
    file.write([b"x"], 1)
    file.sync()
    assert bytes(file.view(0, 3)) == b"axc"
    disk.rename("d/f", "d/h")
    assert disk.read("d/h") == b"axc"
    disk.remove("d/h")
    assert disk.list("d") == []
    stat = disk.stat("d")
    assert stat is not None
    assert stat.is_directory


def test_freed_space_is_used(disk: Disk) -> None:
    disk.is_full = True
    disk.is_full = False
    assert disk.open("d/g", create=True).write([b"abc"], 0) == 3


def test_a_leader_with_a_full_disk_refuses_and_takes_records_again(cluster: Cluster) -> None:
    cluster.create_topic("t", 1, replication_factor=3, config={"segment.bytes": 1 << 20})
    leader = leader_of(cluster, "t")
    value = bytes(400_000)
    with cluster.producer(acks="all", retries=0) as producer:
        producer.send("t", value).result()
        leader.disk.fill()
        with pytest.raises(errors.KafkaError):
            for _ in range(4):
                producer.send("t", value).result()
        leader.disk.free()
        assert producer.send("t", value).result().offset >= 1


def test_a_broker_elected_with_a_full_disk_leads_once_it_has_space(
    cluster: Cluster,
) -> None:
    """With a full disk the broker cannot record its new leader epoch when it is elected."""
    cluster.create_topic("t", 1, replication_factor=3)
    with cluster.producer(acks="all") as producer:
        producer.send("t", b"1").result()
        former = leader_of(cluster, "t")
        others = [each for each in cluster.brokers if each.node_id != former.node_id]
        for each in others:
            each.disk.fill()
        former.kill()
        heard = {each.core.image.partition("t", 0) for each in others}  # type: ignore[attr-defined]
        assert len(heard) == 1
        leader = leader_of(cluster, "t")
        assert leader.node_id != former.node_id
        with pytest.raises(errors.KafkaError), cluster.producer(acks="all", retries=0) as another:
            another.send("t", b"2").result()
        for each in others:
            each.disk.free()
        assert producer.send("t", b"3").result().offset == 1
