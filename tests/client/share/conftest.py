"""The brokers that serve share groups: Apache Kafka, embedlog in process, embedlog over TCP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import embedlog
from tests.client.share.places import Connect, Place
from tests.support.kafka import real_kafka

SETTINGS = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.session.timeout.ms": "1000",
}
BROKERS = [
    pytest.param("kafka", marks=[pytest.mark.interop, pytest.mark.slow]),
    pytest.param("in process", marks=pytest.mark.slow),
    pytest.param("tcp", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real_kafka(tmp_path_factory.mktemp("kafka"), settings=SETTINGS) as listening:
        yield listening


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open(config=SETTINGS) as opened:
        yield opened


@pytest.fixture(params=BROKERS)
def connect(request: pytest.FixtureRequest) -> Connect:
    """Return a function that makes a new target for each client."""
    if request.param == "kafka":
        address = request.getfixturevalue("kafka")
        return lambda: address
    cluster = request.getfixturevalue("cluster")
    if request.param == "in process":
        return lambda: cluster
    listener = cluster.listen("127.0.0.1", 0)
    return lambda: listener.address


@pytest.fixture
def place(connect: Connect) -> Place:
    return Place(connect, 1)
