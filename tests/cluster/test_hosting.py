"""When the brokers of a cluster make and open the logs of their replicas."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.cluster.handles.broker_node import BrokerNode
from embedlog.common import TopicPartition
from embedlog.controller.controller import NewTopic
from embedlog.replication.partition import Partition
from embedlog.replication.replica_manager import ReplicaManager
from embedlog.testing import SimRuntime
from tests.cluster.conftest import RACKS, until

TOPIC = "events"
PARTITIONS = 20
ALL = {TopicPartition(TOPIC, number) for number in range(PARTITIONS)}


def hosted(cluster: Cluster, node_id: int) -> set[TopicPartition]:
    """Return the partitions of the topic that a broker hosts."""
    found = cluster.broker(node_id).core.replica_manager.partitions
    return {TopicPartition(*key) for key in found if key[0] == TOPIC}


def on_disk(cluster: Cluster, node_id: int) -> set[str]:
    """Return the names of the topic's logs on the disk of a broker."""
    found = cluster.runtime.files.list(f"data/broker-{node_id}")
    return {name for name in found if name.startswith(f"{TOPIC}-")}


@pytest.fixture
def opened(runtime: SimRuntime) -> Cluster:
    """A cluster with a record in each partition, closed and opened again."""
    with Cluster("data", brokers=3, racks=RACKS, runtime=runtime, is_embedded=True) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3)
        fill(cluster)
    return Cluster("data", brokers=3, racks=RACKS, runtime=runtime, is_embedded=True)


def fill(cluster: Cluster) -> None:
    with cluster.producer(acks="all") as producer:
        for number in range(PARTITIONS):
            producer.send(TOPIC, b"v", partition=number)


def test_creating_a_topic_does_not_wait_for_its_logs(cluster: Cluster, runtime: SimRuntime) -> None:
    cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3)
    assert hosted(cluster, 1) == hosted(cluster, 2) == hosted(cluster, 3) == set()
    runtime.scheduler.run_for(20)
    assert hosted(cluster, 1) == hosted(cluster, 2) == hosted(cluster, 3) == ALL


def test_records_of_new_partitions_take_no_time(cluster: Cluster, runtime: SimRuntime) -> None:
    cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3)
    began_ms = runtime.clock.monotonic_ms()
    fill(cluster)
    assert runtime.clock.monotonic_ms() == began_ms
    ends = [cluster.partition(TOPIC, number).end_offsets for number in range(PARTITIONS)]
    assert ends == [{1: 1, 2: 1, 3: 1}] * PARTITIONS


def test_a_requested_partition_is_opened_out_of_turn(cluster: Cluster) -> None:
    cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3)
    last = TopicPartition(TOPIC, PARTITIONS - 1)
    leader = cluster.partition(*last).leader
    with cluster.producer(acks=1) as producer:
        producer.send(TOPIC, b"v", partition=last.partition)
    assert last in hosted(cluster, leader)


def test_a_close_creates_the_missing_logs(runtime: SimRuntime) -> None:
    with Cluster("data", brokers=3, racks=RACKS, runtime=runtime, is_embedded=True) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3)
        assert on_disk(cluster, 3) == set()
    assert on_disk(cluster, 3) == {f"{TOPIC}-{number}" for number in range(PARTITIONS)}


def test_logs_are_opened_after_the_cluster_is(opened: Cluster, runtime: SimRuntime) -> None:
    with opened as cluster:
        assert hosted(cluster, 2) == set()
        fill(cluster)
        until(cluster, lambda: hosted(cluster, 2) == ALL)
        assert cluster.partition(TOPIC, 0).end_offsets == {1: 2, 2: 2, 3: 2}


def test_an_unopened_log_stays_unchanged(opened: Cluster, runtime: SimRuntime) -> None:
    opened.close()
    with Cluster("data", brokers=3, racks=RACKS, runtime=runtime, is_embedded=True) as cluster:
        for number in range(PARTITIONS):
            assert cluster.partition(TOPIC, number).end_offsets == {1: 1, 2: 1, 3: 1}
            assert set(cluster.partition(TOPIC, number).isr) == {1, 2, 3}
            leader = cluster.partition(TOPIC, number).leader
            assert cluster.partition(TOPIC, number).high_watermarks[leader] == 1


def test_after_a_crash_logs_are_opened_before_the_cluster(
    cluster: Cluster, runtime: SimRuntime
) -> None:
    cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3)
    fill(cluster)
    former = cluster.broker(2)
    former.kill()
    former.start()
    assert hosted(cluster, 2) == ALL


def test_a_topic_that_is_deleted_before_its_turn_leaves_nothing(opened: Cluster) -> None:
    with opened as cluster:
        assert len(on_disk(cluster, 2)) == PARTITIONS
        with cluster.admin() as admin:
            admin.delete_topics([TOPIC])
        until(cluster, lambda: not any(on_disk(cluster, node_id) for node_id in (1, 2, 3)))
        assert hosted(cluster, 2) == set()


def test_a_replica_that_is_taken_away_before_its_turn_leaves_nothing(opened: Cluster) -> None:
    with opened as cluster:
        partition = cluster.partition(TOPIC, 0)
        partition.reassign([1, 2])
        until(cluster, lambda: partition.replicas == (1, 2))
        until(cluster, lambda: f"{TOPIC}-0" not in on_disk(cluster, 3))
        assert hosted(cluster, 3) <= ALL - {TopicPartition(TOPIC, 0)}


@pytest.mark.parametrize("end", [BrokerNode.stop, BrokerNode.kill])
def test_replicas_that_were_not_opened_yet_lead_when_a_broker_leaves(
    opened: Cluster, end: Callable[[BrokerNode], None]
) -> None:
    with opened as cluster:
        end(cluster.broker(1))
        assert all(cluster.partition(TOPIC, number).leader in (2, 3) for number in range(20))
        fill(cluster)
        ends = [cluster.partition(TOPIC, number).end_offsets for number in range(PARTITIONS)]
        assert ends == [{2: 2, 3: 2}] * PARTITIONS


def test_a_defect_of_one_replica_does_not_delay_the_others(
    cluster: Cluster, runtime: SimRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, first = ReplicaManager.host, TopicPartition(TOPIC, 0)

    def host_others(self: ReplicaManager, *arguments: Any, **more: Any) -> Partition:
        if arguments[0] == first:
            raise RuntimeError("a defect")
        return host(self, *arguments, **more)

    monkeypatch.setattr(ReplicaManager, "host", host_others)
    cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3)
    for _ in range(6):  # each broker reports it once
        with suppress(RuntimeError):
            runtime.scheduler.run_for(1_000)
    assert hosted(cluster, 1) == hosted(cluster, 2) == hosted(cluster, 3) == ALL - {first}


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_broker_that_was_away_keeps_no_log_of_a_deleted_topic(
    runtime: SimRuntime, is_made_anew: bool
) -> None:
    with Cluster("data", brokers=3, racks=RACKS, runtime=runtime, is_embedded=True) as cluster:
        cluster.create_topic(TOPIC, 1, replication_factor=3)
        with cluster.producer(acks="all") as producer:
            producer.send(TOPIC, b"v").result()
        runtime.scheduler.run_for(1_000)
        cluster.broker(3).stop()
        cluster.admin().delete_topics([TOPIC])
        controller = cluster.broker(1).core.controller
        if is_made_anew:
            controller.create_topics([NewTopic(TOPIC, assignments=[(0, [1, 2, 3])])])
        cluster.broker(3).start()
        runtime.scheduler.run_for(1_000)
        if not is_made_anew:
            assert on_disk(cluster, 3) == set()
            return
        log = cluster.broker(3).core.replica_manager.partition(TOPIC, 0).log
        assert log.topic_id == controller.image.topics_by_name[TOPIC].topic_id
        assert log.log_end_offset == 0
