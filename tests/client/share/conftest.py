"""The brokers that serve share groups."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client.share.places import Connect, Place
from tests.support.kafka import real_kafka

KAFKA = pytest.param("kafka", marks=[pytest.mark.interop, pytest.mark.slow])


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real_kafka(tmp_path_factory.mktemp("kafka"), settings=SETTINGS) as listening:
        yield listening


SETTINGS = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.session.timeout.ms": "1000",
}


@pytest.fixture(params=[KAFKA])
def connect(request: pytest.FixtureRequest) -> Connect:
    """Return a function that makes a new target for each client."""
    address = request.getfixturevalue("kafka")
    return lambda: address


@pytest.fixture
def place(connect: Connect) -> Place:
    return Place(connect, 1)
