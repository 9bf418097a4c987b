"""Transactions of every client that has them, and reads of each by all others.

Each client copies a topic in transactions, commits its position in them, and aborts every third
one. Readers of committed records get each copy once, whichever client wrote it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import aiokafka
import confluent_kafka
import kafka
import pytest

import embedlog
from tests.interop.java_tools import run

pytestmark = pytest.mark.interop

NewName = Callable[[str], str]
COUNT = 60
CHUNK = 10
WAIT_S = 20
GIVES_UP = 3
"""One transaction in this number is aborted."""


def with_confluent(address: str, source: str, target: str) -> None:
    """librdkafka."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": address, "transactional.id": f"confluent {target}"}
    )
    producer.init_transactions(WAIT_S)
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": target, "enable.auto.commit": False}
    )
    position = attempt = 0
    while position < COUNT:
        attempt += 1
        consumer.assign([confluent_kafka.TopicPartition(source, 0, position)])
        found = consumer.consume(CHUNK, WAIT_S)
        producer.begin_transaction()
        for message in found:
            producer.produce(target, message.value())
        following = position + len(found)
        producer.send_offsets_to_transaction(
            [confluent_kafka.TopicPartition(source, 0, following)],
            consumer.consumer_group_metadata(),
            WAIT_S,
        )
        if attempt % GIVES_UP == 0:
            producer.abort_transaction(WAIT_S)
        else:
            producer.commit_transaction(WAIT_S)
            position = following
    consumer.close()


def with_aiokafka(address: str, source: str, target: str) -> None:
    """aiokafka: transactions of version 1."""

    async def copy() -> None:
        place = aiokafka.TopicPartition(source, 0)
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=address, transactional_id=f"aiokafka {target}"
        )
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=address, group_id=target, enable_auto_commit=False
        )
        await producer.start()
        await consumer.start()
        consumer.assign([place])
        position = attempt = 0
        while position < COUNT:
            attempt += 1
            consumer.seek(place, position)
            records = await consumer.getmany(timeout_ms=WAIT_S * 1000, max_records=CHUNK)
            found = records.get(place, [])
            following = position + len(found)
            await producer.begin_transaction()
            for record in found:
                await producer.send(target, record.value)
            await producer.send_offsets_to_transaction({place: following}, target)
            if attempt % GIVES_UP == 0:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
                position = following
        await consumer.stop()
        await producer.stop()

    asyncio.run(copy())


def with_kafka_python(address: str, source: str, target: str) -> None:
    """kafka-python."""
    place = kafka.TopicPartition(source, 0)
    producer = kafka.KafkaProducer(
        bootstrap_servers=address, transactional_id=f"kafka-python {target}"
    )
    producer.init_transactions()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=address, group_id=target, enable_auto_commit=False
    )
    consumer.assign([place])
    position = attempt = 0
    while position < COUNT:
        attempt += 1
        consumer.seek(place, position)
        records = consumer.poll(timeout_ms=WAIT_S * 1000, max_records=CHUNK)
        found = records.get(place, [])
        following = position + len(found)
        producer.begin_transaction()
        for record in found:
            producer.send(target, record.value)
        offsets = {place: kafka.structs.OffsetAndMetadata(following, "", -1)}
        producer.send_offsets_to_transaction(offsets, target)
        if attempt % GIVES_UP == 0:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
            position = following
    consumer.close()
    producer.close()


def with_our_own(address: str, source: str, target: str) -> None:
    """embedlog's clients."""
    with (
        embedlog.Producer(address, {"transactional.id": f"embedlog {target}"}) as producer,
        embedlog.Consumer(address, {"group.id": target, "enable.auto.commit": False}) as consumer,
    ):
        producer.init_transactions()
        consumer.assign([(source, 0)])
        position = attempt = 0
        while position < COUNT:
            attempt += 1
            consumer.seek((source, 0), position)
            found = list(consumer.poll(WAIT_S * 1000))[:CHUNK]
            following = position + len(found)
            producer.begin_transaction()
            for record in found:
                producer.send(target, record.value)
            producer.send_offsets_to_transaction(
                {(source, 0): following}, consumer.group_metadata()
            )
            if attempt % GIVES_UP == 0:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
                position = following


COPIERS = [with_confluent, with_aiokafka, with_kafka_python, with_our_own]


def read_by_confluent(address: str, topic: str) -> list[bytes]:
    """Read to the end of the partition."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": "reader", "enable.partition.eof": True}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found = []
    while not (message := consumer.poll(WAIT_S)).error():
        found.append(message.value())
    consumer.close()
    return found


def read_by_aiokafka(address: str, topic: str) -> list[bytes]:
    """Read until no record arrives for a moment."""

    async def read() -> list[bytes]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=address, isolation_level="read_committed"
        )
        await consumer.start()
        consumer.assign([aiokafka.TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        found: list[bytes] = []
        while records := await consumer.getmany(timeout_ms=1000):
            found += [record.value for rows in records.values() for record in rows]
        await consumer.stop()
        return found

    return asyncio.run(read())


def read_by_kafka_python(address: str, topic: str) -> list[bytes]:
    """Read until no record arrives for a moment."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=address, isolation_level="read_committed", group_id=None
    )
    consumer.assign([kafka.TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    found: list[bytes] = []
    while records := consumer.poll(timeout_ms=1000):
        found += [record.value for rows in records.values() for record in rows]
    consumer.close()
    return found


def read_by_our_own(address: str, topic: str) -> list[bytes]:
    """Read until no record arrives for a moment."""
    with embedlog.Consumer(address, {"isolation.level": "read_committed"}) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        found: list[bytes] = []
        while records := consumer.poll(1000):
            found += [record.value or b"" for record in records]
        return found


READERS = [read_by_confluent, read_by_aiokafka, read_by_kafka_python, read_by_our_own]


@pytest.mark.parametrize("copy", COPIERS, ids=lambda copy: copy.__name__.removeprefix("with_"))
def test_records_copied_in_transactions_exist_once(
    copy: Callable[[str, str, str], None], address: str, new_name: NewName
) -> None:
    source, target = new_name("copied"), new_name("copy")
    wanted = [b"%d" % number for number in range(COUNT)]
    with embedlog.Admin(address) as admin:
        admin.create_topics([source, target]).check()
    with embedlog.Producer(address) as producer:
        for value in wanted:
            producer.send(source, value, partition=0)
    copy(address, source, target)
    for read in READERS:
        assert read(address, target) == wanted, read.__name__
    with embedlog.Consumer(address, {"group.id": target}) as consumer:
        (found,) = consumer.committed([(source, 0)]).values()
        assert found is not None
        assert found.offset == COUNT


@pytest.mark.slow
def test_javas_producer_and_consumer(address: str, new_name: NewName) -> None:
    topic = new_name("java-transactions")
    to = ("--bootstrap-server", address)
    run("topics", *to, "--create", "--topic", topic, "--partitions", "1")
    run(
        "producer-perf", "--topic", topic, "--num-records", "2000", "--record-size", "20",
        "--throughput", "-1", "--producer-props", f"bootstrap.servers={address}",
        "--transactional-id", topic, "--transaction-duration-ms", "50",
    )  # fmt: skip
    read = run(
        "console-consumer", *to, "--topic", topic, "--from-beginning", "--max-messages", "2000",
        "--isolation-level", "read_committed", "--timeout-ms", "20000",
    )  # fmt: skip
    assert "Processed a total of 2000 messages" in read
    listed = run("transactions", *to, "list")
    assert any(line.split()[:1] == [topic] and "CompleteCommit" in line
               for line in listed.splitlines())  # fmt: skip
    hanging = run("transactions", *to, "find-hanging", "--broker-id", "1")
    assert topic not in hanging
