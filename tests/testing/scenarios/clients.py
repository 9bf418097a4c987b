"""Clients of other projects, set up for short tests, and what the scenarios do with them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from embedlog.testing import Kafka

SECONDS = 20


# confluent-kafka: producers


def producer(kafka: Kafka, **settings: Any) -> Producer:
    """Return a producer that the fixture closes."""
    return kafka.closing(Producer(kafka.client_config("confluent", "producer", **settings)))


def send(
    by: Producer,
    topic: str,
    values: Iterable[bytes],
    *,
    partition: int = 0,
    timeout: float = SECONDS,
) -> list[str]:
    """Send values, and return what each delivery report says: "offset 0", or an error's name."""
    reports: list[str] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        reports.append(error.name() if error else f"offset {message.offset()}")

    for value in values:
        by.produce(topic, value, partition=partition, on_delivery=on_delivery)
    assert by.flush(timeout) == 0
    return reports


def transactional(kafka: Kafka, name: str, **settings: Any) -> Producer:
    """Return a transactional producer that is ready to begin."""
    made = producer(kafka, transactional_id=name, **settings)
    made.init_transactions(SECONDS)
    return made


def failure(call: Any, *arguments: Any, **more: Any) -> KafkaError:
    """Return the error that a call raises."""
    try:
        call(*arguments, **more)
    except KafkaException as raised:
        error: KafkaError = raised.args[0]
        return error
    raise AssertionError(f"{call} has not failed")


# confluent-kafka: consumers


def consumer(kafka: Kafka, group: str = "unused", **settings: Any) -> Consumer:
    """Return a consumer that the fixture closes."""
    given = {"enable_auto_commit": False, **settings}
    return kafka.closing(
        Consumer(kafka.client_config("confluent", "consumer", group_id=group, **given))
    )


def member(kafka: Kafka, group: str, topic: str, *more: str, **settings: Any) -> Consumer:
    """Return a consumer that has subscribed."""
    made = consumer(kafka, group, **settings)
    made.subscribe([topic, *more])
    return made


def reader(kafka: Kafka, topic: str, *, offset: int = 0, **settings: Any) -> Consumer:
    """Return a consumer without a group that reads partition 0 from an offset on."""
    made = consumer(kafka, **settings)
    made.assign([TopicPartition(topic, 0, offset)])
    return made


def take(by: Consumer, count: int, timeout: float = SECONDS) -> list[bytes | None]:
    """Return the values of the next records; an error of the consumer fails the test."""
    found: list[bytes | None] = []
    while len(found) < count:
        message = by.poll(timeout)
        assert message is not None, f"{len(found)} of {count} records: {found}"
        if message.error():
            raise KafkaException(message.error())
        found.append(message.value())
    return found


def next_error(by: Consumer, timeout: float = SECONDS) -> KafkaError:
    """Return the next error of a consumer; a record before it fails the test."""
    message = by.poll(timeout)
    assert message is not None, "neither a record nor an error came"
    error = message.error()
    assert error is not None, message.value()
    return error


def nothing_comes(by: Consumer, seconds: float = 0.15) -> None:
    """Fail if a record or an error comes within a short time."""
    message = by.poll(seconds)
    assert message is None, message.error() or message.value()


def until_assigned(*members: Consumer, counts: Iterable[int], timeout: float = SECONDS) -> None:
    """Poll members in turn until they have these numbers of partitions, in any order."""
    wanted = sorted(counts)
    turns = round(timeout / 0.02)
    for _ in range(turns):
        for each in members:
            message = each.poll(0.02 / len(members))
            assert message is None or not message.error(), message.error()
        if sorted(len(each.assignment()) for each in members) == wanted:
            return
    raise AssertionError([each.assignment() for each in members])


def committed(kafka: Kafka, group: str, topic: str) -> int:
    """Return the offset that a group has committed for partition 0, or -1001."""
    by = consumer(kafka, group)
    return int(by.committed([TopicPartition(topic, 0)], SECONDS)[0].offset)


def admin(kafka: Kafka, **settings: Any) -> AdminClient:
    """Return an admin client."""
    return AdminClient(kafka.client_config("confluent", "admin", **settings))


# The same with other clients


def send_kafka_python(kafka: Kafka, topic: str, value: bytes, **settings: Any) -> int:
    """Send a value with kafka-python; return its offset."""
    from kafka import KafkaProducer

    given = kafka.client_config("kafka-python", "producer", **settings)
    by = kafka.closing(KafkaProducer(**given))
    return int(by.send(topic, value, partition=0).get(SECONDS).offset)


def send_aiokafka(kafka: Kafka, topic: str, value: bytes, **settings: Any) -> int:
    """Send a value with aiokafka; return its offset."""
    from aiokafka import AIOKafkaProducer

    async def main() -> int:
        by = AIOKafkaProducer(**kafka.client_config("aiokafka", "producer", **settings))
        await by.start()
        try:
            sent = await asyncio.wait_for(by.send_and_wait(topic, value, partition=0), SECONDS)
            return int(sent.offset)
        finally:
            await by.stop()

    return asyncio.run(main())


def send_embedlog(kafka: Kafka, topic: str, value: bytes, **settings: Any) -> int:
    """Send a value with this project's client over a socket; return its offset."""
    import embedlog

    given = kafka.client_config("embedlog", "producer", **settings)
    with embedlog.Producer(**given) as by:
        return int(by.send(topic, value, partition=0).result(SECONDS).offset)


def send_confluent(kafka: Kafka, topic: str, value: bytes, **settings: Any) -> int:
    """Send a value with confluent-kafka; return its offset."""
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    report = send(producer(kafka, **dotted), topic, [value])[0]
    return int(report.removeprefix("offset "))


SENDERS = {
    "confluent": send_confluent,
    "kafka-python": send_kafka_python,
    "aiokafka": send_aiokafka,
    "embedlog": send_embedlog,
}
"""Client -> a function that sends one value."""
