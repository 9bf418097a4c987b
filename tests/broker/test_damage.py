"""Damage on the disk, as clients and the whole cluster meet it: reported, never repaired."""

from __future__ import annotations

import pytest

from embedlog import Consumer, errors
from embedlog.cluster.cluster import Cluster
from embedlog.common import TopicPartition
from embedlog.testing import SimFiles, sim_runtime
from embedlog.testing.loopback_transport import LoopbackTransport

SEGMENT = "data/t-0/00000000000000000000.log"
COUNT = 20
DAMAGED = 14


def _damaged_disk(durability: str) -> tuple[SimFiles, int]:
    """A cleanly closed topic of `COUNT` batches, and the position of the damaged one."""
    runtime = sim_runtime()
    with Cluster("data", runtime=runtime, durability=durability) as cluster:
        cluster.create_topic("t", 1)
        with cluster.producer() as producer:
            for number in range(COUNT):
                producer.send("t", b"value-%03d" % number).result()
    disk = runtime.files.survivor()
    content = disk.read(SEGMENT)
    at = content.index(b"value-%03d" % DAMAGED)
    disk.open(SEGMENT).write([bytes([content[at] ^ 1])], at)
    return disk, content.rindex(DAMAGED.to_bytes(8, "big"), 0, at)


@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("is_remote", [False, True])
def test_a_consumer_gets_what_precedes_the_damage_and_then_an_error(
    durability: str, is_remote: bool
) -> None:
    disk, position = _damaged_disk(durability)
    with Cluster("data", runtime=sim_runtime(files=disk), durability=durability) as cluster:
        with Consumer(LoopbackTransport(cluster) if is_remote else cluster) as consumer:
            consumer.assign([("t", 0)])
            consumer.seek_to_beginning()
            got: list[int] = []
            while len(got) < DAMAGED:
                got += [record.offset for record in consumer.poll(1000)]
            assert got == list(range(DAMAGED))
            for _ in range(3):
                with pytest.raises(errors.CorruptMessage) as caught:
                    consumer.poll(1000)
                assert "t-0 at offset 14" in str(caught.value)
            if not is_remote:
                assert f"{SEGMENT} at byte {position}" in str(caught.value)
                assert isinstance(caught.value.__cause__, errors.CorruptRecord)
            consumer.seek(("t", 0), DAMAGED + 1)
            assert next(iter(consumer.poll(1000))).offset == DAMAGED + 1
        assert [news.kind for news in cluster.health()] == ["damaged"]


def test_metadata_follows_a_logs_leader_epoch_in_one_record() -> None:
    """However far the log is ahead, for example of metadata from an old copy."""
    runtime = sim_runtime()
    with Cluster("data", runtime=runtime, durability="os") as cluster:
        cluster.create_topic("t", 1)
        with cluster.producer() as producer:
            producer.send("t", b"a").result()
        log = cluster.broker().core.replica_manager.partition("t", 0).log
        with log.lock:
            log.epochs.assign(1_000_000)
    with Cluster("data", runtime=sim_runtime(files=runtime.files), durability="os") as cluster:
        controller = cluster.broker().core.controller
        before = controller.image.end_offset
        partition = cluster.broker().core.replica_manager.partition("t", 0)
        assert partition.leader_epoch == 1_000_000
        assert controller.image.end_offset == before + 1
        assert controller.image.partition(*TopicPartition("t", 0)).leader_epoch == 1_000_000
