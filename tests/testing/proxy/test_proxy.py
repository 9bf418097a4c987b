"""A proxy in front of a cluster: addresses, versions, records, timeline, toxics, broken links."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import embedlog
from embedlog.errors import ConfigError
from embedlog.testing.proxy.proxy import Proxy
from tests.server.wire_client import WireClient


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open(brokers=3) as made:
        made.listen("127.0.0.1", 0)
        made.create_topic("orders", 6, replication_factor=3)
        yield made


@pytest.fixture
def proxy(cluster: embedlog.Cluster) -> Iterator[Proxy]:
    addresses = ",".join(each.address or "" for each in cluster.brokers)
    with Proxy(addresses) as made:
        yield made


def test_clients_only_meet_the_proxy_and_get_everything(
    cluster: embedlog.Cluster, proxy: Proxy
) -> None:
    with embedlog.Producer(proxy.bootstrap_servers) as producer:
        for number in range(60):
            producer.send("orders", b"%d" % number, key=b"%d" % number)
    with embedlog.Consumer(
        proxy.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe(["orders"])
        values: list[bytes | None] = []
        while len(values) < 60:
            values += [each.value for each in consumer.poll(timeout_ms=10_000)]
        consumer.commit()
        admin = embedlog.Admin(proxy.bootstrap_servers)
        nodes = {f"{each.host}:{each.port}" for each in admin.describe_cluster().nodes.values()}
    assert sorted(values, key=lambda v: int(v or b"0")) == [b"%d" % n for n in range(60)]
    real = {each.address for each in cluster.brokers}
    assert nodes == set(proxy.addresses.values()) and not nodes & real
    assert set(proxy.addresses) == {1, 2, 3}


def test_the_timeline_knows_topics_by_their_ids(proxy: Proxy) -> None:
    with proxy.record() as log, embedlog.Producer(proxy.bootstrap_servers) as producer:
        producer.send("orders", b"x").result()
    (produced,) = log.requests("Produce", topic="orders")
    assert produced.node_id in (1, 2, 3) and produced.errors == ()


def test_toxics_act_on_the_clients_of_the_proxy(proxy: Proxy) -> None:
    host, _, port = proxy.bootstrap_servers.rpartition(":")
    with proxy.toxic(latency=30) as toxic, WireClient((host, int(port))) as client:
        client.sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            client.versions()
        assert toxic.connections == 1
        client.sock.settimeout(20)
    with WireClient((host, int(port))) as client:
        assert client.versions().api_keys
        proxy.cut_connections()
        assert client.is_closed()


def test_a_broker_that_dies_breaks_its_clients_and_others_lead(
    cluster: embedlog.Cluster, proxy: Proxy
) -> None:
    with embedlog.Producer(proxy.bootstrap_servers, delivery_timeout_ms=60_000) as producer:
        producer.send("orders", b"1", partition=0).result()
        leader = cluster.partition("orders", 0).leader
        assert leader is not None
        cluster.broker(leader).kill()
        producer.send("orders", b"2", partition=0).result()
        cluster.broker(leader).start()
    ends = cluster.partition("orders", 0).end_offsets
    assert max(end for end in ends.values() if end is not None) == 2


def test_a_produce_without_acknowledgement_goes_through(proxy: Proxy) -> None:
    with embedlog.Producer(proxy.bootstrap_servers, acks=0, enable_idempotence=False) as producer:
        producer.send("orders", b"x", partition=1)
        producer.flush()
    with embedlog.Consumer(proxy.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([embedlog.TopicPartition("orders", 1)])
        assert [each.value for each in consumer.poll(timeout_ms=10_000)] == [b"x"]


def test_an_address_that_nobody_serves_breaks_the_connection() -> None:
    with Proxy("127.0.0.1:1") as proxy:
        host, _, port = proxy.bootstrap_servers.rpartition(":")
        with WireClient((host, int(port))) as client:
            from wire.schemas.metadata import MetadataRequest

            client.send(MetadataRequest(topics=None), 5)
            assert client.is_closed()


@pytest.mark.parametrize("given", ["", "localhost", "localhost:x", []])
def test_wrong_addresses_are_refused(given: object) -> None:
    with pytest.raises(ConfigError):
        Proxy(given)  # type: ignore[arg-type]
