"""Fixtures for the tests of the control door."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.testing import Kafka, RemoteKafka


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    """A cluster of three brokers with a control door."""
    with Kafka(brokers=3, topics={"t": {"partitions": 1, "replication_factor": 3}}) as made:
        made.control()
        yield made


@pytest.fixture
def remote(kafka: Kafka) -> RemoteKafka:
    """The same cluster over HTTP."""
    return RemoteKafka(kafka.control().url)
