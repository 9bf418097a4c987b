"""The schema registry belongs to the state of a cluster."""

from __future__ import annotations

import pytest

from embedlog.testing import Kafka

pytest.importorskip("waitress")
pytest.importorskip("avro")

STRING = '{"type": "string"}'


def test_a_state_has_the_subjects_of_its_moment() -> None:
    with Kafka() as kafka:
        kafka.registry.register("one", STRING)
        saved = kafka.snapshot()
        kafka.registry.register("two", STRING)
        with kafka.fork() as other:
            assert other.registry.subjects() == ["one", "two"]
        kafka.restore(saved)
        assert kafka.registry.subjects() == ["one"]
