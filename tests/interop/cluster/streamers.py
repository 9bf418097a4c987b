"""The producers and group members that are written in Python.

    python -m tests.interop.cluster.streamers CLIENT produce|consume ADDRESS TOPIC

A producer sends the numbers from 0, to partition `number % 3`, with acks=all and the client's own
retries; a member reads with the client's own commits. Until standard input ends they write

    acked NUMBER PARTITION OFFSET
    read PARTITION OFFSET NUMBER
    error TEXT                      any error that the client reports to its user

`Stream.java`, `stream.js` and `franz/` do the same.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from typing import Any

PARTITIONS = 3
PAUSE_S = 0.03
END_S = 60
POLL_MS = 5_000
"""A kafka-python poll that ends in the middle of a join loses the assignment for ever."""
_ended = threading.Event()


def say(*words: object) -> None:
    """Write one line, in one call."""
    os.write(1, (" ".join(str(word).replace("\n", " ") for word in words) + "\n").encode())


def _watch() -> None:
    sys.stdin.read()
    _ended.set()


def confluent_produce(address: str, topic: str) -> None:
    """librdkafka, idempotent."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": address,
            "acks": "all",
            "enable.idempotence": True,
            "error_cb": _librdkafka_error,
            "log_level": 0,
        }
    )

    def told(number: int, error: Any, message: Any) -> None:
        if error:
            say("error", error)
        else:
            say("acked", number, message.partition(), message.offset())

    number = 0
    while not _ended.wait(PAUSE_S):
        producer.produce(
            topic,
            b"%d" % number,
            partition=number % PARTITIONS,
            on_delivery=lambda error, message, number=number: told(number, error, message),
        )
        number += 1
        producer.poll(0)
    if producer.flush(END_S):
        say("error", "flush timed out")


def _librdkafka_error(error: Any) -> None:
    """Report an error, unless it is only a lost connection, which librdkafka mends itself."""
    if error.fatal():
        say("error", error)


def confluent_consume(address: str, topic: str) -> None:
    """librdkafka."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "error_cb": _librdkafka_error,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    while not _ended.is_set():
        for message in consumer.consume(100, 0.1):
            if message.error():
                say("error", message.error())
            else:
                say("read", message.partition(), message.offset(), int(message.value()))
    consumer.close()


def kafka_python_produce(address: str, topic: str) -> None:
    """kafka-python: idempotent by default."""
    import kafka

    producer = kafka.KafkaProducer(bootstrap_servers=address.split(","), acks="all")
    number = 0
    while not _ended.wait(PAUSE_S):
        sent = producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
        sent.add_callback(lambda at, number=number: say("acked", number, at.partition, at.offset))
        sent.add_errback(lambda error: say("error", repr(error)))
        number += 1
    producer.flush(END_S)
    producer.close()


def kafka_python_consume(address: str, topic: str) -> None:
    """kafka-python."""
    import kafka

    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=address.split(","),
        group_id=topic,
        auto_offset_reset="earliest",
    )
    while not _ended.is_set():
        for records in consumer.poll(POLL_MS).values():
            for record in records:
                say("read", record.partition, record.offset, int(record.value))
    consumer.close()


def aiokafka_produce(address: str, topic: str) -> None:
    """aiokafka, without idempotence."""
    asyncio.run(_aiokafka_produce(address, topic))


async def _aiokafka_produce(address: str, topic: str) -> None:
    import aiokafka

    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=address, acks="all")
    await producer.start()
    number = 0
    waiting: set[asyncio.Task[None]] = set()

    async def outcome(number: int, sent: Any) -> None:
        try:
            at = await sent
        except aiokafka.errors.KafkaError as error:
            say("error", repr(error))
        else:
            say("acked", number, at.partition, at.offset)

    while not _ended.is_set():
        sent = await producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
        task = asyncio.create_task(outcome(number, sent))
        waiting.add(task)
        task.add_done_callback(waiting.discard)
        number += 1
        await asyncio.sleep(PAUSE_S)
    await asyncio.wait_for(asyncio.gather(*waiting), END_S)
    await producer.stop()


def aiokafka_consume(address: str, topic: str) -> None:
    """aiokafka."""
    asyncio.run(_aiokafka_consume(address, topic))


async def _aiokafka_consume(address: str, topic: str) -> None:
    import aiokafka

    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=address, group_id=topic, auto_offset_reset="earliest"
    )
    await consumer.start()
    while not _ended.is_set():
        for records in (await consumer.getmany(timeout_ms=100)).values():
            for record in records:
                say("read", record.partition, record.offset, int(record.value))
    await consumer.stop()


def embedlog_produce(address: str, topic: str) -> None:
    """Our own, idempotent by default."""
    import embedlog

    def told(number: int, at: Any, error: Any) -> None:
        if error is not None:
            say("error", repr(error))
        else:
            say("acked", number, at.partition, at.offset)

    number = 0
    with embedlog.Producer(address) as producer:
        while not _ended.wait(PAUSE_S):
            producer.send(
                topic,
                b"%d" % number,
                partition=number % PARTITIONS,
                on_delivery=lambda at, error, number=number: told(number, at, error),
            )
            number += 1


def embedlog_consume(address: str, topic: str) -> None:
    """Our own, of the newer protocol."""
    import embedlog

    settings = {
        "group.id": topic, "group.protocol": "consumer", "auto.offset.reset": "earliest"
    }  # fmt: skip
    with embedlog.Consumer(address, settings) as consumer:
        consumer.subscribe([topic])
        while not _ended.is_set():
            for record in consumer.poll(100):
                say("read", record.partition, record.offset, int(record.value or b"-1"))


STREAMERS = {
    "confluent": (confluent_produce, confluent_consume),
    "kafka-python": (kafka_python_produce, kafka_python_consume),
    "aiokafka": (aiokafka_produce, aiokafka_consume),
    "embedlog": (embedlog_produce, embedlog_consume),
}


def main(client: str, role: str, address: str, topic: str) -> None:
    """Run one program; an exception is an error that reached its user."""
    logging.disable(logging.CRITICAL)
    threading.Thread(target=_watch, daemon=True).start()
    produce, consume = STREAMERS[client]
    try:
        (produce if role == "produce" else consume)(address, topic)
    except Exception as error:
        say("error", repr(error))
        raise


if __name__ == "__main__":
    main(*sys.argv[1:])
