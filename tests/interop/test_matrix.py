"""Every client reads the records of every other client, byte for byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop.clients import Client, Row
from tests.interop.clients.aio_kafka import AioKafka
from tests.interop.clients.confluent import Confluent
from tests.interop.clients.kafka_python import KafkaPython
from tests.interop.clients.kafkajs import KafkaJs
from tests.interop.clients.kcat import Kcat

pytestmark = pytest.mark.interop

CLIENTS: list[Client] = [Confluent(), KafkaPython(), AioKafka(), Kcat(), KafkaJs()]
WRITES = [(client, codec) for client in CLIENTS for codec in client.codecs]
T0 = 1_700_000_000_000
NewName = Callable[[str], str]


def rows_for(client: Client) -> list[Row]:
    """Return rows with all keys, values, headers and times that this client can send."""
    rows = [
        Row(b"key", b"value"),
        Row(None, b"no key", (("name", b"content"),), T0 + 5),
        Row(b"k2", b"x" * 20_000, (), T0 + 3),
        Row(b"k3", b"two headers", (("a", b"1"), ("b", b"2")), T0 + 10),
    ]
    if client.null_values:
        rows.append(Row(b"tombstone", None, (), T0 + 7))
    if client.name != "kcat":
        binary = bytes(range(256))
        rows.append(Row(binary, binary, (), T0 + 8))
        rows.append(Row(b"", b"", (("empty", b""),), T0 + 9))
    if client.name in ("confluent", "aiokafka"):
        rows.append(Row(b"k4", b"null header", (("none", None),), T0 + 9))
    return rows


@pytest.mark.parametrize(("writer", "codec"), WRITES, ids=lambda each: getattr(each, "name", each))
def test_every_client_reads_the_records_of_one(
    writer: Client, codec: str, address: str, new_name: NewName
) -> None:
    topic = new_name(f"matrix-{writer.name}-{codec}")
    writer.create_topic(address, topic, 1)
    rows = rows_for(writer)
    writer.produce(address, topic, rows, codec=codec)
    for reader in CLIENTS:
        found = reader.consume(address, topic, len(rows))
        if not writer.timestamps:
            found = [row._replace(timestamp=T0) for row in found]
            rows = [row._replace(timestamp=T0) for row in rows]
        assert found == rows, f"{reader.name} reads {writer.name}'s"


@pytest.mark.parametrize("acks", [0, 1, -1])
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_acks(client: Client, acks: int, address: str, new_name: NewName) -> None:
    topic = new_name("acks")
    client.create_topic(address, topic, 1)
    rows = [Row(b"k", b"%d" % number) for number in range(3)]
    client.produce(address, topic, rows, acks=acks)
    found = CLIENTS[0].consume(address, topic, len(rows))
    assert [row.value for row in found] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_offsets(client: Client, address: str, new_name: NewName) -> None:
    topic = new_name("offsets")
    CLIENTS[0].create_topic(address, topic, 1)
    rows = [Row(None, b"v", (), T0 + time) for time in (0, 10, 5, 20)]
    for row in rows:
        CLIENTS[0].produce(address, topic, [row])
    assert client.offsets(address, topic, -2) == 0
    assert client.offsets(address, topic, -1) == 4
    assert client.offsets(address, topic, T0) == 0
    assert client.offsets(address, topic, T0 + 1) == 1
    assert client.offsets(address, topic, T0 + 11) == 3
    # kafkajs returns the end of the partition instead of "none".
    assert client.offsets(address, topic, T0 + 21) == (4 if client.name == "kafkajs" else -1)


# kcat starts one process for each record here.
LIBRARIES = [client for client in CLIENTS if client.name != "kcat"]


@pytest.mark.parametrize("client", LIBRARIES, ids=lambda client: client.name)
def test_produce_and_consume_many(client: Client, address: str, new_name: NewName) -> None:
    topic = new_name("many")
    client.create_topic(address, topic, 2)
    rows = [Row(b"%d" % number, b"v" * (number % 300), (), T0 + number) for number in range(3000)]
    client.produce(address, topic, rows)
    assert client.consume(address, topic, len(rows)) == rows


def test_max_timestamp(address: str, new_name: NewName) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec

    topic = new_name("max-timestamp")
    CLIENTS[0].create_topic(address, topic, 1)
    CLIENTS[0].produce(address, topic, [Row(None, b"v", (), T0 + t) for t in (0, 30, 20)])
    admin = AdminClient({"bootstrap.servers": address})
    where = TopicPartition(topic, 0)
    found = admin.list_offsets({where: OffsetSpec.max_timestamp()})[where].result(20)
    assert (found.offset, found.timestamp) == (1, T0 + 30)
