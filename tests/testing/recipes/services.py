"""The service under test, written three times: with confluent-kafka, kafka-python and aiokafka.

Your code stands here. `client_config` gives it settings that do not wait in tests.
"""

from __future__ import annotations

import asyncio

TIMEOUT = 60


class WithConfluent:
    """The service with confluent-kafka."""

    def __init__(self, kafka):
        self.kafka = kafka

    def send(self, topic, *values, key=None, idempotent=True):
        from confluent_kafka import KafkaException, Producer

        settings = self.kafka.client_config("confluent", "producer", enable_idempotence=idempotent)
        producer = self.kafka.closing(Producer(settings))
        failed = []
        for value in values:
            producer.produce(topic, value, key, on_delivery=lambda e, _: e and failed.append(e))
        producer.flush(TIMEOUT)
        if failed:
            raise KafkaException(failed[0])

    def read(self, topic, count, group="billing"):
        from confluent_kafka import Consumer

        settings = self.kafka.client_config(
            "confluent", group_id=group, enable_auto_commit=False, isolation_level="read_committed"
        )
        consumer = self.kafka.closing(Consumer(settings))
        consumer.subscribe([topic])
        values = []
        while len(values) < count:
            message = consumer.poll(TIMEOUT)
            assert message is not None, values
            if message.error() is None:
                values.append(message.value())
        consumer.commit(asynchronous=False)
        consumer.close()
        return values


class WithKafkaPython:
    """The service with kafka-python."""

    def __init__(self, kafka):
        self.kafka = kafka

    def send(self, topic, *values, key=None, idempotent=True):
        from kafka import KafkaProducer

        settings = self.kafka.client_config(
            "kafka-python",
            "producer",
            enable_idempotence=idempotent,
            acks="all",
            retries=20,
        )
        producer = self.kafka.closing(KafkaProducer(**settings))
        futures = [producer.send(topic, value, key) for value in values]
        for future in futures:
            future.get(TIMEOUT)

    def read(self, topic, count, group="billing"):
        from kafka import KafkaConsumer
        from kafka.errors import KafkaConnectionError

        settings = self.kafka.client_config(
            "kafka-python",
            group_id=group,
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        consumer = self.kafka.closing(KafkaConsumer(topic, **settings))
        values = []
        while len(values) < count:
            try:
                found = consumer.poll(TIMEOUT * 1000, max_records=count - len(values))
            except KafkaConnectionError:  # it has tried a broker that is down
                continue
            values += [each.value for records in found.values() for each in records]
        consumer.commit()
        consumer.close()
        return values


class WithAiokafka:
    """The service with aiokafka."""

    def __init__(self, kafka):
        self.kafka = kafka

    def send(self, topic, *values, key=None, idempotent=True):
        asyncio.run(self._send(topic, values, key, idempotent))

    async def _send(self, topic, values, key, idempotent):
        from aiokafka import AIOKafkaProducer

        settings = self.kafka.client_config("aiokafka", "producer", enable_idempotence=idempotent)
        async with AIOKafkaProducer(**settings, acks="all") as producer:
            for future in [await producer.send(topic, value, key) for value in values]:
                await asyncio.wait_for(future, TIMEOUT)

    def read(self, topic, count, group="billing"):
        return asyncio.run(self._read(topic, count, group))

    async def _read(self, topic, count, group):
        from aiokafka import AIOKafkaConsumer

        settings = self.kafka.client_config(
            "aiokafka", group_id=group, enable_auto_commit=False, isolation_level="read_committed"
        )
        async with AIOKafkaConsumer(topic, **settings) as consumer:
            values = []
            while len(values) < count:
                record = await asyncio.wait_for(consumer.getone(), TIMEOUT)
                values.append(record.value)
            await consumer.commit()
        return values


SERVICES = {
    "confluent": WithConfluent,
    "kafka-python": WithKafkaPython,
    "aiokafka": WithAiokafka,
}
