"""A cluster without pytest's fixtures: decorator and mixin of `unittest`."""

from __future__ import annotations

import asyncio
import os
import unittest
import warnings
from inspect import signature
from typing import Any, ClassVar

import pytest

from embedlog.errors import ClosedError, ConfigError
from embedlog.testing import Kafka, KafkaTestCase, LeakWarning, with_kafka

pytestmark = pytest.mark.slow


def test_a_decorated_function_gets_a_cluster_and_closes_it() -> None:
    kept: list[Kafka] = []

    @with_kafka(brokers=2, topics={"orders": 3})
    def use(number: int, kafka: Kafka) -> int:
        kept.append(kafka)
        assert kafka.cluster.topics == ["orders"]
        return number * len(kafka.brokers)

    assert list(signature(use).parameters) == ["number"]
    assert use(5) == 10  # type: ignore[call-arg]
    with pytest.raises(ClosedError):
        _ = kept[0].cluster.topics


def test_a_decorated_coroutine_function_gets_a_cluster() -> None:
    @with_kafka("log", topics={"orders": 3})
    async def use(log: Kafka) -> list[str]:
        return log.cluster.topics

    assert asyncio.run(use()) == ["orders"]  # type: ignore[call-arg]


@with_kafka(topics={"orders": 1})
@pytest.mark.parametrize("number", [1, 2])
def test_pytest_sees_the_other_arguments(number: int, tmp_path: Any, kafka: Kafka) -> None:
    assert kafka.cluster.topics == ["orders"]
    assert number
    assert tmp_path


def test_wrong_arguments_are_refused_at_the_decoration() -> None:
    with pytest.raises(ConfigError, match="did you mean 'brokers'"):
        with_kafka(broker=3)
    with pytest.raises(ConfigError, match="with brackets"):
        with_kafka(lambda kafka: None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="has no argument 'kafka'"):
        with_kafka()(lambda: None)


def run(*cases: type[unittest.TestCase]) -> unittest.TestResult:
    result = unittest.TestResult()
    for case in cases:
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    return result


def test_each_test_of_a_class_has_a_cluster_also_if_it_forgets_the_base_class() -> None:
    ids: list[str] = []

    class Case(KafkaTestCase, unittest.TestCase):
        kafka_shape: ClassVar[Any] = {"topics": {"orders": 2}}

        def setUp(self) -> None:
            ids.append(self.kafka.cluster.cluster_id)

        def test_one(self) -> None:
            self.assertEqual(self.kafka.cluster.topics, ["orders"])

        def test_two(self) -> None:
            self.kafka.create_topic("bills", 1)

    assert run(Case).wasSuccessful()
    assert len(set(ids)) == 2


def test_a_class_can_have_one_cluster_and_variables_that_lead_to_it() -> None:
    seen: list[tuple[str, str | None]] = []

    class Case(KafkaTestCase, unittest.TestCase):
        kafka_scope = "class"
        kafka_env: ClassVar[Any] = ["KAFKA_BOOTSTRAP_SERVERS"]

        def test_one(self) -> None:
            address = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
            seen.append((self.kafka.bootstrap_servers, address))

        test_two = test_one

    class Other(KafkaTestCase, unittest.IsolatedAsyncioTestCase):
        async def test_one(self) -> None:
            address = self.kafka.bootstrap_servers
            seen.append((address, os.environ.get("KAFKA_BOOTSTRAP_SERVERS")))

    assert run(Case, Other).wasSuccessful()
    (first, variable), second, (other, nothing) = seen
    assert variable == first == second[0] != other
    assert nothing is None


def test_a_misspelt_scope_fails() -> None:
    class Case(KafkaTestCase, unittest.TestCase):
        kafka_scope = "module"

        def test_one(self) -> None:
            self.kafka.close()

    assert "expected test or class" in run(Case).errors[0][1]


def test_a_client_that_is_left_open_is_warned_of() -> None:
    import embedlog

    clients = []

    class Case(KafkaTestCase, unittest.TestCase):
        def test_one(self) -> None:
            producer = embedlog.Producer(self.kafka.bootstrap_servers, client_id="forgotten")
            clients.append(producer)
            producer.send("orders", b"x").result()

    with pytest.warns(LeakWarning, match="client 'forgotten'"):
        assert run(Case).wasSuccessful()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clients[0].close()
