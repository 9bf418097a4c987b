"""Several brokers over TCP: each keeps its address over restarts, and Kafka's clients find them
all.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

import embedlog
from embedlog import Cluster, Consumer, Producer
from embedlog.errors import ConfigError
from tests.golden.batches import simple
from tests.golden.requests import produce
from tests.golden.run import Run
from tests.golden.targets import Address
from tests.server.wire_client import WireClient
from tests.support.kafka import free_port
from wire.error_codes import ErrorCode
from wire.schemas.metadata import MetadataRequest


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


def seen_by(address: str) -> dict[int, str]:
    """Return the brokers that the broker at an address names to its clients."""
    host, _, port = address.rpartition(":")
    with WireClient((host, int(port))) as client:
        found = client.ask(MetadataRequest(topics=[]), 9).brokers
    return {each.node_id: f"{each.host}:{each.port}" for each in found}


@pytest.mark.parametrize(
    ("advertised", "expected"),
    [
        ("PLAINTEXT://kafka:29999", {7: "kafka:29999", 8: "kafka:30000", 9: "kafka:30001"}),
        ("PLAINTEXT://kafka-{id}:9092", {n: f"kafka-{n}:9092" for n in (7, 8, 9)}),
    ],
)
def test_every_broker_names_the_same_advertised_addresses(
    advertised: str, expected: dict[int, str]
) -> None:
    settings = {"advertised.listeners": advertised, "node.id": 7}
    with embedlog.open(brokers=3, config=settings) as cluster:
        listener = cluster.listen()
        assert sorted(listener.addresses) == [7, 8, 9]
        for address in listener.addresses.values():
            assert seen_by(address) == expected
        stopped = cluster.broker(8)
        stopped.stop()
        stopped.start()
        assert seen_by(listener.addresses[9]) == expected


def test_listeners_gives_the_host_and_the_first_port_of_several() -> None:
    first = _free_ports(2)
    with embedlog.open(brokers=2, listeners=f"PLAINTEXT://localhost:{first}") as cluster:
        listener = cluster.listen()
        assert listener.addresses == {1: f"127.0.0.1:{first}", 2: f"127.0.0.1:{first + 1}"}
        named = {1: f"localhost:{first}", 2: f"localhost:{first + 1}"}
        assert seen_by(listener.addresses[2]) == named


def test_brokers_are_numbered_from_any_number_and_keep_it(tmp_path: Path) -> None:
    for settings in ({"node.id": 0}, {}, {"node.id": 1}):
        with embedlog.open(tmp_path / "zero", brokers=3, config=settings) as cluster:
            assert [each.node_id for each in cluster.brokers] == [0, 1, 2]
            if "t" not in cluster.topics:
                cluster.create_topic("t", 3, replication_factor=3)
            with cluster.producer(acks="all") as producer:
                for index in range(3):
                    producer.send("t", b"x", partition=index).result()
    with pytest.raises(ConfigError, match=r"node.id=7: the brokers of .*zero are numbered from 0"):
        embedlog.open(tmp_path / "zero", config={"node.id": 7})
    with embedlog.open(tmp_path / "zero") as cluster:
        assert cluster.add_broker().node_id == 3
    with embedlog.open(tmp_path / "zero") as cluster:
        assert [each.node_id for each in cluster.brokers] == [0, 1, 2, 3]


def test_a_directory_without_a_first_number_begins_at_1(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "older", brokers=2):
        pass
    properties = tmp_path / "older" / "cluster.properties"
    lines = properties.read_text().splitlines()
    assert lines.pop() == "first.node.id=1"
    properties.write_text("\n".join(lines) + "\n")
    with embedlog.open(tmp_path / "older") as cluster:
        assert [each.node_id for each in cluster.brokers] == [1, 2]


def _free_ports(count: int) -> int:
    """Return the first of successive ports that were free a moment ago."""
    while True:
        first = free_port()
        with contextlib.suppress(OSError), contextlib.ExitStack() as open_ports:
            for port in range(first, first + count):
                probe = open_ports.enter_context(socket.socket())
                probe.bind(("127.0.0.1", port))
            return first
