"""The pytest plugin: fixtures for a Kafka cluster. Installing embedlog is enough to have them.

    def test_orders(kafka):
        kafka.create_topic("orders", 3)
        my_service(kafka.bootstrap_servers)

pytest loads this file in every project that has embedlog, so it imports nothing else of it before
a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from embedlog.testing.kafka import Kafka


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    """A fresh cluster for each test."""
    from embedlog.testing.kafka import Kafka

    with Kafka() as made:
        yield made
