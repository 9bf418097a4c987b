"""Several brokers over TCP: an address each, kept over restarts; Kafka's clients find them all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import embedlog
from embedlog import Cluster, Consumer, Producer


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with embedlog.open(brokers=3) as made:
        yield made


def test_each_broker_has_an_address_and_keeps_it(cluster: Cluster) -> None:
    listener = cluster.listen()
    before = listener.addresses
    assert sorted(before) == [1, 2, 3]
    assert len(set(before.values())) == 3
    cluster.broker(2).kill()
    cluster.broker(2).start()
    assert listener.addresses == before


def test_two_brokers_swap_their_addresses(cluster: Cluster) -> None:
    listener = cluster.listen()
    before = listener.addresses
    cluster.broker(1).swap_address(cluster.broker(3))
    assert listener.addresses == {1: before[3], 2: before[2], 3: before[1]}


def test_our_clients_write_and_read_while_a_leader_dies(cluster: Cluster) -> None:
    cluster.create_topic("t", 3, replication_factor=3, config={"min.insync.replicas": "2"})
    address = cluster.listen().address
    with Producer(address, acks="all") as producer:
        for number in range(100):
            if number == 50:
                cluster.broker(cluster.partition("t", 0).leader).kill()
            producer.send("t", b"%d" % number, partition=number % 3).result()
    with Consumer(address, auto_offset_reset="earliest", group_id="g") as consumer:
        consumer.subscribe(["t"])
        values: set[bytes] = set()
        for _ in range(60):
            values |= {record.value for record in consumer.poll(1_000)}
            if len(values) == 100:
                break
    assert values == {b"%d" % number for number in range(100)}


def test_an_address_that_is_closed_may_be_opened_again(cluster: Cluster) -> None:
    listener = cluster.listen()
    listener.close()
    assert listener.addresses == {}
    assert len(cluster.listen().addresses) == 3
