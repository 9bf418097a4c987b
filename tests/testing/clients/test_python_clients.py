"""The settings of `client_config`, each taken unmodified by the client's constructor."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from embedlog.testing import Kafka

pytestmark = pytest.mark.interop


@pytest.fixture(params=[1, 3], ids=["one", "three"])
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    with Kafka(brokers=request.param, topics={"orders": 2}) as made:
        yield made


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_confluent(kafka: Kafka, protocol: str) -> None:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient

    producer = kafka.closing(Producer(kafka.client_config("confluent", "producer")))
    producer.produce("orders", b"x")
    assert producer.flush(10) == 0
    settings = kafka.client_config("confluent", group_id="g", group_protocol=protocol)
    consumer = kafka.closing(Consumer(settings))
    consumer.subscribe(["orders"])
    found = consumer.poll(20)
    assert found is not None and found.value() == b"x"
    admin = AdminClient(kafka.client_config("confluent", "admin"))
    assert "orders" in admin.list_topics(timeout=10).topics


def test_settings_without_a_role_suit_every_client_of_confluent(
    kafka: Kafka, capfd: pytest.CaptureFixture[str]
) -> None:
    from confluent_kafka import Consumer, Producer

    producer = Producer(kafka.client_config("confluent"))
    consumer = Consumer(kafka.client_config("confluent", **{"group.id": "g"}))
    producer.produce("orders", b"x")
    assert producer.flush(10) == 0
    consumer.close()
    del producer
    kafka.close()
    assert "CONFWARN" not in capfd.readouterr().err


def test_nothing_is_printed_about_a_lost_connection(
    kafka: Kafka, capfd: pytest.CaptureFixture[str]
) -> None:
    from confluent_kafka import Producer

    producer = kafka.closing(Producer(kafka.client_config("confluent", "producer")))
    producer.produce("orders", b"x")
    kafka.close()
    assert capfd.readouterr().err == ""


def test_kafka_python(kafka: Kafka) -> None:
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

    producer = kafka.closing(KafkaProducer(**kafka.client_config("kafka-python", "producer")))
    producer.send("orders", b"x").get(10)
    consumer = KafkaConsumer("orders", **kafka.client_config("kafka-python", group_id="g"))
    assert next(kafka.closing(consumer)).value == b"x"
    admin = KafkaAdminClient(**kafka.client_config("kafka-python", "admin"))
    assert "orders" in kafka.closing(admin).list_topics()
    for client in (KafkaProducer, KafkaConsumer, KafkaAdminClient):
        kafka.closing(client(**kafka.client_config("kafka-python")))


def test_aiokafka(kafka: Kafka) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.admin import AIOKafkaAdminClient

    async def run() -> None:
        async with AIOKafkaProducer(**kafka.client_config("aiokafka", "producer")) as producer:
            await producer.send_and_wait("orders", b"x")
        settings = kafka.client_config("aiokafka", group_id="g")
        async with AIOKafkaConsumer("orders", **settings) as consumer:
            assert (await consumer.getone()).value == b"x"
        admin = AIOKafkaAdminClient(**kafka.client_config("aiokafka", "admin"))
        await admin.start()
        assert "orders" in await admin.list_topics()
        await admin.close()
        common = kafka.client_config("aiokafka")
        async with AIOKafkaProducer(**common), AIOKafkaConsumer("orders", group_id="h", **common):
            pass

    asyncio.run(run())


def test_a_fenced_producer_is_closed_without_a_word(kafka: Kafka) -> None:
    """The test has provoked the error, and has seen it in a call of its own."""
    from confluent_kafka import KafkaException, Producer

    settings = kafka.client_config("confluent", "producer", transactional_id="id")
    fenced = kafka.closing(Producer(settings))
    fenced.init_transactions(10)
    with (
        kafka.fault("AddPartitionsToTxn", error="PRODUCER_FENCED"),
        pytest.raises(KafkaException) as raised,
    ):
        fenced.begin_transaction()
        fenced.produce("orders", b"x")
        fenced.commit_transaction(10)
    assert raised.value.args[0].fatal()
    with pytest.warns(RuntimeWarning, match="abort_transaction failed during close"):
        kafka.close_clients()


def test_a_second_member_joins_without_the_pause_of_a_heartbeat(kafka: Kafka) -> None:
    """With the default of 3 s the first member would learn of the second that late."""
    from confluent_kafka import Consumer

    first, second = (
        kafka.closing(Consumer(kafka.client_config("confluent", group_id="g"))) for _ in range(2)
    )
    first.subscribe(["orders"])
    while not first.assignment():
        first.poll(0.01)
    begin = time.monotonic()
    second.subscribe(["orders"])
    while len(first.assignment()) != 1 or len(second.assignment()) != 1:
        first.poll(0.01)
        second.poll(0.01)
    assert time.monotonic() - begin < 2


def test_a_fenced_producer_of_confluent_closes_without_an_error(kafka: Kafka) -> None:
    from confluent_kafka import KafkaException, Producer

    settings = kafka.client_config("confluent", "producer", transactional_id="tx")
    producer = kafka.closing(Producer(settings))
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("orders", b"x")
    producer.flush(20)
    kafka.transaction("tx").fence()
    with pytest.raises(KafkaException):
        producer.commit_transaction(20)
    kafka.close_clients()
