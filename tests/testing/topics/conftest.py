"""Fixtures of the tests about topics: a cluster of one broker, and of one and three in turn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.testing import Kafka


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    """One broker with the topics `orders` of one partition, `users` of three, and `out`."""
    with Kafka(topics={"orders": 1, "users": 3, "out": 1}) as made:
        yield made


@pytest.fixture(params=[1, 3])
def any_kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """One broker, and three with three replicas of each partition; the same topics."""
    counts = {"orders": 1, "users": 3, "out": 1}
    replicas = {"replication_factor": request.param, "config": {"min.insync.replicas": 1}}
    topics = {name: {"partitions": count, **replicas} for name, count in counts.items()}
    with Kafka(brokers=request.param, topics=topics) as made:
        yield made
