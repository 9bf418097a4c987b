"""A disk that is slow: late answers, a follower that falls behind, and a broker that stays."""

from __future__ import annotations

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.cluster.faults.slow_disk import SlowDisk
from embedlog.errors import ConfigError
from embedlog.testing import SimRuntime
from tests.cluster.conftest import leader_of, until

DELAY_MS = 400
LAG_MS = 30_000
"""replica.lag.time.max.ms by default."""


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    cluster.create_topic("t", 1, replication_factor=3, config={"min.insync.replicas": 2})
    return cluster


def test_a_slow_leader_answers_late(cluster: Cluster, runtime: SimRuntime) -> None:
    leader = leader_of(cluster, "t")
    with cluster.producer(acks=1, max_in_flight_requests_per_connection=1) as producer:
        producer.send("t", b"0").result()
        leader.disk.slow(DELAY_MS)
        began_ms = runtime.clock.monotonic_ms()
        sent = producer.send("t", b"1")
        producer.flush()
        assert runtime.clock.monotonic_ms() - began_ms >= DELAY_MS
        assert sent.result().offset == 1
        leader.disk.slow(0)
        began_ms = runtime.clock.monotonic_ms()
        assert producer.send("t", b"2").result().offset == 2
        assert runtime.clock.monotonic_ms() - began_ms < DELAY_MS
    assert len(cluster.partition("t", 0).isr) == 3


def test_a_record_is_invisible_before_it_is_written(cluster: Cluster, runtime: SimRuntime) -> None:
    leader = leader_of(cluster, "t")
    leader.disk.slow(DELAY_MS)
    with cluster.producer(acks=1, linger_ms=0) as producer:
        sent = producer.send("t", b"1")
        runtime.scheduler.run_for(DELAY_MS // 2)
        assert set(cluster.partition("t", 0).end_offsets.values()) == {0}
        assert not sent.done()
        runtime.scheduler.run_for(DELAY_MS)
        assert sent.done()


def test_acks_all_waits_for_a_slow_follower(cluster: Cluster, runtime: SimRuntime) -> None:
    partition = cluster.partition("t", 0)
    slow = next(node for node in partition.replicas if node != partition.leader)
    with cluster.producer(acks="all") as producer:
        producer.send("t", b"0").result()
        cluster.broker(slow).disk.slow(DELAY_MS)
        runtime.scheduler.run_for(1_000)  # let fetches from before the slow disk end
        began_ms = runtime.clock.monotonic_ms()
        producer.send("t", b"1").result()
        assert runtime.clock.monotonic_ms() - began_ms >= DELAY_MS
    assert slow in partition.isr


@pytest.mark.slow
def test_a_very_slow_follower_leaves_the_isr_but_stays_registered(
    cluster: Cluster, runtime: SimRuntime
) -> None:
    partition = cluster.partition("t", 0)
    slow = next(node for node in partition.replicas if node != partition.leader)
    cluster.broker(slow).disk.slow(2 * LAG_MS)
    runtime.scheduler.run_for(1_000)
    with cluster.producer(acks="all") as producer:
        producer.send("t", b"1").result()
    until(cluster, lambda: slow not in partition.isr)
    controller = cluster.controller.core
    assert controller is not None
    assert not controller.image.brokers[slow].is_fenced
    cluster.broker(slow).disk.slow(0)
    until(cluster, lambda: slow in partition.isr, 4 * LAG_MS)
    assert len(set(partition.end_offsets.values())) == 1


def test_only_writes_are_slow(cluster: Cluster, runtime: SimRuntime) -> None:
    for node in (1, 2, 3):
        cluster.broker(node).disk.slow(2 * LAG_MS)
    runtime.scheduler.run_for(3 * LAG_MS)
    assert len(cluster.partition("t", 0).isr) == 3


def test_writes_keep_their_order_when_the_disk_is_fast_again(
    cluster: Cluster, runtime: SimRuntime
) -> None:
    leader = leader_of(cluster, "t")
    leader.disk.slow(DELAY_MS)
    with cluster.producer(acks=1, linger_ms=0) as producer:
        first = producer.send("t", b"1")
        runtime.scheduler.run_for(10)
        leader.disk.slow(0)
        second = producer.send("t", b"2")
        producer.flush()
        assert (first.result().offset, second.result().offset) == (0, 1)


def test_a_killed_broker_writes_nothing_later(cluster: Cluster, runtime: SimRuntime) -> None:
    leader = leader_of(cluster, "t")
    leader.disk.slow(DELAY_MS)
    with cluster.producer(acks="all", linger_ms=0) as producer:
        sent = producer.send("t", b"1")
        runtime.scheduler.run_for(10)
        leader.kill()
        assert sent.result().offset == 0  # the next leader stored the record, once
        leader.start()
        leader.disk.slow(0)
        runtime.scheduler.run_for(3 * DELAY_MS)
    until(cluster, lambda: len(cluster.partition("t", 0).isr) == 3)
    assert set(cluster.partition("t", 0).end_offsets.values()) == {1}


@pytest.mark.parametrize("delay_ms", [-1, 0.5, None])
def test_invalid_delays_are_refused(cluster: Cluster, delay_ms: object) -> None:
    with pytest.raises(ConfigError, match="slow"):
        cluster.broker(1).disk.slow(delay_ms)  # type: ignore[arg-type]


def test_the_repr_of_a_disk_names_its_faults(cluster: Cluster) -> None:
    disk = cluster.broker(1).disk
    assert repr(disk) == "<BrokerDisk of broker 1, well>"
    disk.slow(5)
    disk.fill()
    assert repr(disk) == "<BrokerDisk of broker 1, full, slow by 5 ms>"
    with pytest.raises(ConfigError, match="is none of data/broker-1"):
        disk.fail("elsewhere")
    disk.free()


def test_a_directory_that_fails_is_offline_until_it_is_repaired(runtime: SimRuntime) -> None:
    with Cluster("own", brokers=3, log_dirs=["more"], runtime=runtime, is_embedded=True) as cluster:
        for number in range(4):
            cluster.create_topic(f"t{number}", 1, replication_factor=3)
        broker = cluster.broker(1)
        _, further = broker.disk.directories
        with cluster.producer(acks="all") as producer:
            for number in range(4):
                producer.send(f"t{number}", b"1").result()
            broker.disk.fail(further)
            for number in range(4):
                assert producer.send(f"t{number}", b"2").result().offset == 1
        parts = [cluster.partition(f"t{number}", 0) for number in range(4)]
        until(cluster, lambda: any(1 not in part.isr for part in parts))
        assert broker.is_running
        assert any(1 in part.isr for part in parts)
        assert any(found.kind == "offline" for found in cluster.health())
        broker.disk.repair()
        broker.stop()
        broker.start()
        until(cluster, lambda: all(1 in part.isr for part in parts))


def test_the_waiting_writes_of_a_lost_broker_are_never_made(runtime: SimRuntime) -> None:
    disk = SlowDisk(runtime)
    disk.delay_ms = DELAY_MS
    written: list[str] = []
    disk.write(lambda: written.append("before"))
    disk.forget()
    disk.write(lambda: written.append("after"))
    runtime.scheduler.run_for(2 * DELAY_MS)
    assert written == ["after"]
