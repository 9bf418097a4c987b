"""A hundred brokers with a thousand partitions: a failure costs only seconds of CPU time."""

from __future__ import annotations

import time

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.testing import sim_runtime
from tests.simulation.cluster.world import SETTINGS

BROKERS = 100
TOPICS, PARTITIONS = 10, 100
OPEN_SECONDS_MAX = 60.0
FAILURE_SECONDS_MAX = 10.0
PATIENCE_MS = 30_000


def leaders(cluster: Cluster) -> list[int]:
    """Return the leader of every partition."""
    controller = cluster.controller.core
    assert controller is not None
    return [
        partition.leader
        for topic in controller.image.topics_by_name.values()
        for partition in topic.partitions
    ]


def all_in_sync(cluster: Cluster) -> bool:
    """Return whether every replica of every partition is in sync."""
    controller = cluster.controller.core
    assert controller is not None
    return all(
        set(partition.isr) == set(partition.replicas)
        for topic in controller.image.topics_by_name.values()
        for partition in topic.partitions
    )


@pytest.mark.slow
def test_a_failure_among_a_hundred_brokers() -> None:
    runtime = sim_runtime(seed=100)
    began = time.process_time()
    with Cluster(brokers=BROKERS, config=SETTINGS, runtime=runtime, is_embedded=True) as cluster:
        for number in range(TOPICS):
            cluster.create_topic(f"t{number}", PARTITIONS, replication_factor=3)
        runtime.scheduler.run_for(2_000)
        opened = time.process_time()
        victim = leaders(cluster)[0]
        assert leaders(cluster).count(victim) > 1
        cluster.broker(victim).kill()
        assert victim not in leaders(cluster)
        assert -1 not in leaders(cluster)
        with cluster.producer(acks="all") as producer:
            for number in range(TOPICS):
                producer.send(f"t{number}", b"a").result()
        runtime.scheduler.run_for(1_000)
        failed = time.process_time()
        cluster.broker(victim).start()
        for _ in range(PATIENCE_MS // 500):
            runtime.scheduler.run_for(500)
            if all_in_sync(cluster):
                break
        assert all_in_sync(cluster)
        healed = time.process_time()
    figures = {
        "opened": opened - began,
        "failure": failed - opened,
        "back": healed - failed,
    }
    print({what: f"{seconds:.2f} s" for what, seconds in figures.items()})
    assert figures["opened"] < OPEN_SECONDS_MAX
    assert figures["failure"] < FAILURE_SECONDS_MAX
    assert figures["back"] < FAILURE_SECONDS_MAX
