"""Damage on the disk as clients and the whole cluster meet it: told, and never made good."""

from __future__ import annotations

from embedlog.broker.cluster import Cluster
from embedlog.common import TopicPartition
from embedlog.testing import sim_runtime


def test_metadata_follows_a_logs_leader_epoch_in_one_record() -> None:
    """However far the log is ahead: metadata may have been restored from an old copy."""
    runtime = sim_runtime()
    with Cluster("data", runtime=runtime, durability="os") as cluster:
        cluster.create_topic("t", 1)
        with cluster.producer() as producer:
            producer.send("t", b"a").result()
        log = cluster.broker.replica_manager.partition("t", 0).log
        with log.lock:
            log.assign_epoch(1_000_000)
    with Cluster("data", runtime=sim_runtime(files=runtime.files), durability="os") as cluster:
        controller = cluster.broker.controller
        before = controller.image.end_offset
        partition = cluster.broker.replica_manager.partition("t", 0)
        assert partition.leader_epoch == 1_000_000
        assert controller.image.end_offset == before + 1
        assert controller.image.partition(*TopicPartition("t", 0)).leader_epoch == 1_000_000
