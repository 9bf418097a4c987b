"""A cluster for the tests of rules, and the values in its log."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from embedlog.testing import Kafka

Values = Callable[..., list[bytes]]


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka(topics={"t": 1}) as made:
        yield made


@pytest.fixture
def values(kafka: Kafka) -> Values:
    """Return a function that returns the values of a topic's partitions."""

    def read(topic: str = "t", partitions: int = 1, **settings: object) -> list[bytes]:
        consumer = kafka.consumer(**settings)
        places = [(topic, partition) for partition in range(partitions)]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        left = sum(consumer.end_offsets(places).values())
        found: list[bytes] = []
        while len(found) < left:
            found += [record.value for record in consumer.poll(5_000)]
        consumer.close()
        return found

    return read
