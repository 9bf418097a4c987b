"""A unit test of an application with embedlog as its broker, without a server, a port or waiting.

The application takes the target of its clients as a parameter: a cluster of this process in a test,
"host:port" in production.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import embedlog


class Shop:
    """The application. It takes orders from one topic and books shipments in another."""

    def __init__(self, target: embedlog.Cluster | str) -> None:
        self._producer = embedlog.Producer(target)
        self._consumer = embedlog.Consumer(
            target, group_id="shop", auto_offset_reset="earliest", enable_auto_commit=False
        )
        self._consumer.subscribe(["orders"])

    def work(self) -> int:
        """Ship the orders of one poll; return their number."""
        orders = self._consumer.poll(1000)
        booked = [
            self._producer.send("shipments", b"shipped: " + order.value, key=order.key)
            for order in orders
        ]
        for each in booked:
            each.result()  # raises if the broker refused the record; the order stays open
        self._consumer.commit()
        return len(orders)

    def close(self) -> None:
        """Leave the group and close the clients."""
        self._consumer.close()
        self._producer.close()


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as cluster:  # in memory, gone afterwards
        cluster.create_topic("orders", 2)
        cluster.create_topic("shipments", 1)
        yield cluster


def order(cluster: embedlog.Cluster, *orders: bytes) -> None:
    """Place orders, as customers do."""
    with cluster.producer() as producer:
        for each in orders:
            producer.send("orders", each, key=b"customer 1").result()


def shipments(cluster: embedlog.Cluster) -> list[bytes]:
    """Return the values of all booked shipments."""
    with cluster.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([("shipments", 0)])
        return [record.value for record in consumer.poll()]


def test_each_order_is_shipped(cluster: embedlog.Cluster) -> None:
    order(cluster, b"a kettle", b"a cup")
    shop = Shop(cluster)
    assert shop.work() == 2
    shop.close()
    assert shipments(cluster) == [b"shipped: a kettle", b"shipped: a cup"]


def test_a_shop_that_comes_back_ships_nothing_twice(cluster: embedlog.Cluster) -> None:
    order(cluster, b"a kettle")
    shop = Shop(cluster)
    shop.work()
    shop.close()
    order(cluster, b"a cup")
    shop = Shop(cluster)
    assert shop.work() == 1
    shop.close()
    assert shipments(cluster) == [b"shipped: a kettle", b"shipped: a cup"]


def test_an_order_that_could_not_be_booked_is_not_lost(cluster: embedlog.Cluster) -> None:
    order(cluster, b"a piano " * 100)
    topic = embedlog.ConfigResource(embedlog.ResourceType.TOPIC, "shipments")
    with cluster.admin() as admin:
        admin.alter_configs({topic: {"max.message.bytes": 500}}).check()
        shop = Shop(cluster)
        with pytest.raises(embedlog.errors.MessageTooLarge):
            shop.work()
        shop.close()
        admin.alter_configs({topic: {}}).check()
    shop = Shop(cluster)
    assert shop.work() == 1
    shop.close()
    assert len(shipments(cluster)) == 1
