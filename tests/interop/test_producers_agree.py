"""Our producer against others: the bytes of the Java client's, and the same partition for a key.

The Java client writes to our broker, which stores its batches; then ours sends the same records,
and the stored batches are compared byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import embedlog
from tests.interop.java_tools import run
from wire.records import RecordBatch

pytestmark = pytest.mark.interop

# The broker sets the base offset and the leader epoch; the CRC covers a different producer id.
_NOT_COMPARED = (slice(0, 8), slice(12, 16), slice(17, 21), slice(43, 51))


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as opened:
        yield opened


@pytest.fixture
def address(cluster: embedlog.Cluster) -> str:
    return cluster.listen("127.0.0.1", 0).address


def _batches(cluster: embedlog.Cluster, topic: str, partition: int = 0) -> list[bytes]:
    log = cluster.broker().core.replica_manager.partition(topic, partition).log
    found: list[bytes] = []
    offset = log.offsets.log_start_offset
    while offset < log.log_end_offset:
        view = log.reader.read(offset, max_bytes=1, end_offset=log.log_end_offset).records
        found.append(bytes(view))
        offset = RecordBatch(view).next_offset
    return found


def _comparable(batch: bytes) -> bytes:
    blank = bytearray(batch)
    for part in _NOT_COMPARED:
        blank[part] = bytes(part.stop - part.start)
    return bytes(blank)


def _send_again(address: str, topic: str, batches: list[bytes], **settings: Any) -> None:
    """Send the records of `batches` with our producer, with their timestamps, to another topic."""
    with embedlog.Producer(address, **settings) as producer:
        for data in batches:
            for record in RecordBatch(memoryview(data)).records():
                producer.send(
                    topic,
                    record.value,
                    record.key,
                    timestamp_ms=record.timestamp,
                    headers=record.headers,
                )


def _lines(with_keys: bool) -> str:
    """Return values of 0 to 300 bytes, some with keys and headers, as lines for the console
    producer.
    """
    lines = []
    for number in range(600):
        value = f"value {number} " + "x" * (number * 37 % 300)
        if not with_keys:
            lines.append(value)
        elif number % 3:
            lines.append(f"h:{number},second:\tkey-{number % 50}\t{value}")
        else:
            lines.append(f"grüße:{'y' * (number % 90)}\tk{number}\t{value}")
    return "".join(line + "\n" for line in lines)


@pytest.mark.parametrize("batch_size", [700, 2_000, 16_384])
@pytest.mark.parametrize("with_keys", [False, True])
def test_batches_equal_the_java_clients_byte_for_byte(
    cluster: embedlog.Cluster, address: str, batch_size: int, with_keys: bool
) -> None:
    cluster.create_topic("java", partitions=1)
    cluster.create_topic("ours", partitions=1)
    settings = {"batch.size": batch_size, "linger.ms": 60_000, "delivery.timeout.ms": 120_000}
    properties = [f"--producer-property={name}={value}" for name, value in settings.items()]
    reading = ["--property", "parse.key=true", "--property", "parse.headers=true"]
    run("console-producer", "--bootstrap-server", address, "--topic", "java", *properties,
        *(reading if with_keys else []), data=_lines(with_keys))  # fmt: skip
    java = _batches(cluster, "java")
    assert sum(RecordBatch(memoryview(batch)).record_count for batch in java) == 600
    assert len(java) > 3
    _send_again(
        address, "ours", java, **{name.replace(".", "_"): v for name, v in settings.items()}
    )
    ours = _batches(cluster, "ours")
    counts = [[RecordBatch(memoryview(b)).record_count for b in each] for each in (java, ours)]
    assert counts[0] == counts[1]
    assert [_comparable(batch) for batch in ours] == [_comparable(batch) for batch in java]


@pytest.mark.parametrize("size", [1, 45, 100, 1_000, 20_000])
def test_batches_equal_those_of_kafkas_performance_tool(
    cluster: embedlog.Cluster, address: str, size: int
) -> None:
    cluster.create_topic("java", partitions=1)
    cluster.create_topic("ours", partitions=1)
    settings = {"linger.ms": 60_000, "delivery.timeout.ms": 120_000}
    properties = [f"{name}={value}" for name, value in settings.items()]
    run("producer-perf", "--topic", "java", "--num-records", "3000" if size < 1000 else "60",
        "--record-size", str(size), "--throughput", "-1",
        "--producer-props", f"bootstrap.servers={address}", *properties)  # fmt: skip
    java = _batches(cluster, "java")
    _send_again(
        address, "ours", java, **{name.replace(".", "_"): v for name, v in settings.items()}
    )
    ours = _batches(cluster, "ours")
    assert [_comparable(batch) for batch in ours] == [_comparable(batch) for batch in java]


KEYS = [*(f"key-{number}" for number in range(150)), "", "grüße", "a" * 100, "21", "lkjh234lh9f"]


def _partitions(cluster: embedlog.Cluster, topic: str, count: int) -> dict[bytes | None, set[int]]:
    found: dict[bytes | None, set[int]] = {}
    for partition in range(count):
        for batch in _batches(cluster, topic, partition):
            for record in RecordBatch(memoryview(batch)).records():
                found.setdefault(record.key, set()).add(partition)
    return found


def _java(address: str, topic: str) -> None:
    data = "".join(f"{key}\tv\n" for key in KEYS)
    run("console-producer", "--bootstrap-server", address, "--topic", topic,
        "--property", "parse.key=true", data=data)  # fmt: skip


def _librdkafka(address: str, topic: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "partitioner": "murmur2_random"})
    for key in KEYS:
        producer.produce(topic, b"v", key.encode())
    assert producer.flush(20) == 0


def _kafka_python(address: str, topic: str) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=address)
    for key in KEYS:
        producer.send(topic, b"v", key.encode())
    producer.flush(20)
    producer.close()


def _ours(address: str, topic: str) -> None:
    with embedlog.Producer(address) as producer:
        for key in KEYS:
            producer.send(topic, b"v", key.encode())


def _ours_at_once(address: str, topic: str) -> None:
    with embedlog.Producer(address) as producer:
        keys = [key.encode() for key in KEYS]
        producer.send_batch(topic, [b"v"] * len(KEYS), keys=keys).result()


@pytest.mark.parametrize("count", [3, 10])
def test_a_key_gets_the_same_partition_from_every_client(
    cluster: embedlog.Cluster, address: str, count: int
) -> None:
    found = {}
    for produce in (_java, _librdkafka, _kafka_python, _ours, _ours_at_once):
        topic = produce.__name__.strip("_")
        cluster.create_topic(topic, partitions=count)
        produce(address, topic)
        found[topic] = _partitions(cluster, topic, count)
        assert len(found[topic]) == len(KEYS)
        assert all(len(partitions) == 1 for partitions in found[topic].values())
    assert found["librdkafka"].pop(b"") is not None, "it takes an empty key for none"
    expected = found["java"]
    empty = expected.pop(b"")
    for name in ("kafka_python", "ours", "ours_at_once"):
        assert found[name].pop(b"") == empty, name
    for name, partitions in found.items():
        assert partitions == expected, name
