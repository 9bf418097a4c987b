"""Fixtures of the recipes: the service under test, and clients of confluent-kafka."""

from __future__ import annotations

import pytest

from tests.testing.recipes.services import SERVICES


@pytest.fixture(params=SERVICES)
def service(request, kafka):
    """The service under test: `send(topic, *values)` and `read(topic, count)`."""
    made = SERVICES[request.param]
    return made(kafka)


@pytest.fixture
def producer(kafka):
    """A producer of confluent-kafka."""
    from confluent_kafka import Producer

    return kafka.closing(Producer(kafka.client_config("confluent", "producer")))


@pytest.fixture
def consumer(kafka):
    """Returns consumers of confluent-kafka in the group "billing"."""
    from confluent_kafka import Consumer

    def made(**settings):
        settings = kafka.client_config("confluent", group_id="billing", **settings)
        return kafka.closing(Consumer(settings))

    return made
