"""The copiers that are written in Python: `python -m tests.interop.chains.workers NAME ...`.

The other arguments are the broker's address, the source, the target, and the number of records. The
group and the transactional id have the name of the target.
"""

from __future__ import annotations

import asyncio
import faulthandler
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

CHUNK = 10
PAUSE_S = 0.02
WAIT_S = 10
GIVES_UP = 5
"""One transaction in this number is aborted."""
LOST_S = 12
"""Longer than any call of a transaction while brokers are away for a second."""


@contextmanager
def ending_when_lost() -> Iterator[None]:
    """End the program, with the stacks of its threads, if the block takes too long.

    Two clients sometimes lose a request, and wait for its answer for ever:

        kafka-python 3.0.12  any request of a transaction whose coordinator refuses the connection:
                             after the exception `Sender._maybe_send_pending_request` never retries
                             it
        librdkafka 2.16.0    TxnOffsetCommit, when the group's coordinator has just left the
                             metadata: it is remembered for a second, "terminating in state
                             TRY_CONNECT", and never asked; the call's own time-out ends nothing
    """
    faulthandler.dump_traceback_later(LOST_S, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def with_confluent(address: str, source: str, target: str, count: int) -> None:
    """librdkafka, with a member that subscribes."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    producer = Producer(
        {
            "bootstrap.servers": address,
            "transactional.id": target,
            # Otherwise, while its only broker is away, librdkafka forgets the broker and waits for
            # it for ever.
            "metadata.recovery.strategy": "none",
        }
    )
    producer.init_transactions(WAIT_S)
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": target,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 1000,
            "heartbeat.interval.ms": 200,
        }
    )
    place = TopicPartition(source, 0)
    consumer.subscribe([source])
    attempt = 0
    while _position(consumer, place) < count:
        found = [each for each in consumer.consume(CHUNK, 0.2) if not each.error()]
        if not found:
            continue
        attempt += 1
        producer.begin_transaction()
        for message in found:
            producer.produce(target, message.value(), partition=0)
        following = TopicPartition(source, 0, found[-1].offset() + 1)
        with ending_when_lost():
            producer.send_offsets_to_transaction(
                [following], consumer.consumer_group_metadata(), WAIT_S
            )
        if attempt % GIVES_UP == 0:
            producer.abort_transaction(WAIT_S)
            consumer.seek(TopicPartition(source, 0, found[0].offset()))
        else:
            producer.commit_transaction(WAIT_S)
        time.sleep(PAUSE_S)
    consumer.close()


def _position(consumer: object, place: object) -> int:
    (found,) = consumer.committed([place], WAIT_S)  # type: ignore[attr-defined]
    offset: int = found.offset
    return max(0, offset)


def with_aiokafka(address: str, source: str, target: str, count: int) -> None:
    """aiokafka: transactions of version 1."""
    asyncio.run(_with_aiokafka(address, source, target, count))


async def _with_aiokafka(address: str, source: str, target: str, count: int) -> None:
    import aiokafka

    place = aiokafka.TopicPartition(source, 0)
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=address, transactional_id=target)
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=address,
        group_id=target,
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    await producer.start()
    await consumer.start()
    consumer.assign([place])
    position = await consumer.committed(place) or 0
    attempt = 0
    while position < count:
        attempt += 1
        consumer.seek(place, position)
        records = await consumer.getmany(timeout_ms=WAIT_S * 1000, max_records=CHUNK)
        found = records.get(place, [])
        await producer.begin_transaction()
        for record in found:
            await producer.send(target, record.value, partition=0)
        await producer.send_offsets_to_transaction({place: position + len(found)}, target)
        if attempt % GIVES_UP == 0:
            await producer.abort_transaction()
        else:
            await producer.commit_transaction()
            position += len(found)
        await asyncio.sleep(PAUSE_S)
    await consumer.stop()
    await producer.stop()


def with_kafka_python(address: str, source: str, target: str, count: int) -> None:
    """kafka-python."""
    import kafka

    place = kafka.TopicPartition(source, 0)
    producer = kafka.KafkaProducer(bootstrap_servers=address, transactional_id=target)
    with ending_when_lost():
        producer.init_transactions()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=address,
        group_id=target,
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    consumer.assign([place])
    position = consumer.committed(place) or 0
    attempt = 0
    while position < count:
        attempt += 1
        consumer.seek(place, position)
        found = consumer.poll(timeout_ms=WAIT_S * 1000, max_records=CHUNK).get(place, [])
        producer.begin_transaction()
        for record in found:
            producer.send(target, record.value, partition=0)
        offset = kafka.structs.OffsetAndMetadata(position + len(found), "", -1)
        with ending_when_lost():
            producer.send_offsets_to_transaction({place: offset}, target)
            if attempt % GIVES_UP == 0:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
                position += len(found)
        time.sleep(PAUSE_S)


def with_embedlog(address: str, source: str, target: str, count: int) -> None:
    """Our own clients, with a member of the group's newer protocol."""
    from embedlog import Consumer, Producer, TopicPartition

    place = TopicPartition(source, 0)
    reads = {"group.id": target, "group.protocol": "consumer", "isolation.level": "read_committed"}
    with (
        Producer(address, {"transactional.id": target}) as producer,
        Consumer(
            address, {**reads, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        ) as consumer,
    ):
        producer.init_transactions()
        consumer.subscribe([source])
        attempt = 0
        while True:
            polled = list(consumer.poll(200, max_records=CHUNK))
            if polled:
                attempt += 1
                producer.begin_transaction()
                for record in polled:
                    producer.send(target, record.value, partition=0)
                producer.send_offsets_to_transaction(
                    consumer.consumed_offsets(), consumer.group_metadata()
                )
                if attempt % GIVES_UP == 0:
                    producer.abort_transaction()
                    consumer.seek(place, polled[0].offset)
                else:
                    producer.commit_transaction()
            elif place in consumer.assignment() and consumer.position(place) >= count:
                return
            time.sleep(PAUSE_S)


WORKERS = {
    "confluent": with_confluent,
    "aiokafka": with_aiokafka,
    "kafka-python": with_kafka_python,
    "embedlog": with_embedlog,
}

if __name__ == "__main__":
    name, *places, total = sys.argv[1:]
    WORKERS[name](*places, int(total))  # type: ignore[call-arg]
