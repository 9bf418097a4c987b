"""Several brokers over TCP: each keeps its address over restarts, and Kafka's clients find them
all.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest

import embedlog
from embedlog import Cluster, Consumer, Producer
from tests.golden.batches import simple
from tests.golden.requests import produce
from tests.golden.run import Run
from tests.golden.targets import Address
from wire.error_codes import ErrorCode


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


def test_our_clients_write_and_read_while_a_leader_is_killed(cluster: Cluster) -> None:
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


def test_a_stopping_leader_names_the_new_leader_before_it_closes_connections(
    cluster: Cluster,
) -> None:
    """Some clients refresh their metadata only every few seconds; this tells them sooner."""
    cluster.listen()
    cluster.create_topic("t", 1, replication_factor=3)
    former = cluster.broker(cluster.partition("t", 0).leader)
    assert former.address is not None
    topic = "t", former.core.image.topics_by_name["t"].topic_id
    client = Run(Address(former.address), "produces")
    client.send(produce(topic, 12, simple(b"before")), 12)
    ending = Thread(target=former.stop)
    ending.start()
    codes = []
    while (answer := client.send(produce(topic, 12, simple(b"v")), 12)) is not None:
        told = answer.responses[0].partition_responses[0]
        codes.append(told.error_code)
        if told.error_code:
            assert told.current_leader.leader_id not in (former.node_id, -1)
    ending.join()
    assert codes[-1] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    client.close()


def test_a_closed_address_may_be_opened_again(cluster: Cluster) -> None:
    listener = cluster.listen()
    listener.close()
    assert listener.addresses == {}
    assert len(cluster.listen().addresses) == 3
