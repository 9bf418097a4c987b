"""Real clients against personas: they choose older versions and protocols, and work."""

from __future__ import annotations

import asyncio

import pytest

from embedlog.testing import Kafka

pytestmark = pytest.mark.interop

confluent = pytest.importorskip("confluent_kafka")
PERSONAS = ("kafka-1.1", "kafka-2.8", "kafka-3.9", "kafka-4.3", "redpanda-24.3")


@pytest.mark.parametrize("persona", PERSONAS)
def test_confluent_kafka_produces_and_consumes(persona: str) -> None:
    with Kafka(persona=persona, topics={"t": 1}) as kafka:
        producer = confluent.Producer({"bootstrap.servers": kafka.bootstrap_servers})
        producer.produce("t", b"x")
        assert producer.flush(20) == 0
        consumer = confluent.Consumer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": "g",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["t"])
        record = consumer.poll(20)
        assert record is not None and record.value() == b"x"
        consumer.close()


@pytest.mark.parametrize("persona", ("kafka-2.0", "kafka-3.3", "redpanda-24.3"))
def test_aiokafka_produces_and_consumes(persona: str) -> None:
    aiokafka = pytest.importorskip("aiokafka")

    async def run(address: str) -> bytes | None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=address)
        async with producer:
            await producer.send_and_wait("t", b"x")
        consumer = aiokafka.AIOKafkaConsumer(
            "t", bootstrap_servers=address, group_id="g", auto_offset_reset="earliest"
        )
        async with consumer:
            record = await asyncio.wait_for(consumer.getone(), 30)
        value: bytes | None = record.value
        return value

    with Kafka(persona=persona, topics={"t": 1}) as kafka:
        assert asyncio.run(run(kafka.bootstrap_servers)) == b"x"


@pytest.mark.parametrize("persona", ("kafka-1.1", "kafka-3.3", "redpanda-24.3"))
def test_kafka_python_produces_and_consumes(persona: str) -> None:
    kafka_python = pytest.importorskip("kafka")
    with Kafka(persona=persona, topics={"t": 1}) as kafka:
        producer = kafka_python.KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
        producer.send("t", b"x").get(timeout=30)
        producer.close()
        consumer = kafka_python.KafkaConsumer(
            "t",
            bootstrap_servers=kafka.bootstrap_servers,
            group_id="g",
            auto_offset_reset="earliest",
            consumer_timeout_ms=30_000,
        )
        assert next(consumer).value == b"x"
        consumer.close()
