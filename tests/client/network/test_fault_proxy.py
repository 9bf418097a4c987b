"""The producer over sockets that break: at every request, in the middle of frames, for good."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import embedlog
from embedlog.client.admin.admin import Admin
from embedlog.runtime.randomness import seeded
from tests.client.fault_proxy import (
    PROXY_FAULTS,
    REQUEST_CUT,
    RESPONSE_CUT,
    FaultProxy,
    Once,
    produce_through,
)
from tests.client.faulty_network import REQUEST_LOST, RESPONSE_LOST, Plan, stored
from tests.support.kafka import real_kafka

PARTITIONS = 2


@pytest.fixture
def proxy() -> Iterator[FaultProxy]:
    with FaultProxy(Plan(seeded(1), 0)) as made:
        yield made


@pytest.fixture
def cluster(proxy: FaultProxy) -> Iterator[embedlog.Cluster]:
    """A cluster that advertises the proxy's address."""
    with embedlog.open(advertised_listeners=f"PLAINTEXT://{proxy.address}") as opened:
        listener = opened.listen("127.0.0.1", 0)
        proxy.upstream = ("127.0.0.1", listener.port)
        opened.create_topic("t", partitions=PARTITIONS)
        yield opened


def _check(cluster: embedlog.Cluster, topic: str, sent: list[list[bytes]]) -> None:
    assert [stored(cluster, topic, partition) for partition in range(PARTITIONS)] == sent


@pytest.mark.slow
@pytest.mark.parametrize("fault", [REQUEST_LOST, REQUEST_CUT, RESPONSE_LOST, RESPONSE_CUT])
@pytest.mark.parametrize("linger_ms", [0, 1])
def test_a_connection_may_end_at_every_request(
    proxy: FaultProxy, cluster: embedlog.Cluster, fault: str, linger_ms: int
) -> None:
    for at in range(8):
        topic = f"at-{at}"
        cluster.create_topic(topic, partitions=PARTITIONS)
        proxy.plan = plan = Once(fault, at)
        draw = seeded(at).below
        sent = produce_through(proxy.address, topic, PARTITIONS, draw, linger_ms=linger_ms)
        _check(cluster, topic, sent)
        assert plan.left < 0, "the fault happened"


@pytest.mark.slow
@pytest.mark.parametrize("fault", sorted(set(PROXY_FAULTS) - {REQUEST_LOST, RESPONSE_LOST}))
def test_other_faults_in_the_middle_of_the_work(
    proxy: FaultProxy, cluster: embedlog.Cluster, fault: str
) -> None:
    proxy.plan = plan = Once(fault, 4)
    sent = produce_through(proxy.address, "t", PARTITIONS, seeded(7).below)
    _check(cluster, "t", sent)
    assert plan.left < 0


@pytest.mark.slow
def test_many_faults_over_sockets(proxy: FaultProxy, cluster: embedlog.Cluster) -> None:
    for seed in range(20):
        topic = f"seed-{seed}"
        cluster.create_topic(topic, partitions=PARTITIONS)
        proxy.plan = Plan(seeded(seed + 500), 50, PROXY_FAULTS)
        linger_ms = seed % 2
        draw = seeded(seed).below
        sent = produce_through(proxy.address, topic, PARTITIONS, draw, linger_ms=linger_ms)
        _check(cluster, topic, sent)


def test_nothing_is_left_behind(proxy: FaultProxy, cluster: embedlog.Cluster) -> None:
    import os

    before = set(threading.enumerate())
    descriptors = 0
    for at in range(4):
        proxy.plan = Once(RESPONSE_CUT, at)
        topic = f"left-{at}"
        cluster.create_topic(topic, partitions=PARTITIONS)
        produce_through(proxy.address, topic, PARTITIONS, seeded(at).below)
        # Other threads of this process may end meanwhile; none of the producer's may stay.
        assert not set(threading.enumerate()) - before
        # The proxy and the broker notice the end of a connection only when they look at it.
        for _ in range(1000):
            if not proxy.pairs:
                break
            threading.Event().wait(0.01)
        if at == 0:
            descriptors = len(os.listdir("/proc/self/fd"))
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 2


def _kafkas_values(address: str, topic: str, partition: int) -> list[bytes | None]:
    """Return the values that a real broker has stored, read by another client."""
    from kafka import KafkaConsumer, TopicPartition

    key = TopicPartition(topic, partition)
    consumer = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest")
    try:
        consumer.assign([key])
        end = consumer.end_offsets([key])[key]
        values: list[bytes | None] = []
        while consumer.position(key) < end:
            for records in consumer.poll(1000).values():
                values += [record.value for record in records]
        return values
    finally:
        consumer.close()


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.timeout(600)
def test_a_real_kafka_behind_the_proxy(proxy: FaultProxy, tmp_path: Path) -> None:
    told = {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}
    with real_kafka(tmp_path, settings=told) as address:
        host, _, port = address.rpartition(":")
        proxy.upstream = (host, int(port))
        for seed in range(20):
            topic = f"seed-{seed}"
            proxy.plan = Plan(seeded(seed), 0)
            with Admin(proxy.address) as admin:
                admin.create_topics({topic: PARTITIONS}).check()
            proxy.plan = Plan(seeded(seed + 900), 60, PROXY_FAULTS)
            draw = seeded(seed).below
            sent = produce_through(proxy.address, topic, PARTITIONS, draw, linger_ms=seed % 3)
            proxy.plan = Plan(seeded(seed), 0)
            found = [_kafkas_values(proxy.address, topic, n) for n in range(PARTITIONS)]
            assert found == sent, f"seed {seed}"
