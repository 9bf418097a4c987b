"""Records of foreign clients as the test kit reads them, and its seeds as foreign clients do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka
import confluent_kafka
import kafka as kafka_python
import pytest

from embedlog.testing import Kafka, json_like, rec
from tests.interop.clients import Row
from tests.interop.clients.aio_kafka import AioKafka
from tests.interop.clients.confluent import Confluent
from tests.interop.clients.kafka_python import KafkaPython
from tests.interop.java_tools import run

pytestmark = pytest.mark.interop

Seen = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Offset, timestamp, key, value, headers."""
ROWS = [
    Row(b"k", b'{"id": 1}', (("trace", b"abc"), ("empty", b""), ("none", None)), 1_700_000_000_000),
    Row(None, b"\xff" * 200, (), 1_600_000_000_000),
    Row(b"gone", None, (("trace", b"1"), ("trace", b"2")), 1_700_000_000_001),
    Row(b"", b"", (), 5),
]
SECONDS = 30


@pytest.fixture(params=[1, 3])
def cluster(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    config = {"min.insync.replicas": 1, "retention.ms": -1}
    topic = {"partitions": 1, "replication_factor": request.param, "config": config}
    with Kafka(brokers=request.param, topics={"orders": topic, "out": topic}) as made:
        yield made


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("client", [Confluent(), KafkaPython(), AioKafka()], ids=lambda c: c.name)
def test_records_of_a_client_compare_right(cluster: Kafka, client: Any, codec: str) -> None:
    rows = ROWS
    if client.name == "kafka-python":  # it refuses headers without a value
        headers = [tuple(each for each in row.headers if each[1] is not None) for row in ROWS]
        rows = [row._replace(headers=left) for row, left in zip(ROWS, headers, strict=True)]
    with cluster.assert_produces("orders", count=len(rows)) as new:
        client.produce(cluster.bootstrap_servers, "orders", rows, codec=codec)
    expected = [
        rec(
            offset=offset,
            partition=0,
            key=row.key,
            value=row.value,
            timestamp=row.timestamp,
            headers=list(row.headers),
        )
        for offset, row in enumerate(rows)
    ]
    assert new == expected
    assert cluster.topic("orders") == expected
    assert cluster.topic("orders").records()[0] == rec(
        value=json_like({"id": 1}), headers={"trace": "abc"}
    )


# Transactions of clients


def confluent_transaction(address: str, value: bytes, end: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": address, "transactional.id": f"confluent {end}"}
    )
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce("orders", value)
    producer.flush(SECONDS)
    getattr(producer, end)(SECONDS)


def kafka_python_transaction(address: str, value: bytes, end: str) -> None:
    producer = kafka_python.KafkaProducer(
        bootstrap_servers=address, transactional_id=f"kafka-python {end}"
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", value).get(SECONDS)
    getattr(producer, end)()
    producer.close()


def aiokafka_transaction(address: str, value: bytes, end: str) -> None:
    async def main() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=address, transactional_id=f"aiokafka {end}"
        )
        await producer.start()
        await producer.begin_transaction()
        await producer.send_and_wait("orders", value)
        await getattr(producer, end)()
        await producer.stop()

    asyncio.run(main())


@pytest.mark.parametrize(
    "transaction", [confluent_transaction, kafka_python_transaction, aiokafka_transaction]
)
def test_transactions_of_a_client_count_when_they_are_committed(
    cluster: Kafka, transaction: Callable[[str, bytes, str], None]
) -> None:
    address = cluster.bootstrap_servers
    with cluster.assert_nothing_produced("orders", for_ms=0):
        transaction(address, b"aborted", "abort_transaction")
    with cluster.assert_produces("orders", count=1) as new:
        transaction(address, b"committed", "commit_transaction")
    assert new.values() == [b"committed"]
    orders = cluster.topic("orders")
    assert orders.values(isolation="read_uncommitted") == [b"aborted", b"committed"]


# Seeds as clients read them


def read_by_confluent(address: str, count: int, isolation: str) -> list[Seen]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "auto.offset.reset": "error",
        }
    )
    place = confluent_kafka.TopicPartition("orders", 0, confluent_kafka.OFFSET_BEGINNING)
    consumer.assign([place])
    found: list[Seen] = []
    while len(found) < count:
        messages = consumer.consume(count, SECONDS)
        assert messages, found
        for each in messages:
            assert each.error() is None, each.error()
            headers = [(name, value) for name, value in each.headers() or ()]
            found.append((each.offset(), each.timestamp()[1], each.key(), each.value(), headers))
    consumer.close()
    return found


def read_by_kafka_python(address: str, count: int, isolation: str) -> list[Seen]:
    consumer = kafka_python.KafkaConsumer(
        bootstrap_servers=address, isolation_level=isolation, auto_offset_reset="none"
    )
    place = kafka_python.TopicPartition("orders", 0)
    consumer.assign([place])
    consumer.seek_to_beginning()
    found: list[Seen] = []
    while len(found) < count:
        polled = consumer.poll(SECONDS * 1000)
        assert polled, found
        found += [
            (each.offset, each.timestamp, each.key, each.value, list(each.headers))
            for each in polled[place]
        ]
    consumer.close()
    return found


def read_by_aiokafka(address: str, count: int, isolation: str) -> list[Seen]:
    async def main() -> list[Seen]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=address, group_id=None, isolation_level=isolation
        )
        await consumer.start()
        place = aiokafka.TopicPartition("orders", 0)
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        found: list[Seen] = []
        try:
            while len(found) < count:
                each = await asyncio.wait_for(consumer.getone(), SECONDS)
                found.append(
                    (each.offset, each.timestamp, each.key, each.value, list(each.headers))
                )
        finally:
            await consumer.stop()
        return found

    return asyncio.run(main())


READERS = pytest.mark.parametrize(
    "reader", [read_by_confluent, read_by_kafka_python, read_by_aiokafka]
)
Reader = Callable[[str, int, str], list[Seen]]


def seeded(kafka: Kafka) -> list[Seen]:
    """Put one of everything into `orders`; return what a committed reader must see."""
    orders = kafka.topic("orders")
    orders.skip(3)
    orders.put(b"ancient", "k", timestamp=0, headers=[("a", b"1"), ("b", None), ("a", b"\xff")])
    orders.put_aborted([b"aborted", b"aborted too"])
    with orders.transaction() as transaction:
        transaction.put(b"committed")
    orders.tombstone("gone", timestamp=4_000_000_000_000)
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        orders.put_many([b"x" * 100, b"y" * 100], compression=codec)
    orders.put_many([b"a", rec(value=b"b", offset=100), rec(value=b"c", offset=5_000_000_000)])
    orders.skip(7)
    orders.put(b"last")
    return [
        (each.offset, each.timestamp, each.key, each.value, list(each.headers)) for each in orders
    ]


@READERS
def test_seeds_are_read_right_by_a_client(cluster: Kafka, reader: Reader) -> None:
    expected = seeded(cluster)
    assert [each[0] for each in expected[:2]] == [3, 7]
    assert [each[0] for each in expected[-3:]] == [100, 5_000_000_000, 5_000_000_008]
    assert reader(cluster.bootstrap_servers, len(expected), "read_committed") == expected


@READERS
def test_a_client_reads_an_open_transaction_only_without_isolation(
    cluster: Kafka, reader: Reader
) -> None:
    orders = cluster.topic("orders")
    orders.put(b"before")
    transaction = orders.transaction()
    transaction.put(b"open")
    address = cluster.bootstrap_servers
    uncommitted = reader(address, 2, "read_uncommitted")
    assert [each[3] for each in uncommitted] == [b"before", b"open"]
    transaction.commit()
    orders.put(b"behind")
    committed = reader(address, 3, "read_committed")
    assert [each[3] for each in committed] == [b"before", b"open", b"behind"]


def test_offsets_that_the_kit_commits_are_where_a_client_begins(cluster: Kafka) -> None:
    cluster.topic("orders").put_many([b"%d" % number for number in range(10)])
    cluster.commit("g", {("orders", 0): 7})
    consumer = kafka_python.KafkaConsumer(
        "orders", bootstrap_servers=cluster.bootstrap_servers, group_id="g"
    )
    assert next(iter(consumer)).offset == 7
    consumer.close()


def test_javas_consumer_reads_seeds() -> None:
    with Kafka(topics={"orders": {"partitions": 1, "config": {"retention.ms": -1}}}) as kafka:
        expected = seeded(kafka)
        printed = run(
            "console-consumer", "--bootstrap-server", kafka.bootstrap_servers,
            "--topic", "orders", "--from-beginning", "--max-messages", str(len(expected)),
            "--isolation-level", "read_committed",
            "--formatter-property", "print.offset=true",
            "--formatter-property", "print.value=false",
        )  # fmt: skip
    offsets = [f"Offset:{each[0]}" for each in expected]
    assert [line for line in printed.split() if line.startswith("Offset:")] == offsets


def test_a_confluent_serializer_and_the_kit_agree(cluster: Kafka) -> None:
    """The header by hand, as confluent-kafka's serializers write it."""
    from embedlog.testing import confluent

    schema = {"type": "record", "name": "U", "fields": [{"name": "id", "type": "long"}]}
    orders = cluster.topic("orders", value=confluent({9: schema}.__getitem__))
    Confluent().produce(cluster.bootstrap_servers, "orders", [Row(None, b"\0\0\0\0\x09\x0e")])
    assert orders == [rec(value={"id": 7})]
