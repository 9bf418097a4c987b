"""Whole suites: shared brokers, saved states, asyncio, old brokers."""

from __future__ import annotations

import asyncio
import os

import pytest

from embedlog.testing import Kafka, simulate

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize("number", range(3))
def test_one_broker_for_many(kafka_session, number):
    """Many tests on one broker

    `kafka_session` is one cluster for the run. Topics and groups that a test makes are deleted
    after it.
    """
    assert "orders" not in kafka_session.cluster.topics
    kafka_session.create_topic("orders", 1)
    kafka_session.topic("orders").put(b"%d" % number)
    assert len(kafka_session.topic("orders")) == 1


def test_names_under_xdist(kafka_session):
    """Parallel tests with xdist

    Each worker of `pytest -n 4` has a broker of its own, so nothing is shared. `name` makes names
    that no other test has, which also suits one real cluster: `pytest --kafka=HOST:9092`.
    """
    topic = kafka_session.name("orders")
    assert topic != "orders"
    kafka_session.create_topic(topic, 1)
    assert topic in kafka_session.cluster.topics


def test_a_failing_state_again(kafka, tmp_path):
    """Replay the state of a failure

    `save` writes the state into a directory. `load` opens a copy of it in a test, and
    `embedlog serve --data` serves it.
    """
    kafka.create_topic("orders", 1)
    kafka.topic("orders").put(b"the poison pill")
    kafka.commit("billing", {("orders", 0): 0})
    path = kafka.save(tmp_path / "state")
    with Kafka.load(path) as again:
        assert again.topic("orders").values() == [b"the poison pill"]
        assert again.group("billing").lag == 1


@pytest.fixture(scope="module")
def filled():
    with Kafka(topics={"orders": 1}) as kafka:
        kafka.topic("orders").fill(1_000)
        yield kafka.snapshot()


@pytest.mark.parametrize("number", range(3))
def test_one_state_for_many(filled, number):
    """Fill once, test many times

    A snapshot of the filled cluster opens in a millisecond or two, and each test may change its
    own copy.
    """
    with Kafka(saved=filled) as kafka:
        kafka.topic("orders").put(b"%d" % number)
        assert len(kafka.topic("orders")) == 1_001


@pytest.mark.kafka(topics={"orders": 1})
def test_an_asyncio_service(kafka):
    """A service with asyncio

    Waits have twins for asyncio, and the loop goes on meanwhile. With a plugin for asyncio the test
    itself may be `async def`.
    """
    from aiokafka import AIOKafkaConsumer

    async def main():
        settings = kafka.client_config("aiokafka", group_id="billing", auto_commit_interval_ms=50)
        async with AIOKafkaConsumer("orders", **settings) as consumer:
            await kafka.wait.aio.group("billing", members=1)
            kafka.topic("orders").put(b"1")
            assert (await consumer.getone()).value == b"1"
            await kafka.wait.aio.lag("billing", 0)

    asyncio.run(main())


@pytest.mark.kafka(persona="kafka-2.8", topics={"orders": 1})
@pytest.mark.kafka(persona="kafka-3.9", topics={"orders": 1})
def test_old_brokers(kafka, service):
    """The same test for several brokers

    Several marks are a matrix: the test runs once for each of them.
    """
    service.send("orders", b"1")
    assert service.read("orders", 1) == [b"1"]


@pytest.mark.kafka(topics={"orders": 1}, env="KAFKA_BOOTSTRAP_SERVERS")
def test_settings_from_the_environment(kafka):
    """A service that reads its address from the environment

    `env` sets the variable for the test.
    """
    assert os.environ["KAFKA_BOOTSTRAP_SERVERS"] == kafka.bootstrap_servers


@pytest.mark.kafka(topics={"orders": 1})
def test_the_requests_of_a_service(kafka, service):
    """Count the requests of a service

    The recording shows each request, and everything that happened because of it.
    """
    with kafka.record() as seen:
        service.send("orders", b"1", b"2", b"3")
    assert 1 <= seen.count("Produce", topic="orders") <= 3
    assert not seen.requests("Produce", error="UNKNOWN_TOPIC_OR_PARTITION")


@simulate(seeds=5, topics={"orders": 2})
def test_from_seeds(kafka):
    """The same test from many seeds

    The clients are embedlog's own, and time is simulated: an hour costs nothing. A seed that fails
    is in the report, and fails again.
    """
    kafka.commit("billing", {("orders", 0): 0, ("orders", 1): 0})
    producer, consumer = kafka.producer(), kafka.consumer(group_id="billing")
    consumer.subscribe(["orders"])
    for number in range(5):
        producer.send("orders", b"%d" % number).result()
        kafka.sleep(kafka.random.below(3_600_000))
    seen = []
    while len(seen) < 5:
        seen += [each.value for each in consumer.poll(1_000)]
    assert sorted(seen) == [b"0", b"1", b"2", b"3", b"4"]
