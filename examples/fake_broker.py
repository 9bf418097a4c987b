"""A unit test of an application that talks to Kafka, with embedlog as its broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

import embedlog


def place_order(bootstrap: str, order: bytes) -> None:
    """The application under test: an ordinary Kafka producer."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("orders", order)
    producer.flush(10)


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as cluster:  # in memory, gone afterwards
        yield cluster


def test_an_order_is_placed(cluster: embedlog.Cluster) -> None:
    listener = cluster.listen("127.0.0.1", 0)
    place_order(listener.address, b"one coffee")
    with cluster.consumer() as consumer:  # the same log, without a socket
        consumer.assign([("orders", 0)])
        consumer.seek_to_beginning()
        assert [record.value for record in consumer.poll(1000)] == [b"one coffee"]
