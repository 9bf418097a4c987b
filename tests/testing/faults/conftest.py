"""A cluster for the tests of rules, and the values in its log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from embedlog.broker.context import RequestContext
from embedlog.runtime.pending import Pending
from embedlog.testing import Kafka

Values = Callable[..., list[bytes]]
Ask = Callable[..., Any]


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


@pytest.fixture
def ask(kafka: Kafka) -> Ask:
    """Return a function that returns the answer of a broker's door."""

    def send(request: Any, version: int = -1, *, node: int = 1, **sender: Any) -> Any:
        declared = type(request).__declaration__
        version = declared.last_version if version < 0 else version
        context = RequestContext(declared.api, version, **sender)
        answer = kafka.broker(node).core.handle(context, request)
        if isinstance(answer, Pending):
            assert kafka.cluster.runtime.scheduler.wait(answer, 5_000)
            return answer.result()
        return answer

    return send
