"""Clusters for the scenarios: one a module, clean after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.testing import Kafka

CONFIG = {
    "auto.create.topics.enable": False,
    "group.min.session.timeout.ms": 100,
    "group.consumer.min.session.timeout.ms": 100,
    "group.consumer.session.timeout.ms": 2_000,
    "group.consumer.min.heartbeat.interval.ms": 20,
    "group.consumer.heartbeat.interval.ms": 50,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}


@pytest.fixture(scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """The cluster of a module, with as many brokers as its constant BROKERS says."""
    brokers = getattr(request.module, "BROKERS", 1)
    racks = ["a", "b", "c"] if brokers == 3 else ()
    config = CONFIG | getattr(request.module, "CONFIG", {})
    with Kafka(brokers=brokers, racks=racks, config=config) as made:
        yield made


@pytest.fixture
def kafka(shared: Kafka) -> Iterator[Kafka]:
    """The module's cluster. After a test its clients are closed and its rules are checked."""
    yield shared
    shared.close_clients()
    shared.faults.clear()
    for broker in shared.brokers:
        if not broker.is_running:
            broker.start()


@pytest.fixture
def topic(kafka: Kafka, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own with one partition, a replica on each broker."""
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    kafka.create_topic(name, 1, replication_factor=len(kafka.brokers))
    return name
