"""Fault rules of a proxy: the cluster behind it does the work, or does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import embedlog
from embedlog.errors import NotEnoughReplicas, TimedOut
from embedlog.testing import Proxy, UnfiredFault


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as made:
        made.listen("127.0.0.1", 0)
        made.create_topic("orders", 2)
        made.create_topic("others", 2)
        yield made


@pytest.fixture
def proxy(cluster: embedlog.Cluster) -> Iterator[Proxy]:
    with Proxy(cluster.brokers[0].address or "") as made:
        yield made


def _ends(cluster: embedlog.Cluster, topic: str) -> list[int]:
    return [cluster.partition(topic, index).end_offsets[1] or 0 for index in (0, 1)]


def test_an_error_at_one_topic_is_retried_and_the_rest_is_done(
    cluster: embedlog.Cluster, proxy: Proxy
) -> None:
    with embedlog.Producer(proxy.bootstrap_servers, retry_backoff_ms=1) as producer:
        producer.send("orders", b"first", partition=1).result()
        with proxy.fault("Produce", topic="orders", error="NOT_ENOUGH_REPLICAS", times=2) as fault:
            producer.send("others", b"x", partition=0).result()
            producer.send("orders", b"x", partition=0).result()
    assert fault.hits == 2
    assert (_ends(cluster, "orders"), _ends(cluster, "others")) == ([1, 1], [1, 0])


def test_a_refused_record_never_reaches_the_cluster(
    cluster: embedlog.Cluster, proxy: Proxy
) -> None:
    settings = {"retries": 0, "request_timeout_ms": 4_000, "delivery_timeout_ms": 5_000}
    with (
        embedlog.Producer(proxy.bootstrap_servers, **settings) as producer,
        proxy.fault("Produce", error="NOT_ENOUGH_REPLICAS", always=True),
        pytest.raises((NotEnoughReplicas, TimedOut)),
    ):
        producer.send("orders", b"x", partition=0).result()
    assert _ends(cluster, "orders") == [0, 0]


def test_an_answer_that_is_lost_after_the_work_leaves_one_record_of_an_idempotent_producer(
    cluster: embedlog.Cluster, proxy: Proxy
) -> None:
    with (
        embedlog.Producer(proxy.bootstrap_servers, reconnect_backoff_ms=1) as producer,
        proxy.record() as log,
        proxy.fault("Produce", action="cut-after-apply") as fault,
    ):
        producer.send("orders", b"x", partition=0).result()
    assert fault.hits == 1 and log.count("Produce") == 2 and log.of_kind("fault")
    assert _ends(cluster, "orders") == [1, 0]


@pytest.mark.slow
def test_an_error_of_a_partition_meets_every_fetch_of_it(
    cluster: embedlog.Cluster, proxy: Proxy
) -> None:
    with cluster.producer() as producer:
        producer.send("orders", b"x", partition=0).result()
    with embedlog.Consumer(proxy.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([embedlog.TopicPartition("orders", each) for each in (0, 1)])
        with proxy.fault(
            "Fetch", topic="orders", partition=0, error="REPLICA_NOT_AVAILABLE", times=3
        ) as fault:
            values: list[bytes | None] = []
            while not values:
                values = [each.value for each in consumer.poll(timeout_ms=10_000)]
    assert fault.hits == 3 and values == [b"x"]


def test_a_held_request_goes_on(cluster: embedlog.Cluster, proxy: Proxy) -> None:
    with embedlog.Producer(proxy.bootstrap_servers) as producer, proxy.hold("Produce") as hold:
        future = producer.send("orders", b"x", partition=0)
        hold.wait(timeout=20)
        assert _ends(cluster, "orders") == [0, 0]
        hold.release()
        future.result()
    assert _ends(cluster, "orders") == [1, 0]


def test_a_rule_that_never_acts_fails_the_end(cluster: embedlog.Cluster) -> None:
    proxy = Proxy(cluster.brokers[0].address or "")
    proxy.fault("EndTxn", error="INVALID_TXN_STATE")
    with pytest.raises(UnfiredFault):
        proxy.close()
    with pytest.raises(UnfiredFault), Proxy(cluster.brokers[0].address or "") as proxy:
        proxy.fault("EndTxn", error="INVALID_TXN_STATE")
    with pytest.raises(ZeroDivisionError), Proxy(cluster.brokers[0].address or "") as proxy:
        proxy.fault("EndTxn", error="INVALID_TXN_STATE")
        1 / 0  # noqa: B018
