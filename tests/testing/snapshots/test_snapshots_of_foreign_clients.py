"""Restore, reset and fork under live clients of confluent-kafka and kafka-python."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from embedlog.testing import Kafka

pytestmark = [pytest.mark.interop, pytest.mark.slow]

DEADLINE_S = 60


def until(condition: Callable[[], Any], what: str) -> Any:
    """Call the condition, which takes a moment, until its result is true."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if found := condition():
            return found
    raise AssertionError(f"not within {DEADLINE_S} s: {what}")


@pytest.fixture(params=[1, 3])
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    with Kafka(brokers=request.param, topics={"t": 1}) as made:
        yield made


def send(kafka: Kafka, *values: bytes) -> None:
    with kafka.cluster.producer() as producer:
        for each in values:
            producer.send("t", each).result()


def read(kafka: Kafka) -> list[bytes | None]:
    with kafka.cluster.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0)])
        found: list[bytes | None] = []
        while records := consumer.poll(500):
            found += [each.value for each in records]
        return found


def got(consumer: Consumer) -> bytes | None:
    """Return the value of the next record, None if there is none yet."""
    message = consumer.poll(0.1)
    if message is None or message.error():
        return None
    value: bytes = message.value()
    return value


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_live_consumer_reads_on_after_a_restore(kafka: Kafka, protocol: str) -> None:
    send(kafka, b"a")
    saved = kafka.snapshot()
    send(kafka, b"gone", b"gone too")
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "g",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 1000,
        }
    )
    consumer.subscribe(["t"])
    seen = [until(lambda: got(consumer), "a record") for _ in range(3)]
    assert seen == [b"a", b"gone", b"gone too"]
    kafka.restore(saved)
    send(kafka, *(b"%d" % each for each in range(5)))
    until(lambda: got(consumer) == b"4", "the last record after the restore")
    consumer.close()


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_a_live_producer_goes_on_after_a_restore(kafka: Kafka, is_idempotent: bool) -> None:
    saved = kafka.snapshot()
    errors: list[Any] = []
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": is_idempotent}
    )

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            errors.append(error)

    for each in (b"a", b"b"):
        producer.produce("t", each, callback=delivered)
        assert producer.flush(DEADLINE_S) == 0
    kafka.restore(saved)
    for each in (b"c", b"d"):
        producer.produce("t", each, callback=delivered)
    assert producer.flush(DEADLINE_S) == 0
    assert errors == []
    assert read(kafka) == [b"c", b"d"]


def test_a_producer_whose_records_are_in_the_state_goes_on(kafka: Kafka) -> None:
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("t", b"a", callback=lambda error, _: errors.append(error))
    assert producer.flush(DEADLINE_S) == 0
    saved = kafka.snapshot()
    producer.produce("t", b"gone", callback=lambda error, _: errors.append(error))
    assert producer.flush(DEADLINE_S) == 0
    kafka.restore(saved)
    producer.produce("t", b"b", callback=lambda error, _: errors.append(error))
    assert producer.flush(DEADLINE_S) == 0
    assert errors == [None] * 3
    assert read(kafka) == [b"a", b"b"]


def test_clients_of_kafka_python_go_on_after_a_reset(kafka: Kafka) -> None:
    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, retries=100, enable_idempotence=False
    )
    consumer = KafkaConsumer(
        "t",
        bootstrap_servers=kafka.bootstrap_servers,
        group_id="g",
        auto_offset_reset="earliest",
        metadata_max_age_ms=1000,
    )
    producer.send("t", b"a").get(DEADLINE_S)
    until(lambda: consumer.poll(100), "the first record")
    kafka.reset()
    for each in range(3):
        producer.send("t", b"%d" % each).get(DEADLINE_S)
    assert read(kafka) == [b"0", b"1", b"2"]

    def last() -> bool:
        return any(
            record.value == b"2" for found in consumer.poll(100).values() for record in found
        )

    until(last, "the last record after the reset")
    producer.close()
    consumer.close()


def test_a_fork_serves_at_its_own_addresses(kafka: Kafka) -> None:
    send(kafka, b"a")
    with kafka.fork() as other:
        producer = Producer({"bootstrap.servers": other.bootstrap_servers})
        producer.produce("t", b"fork")
        assert producer.flush(DEADLINE_S) == 0
        assert read(other) == [b"a", b"fork"]
        assert read(kafka) == [b"a"]
