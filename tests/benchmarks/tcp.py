"""The same client, confluent-kafka, against each broker: produce, consume, hand-off, requests."""

from __future__ import annotations

import socket
import struct
import threading
import time

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.benchmarks.brokers import brokers
from tests.benchmarks.table import show, show_rates

ROUNDS = 3
COUNTS = {100: 300_000, 1024: 60_000}
PARTITIONS = {100: 8, 1024: 16}  # the mock keeps 5 MB a partition
HAND_OFFS = 400
SECONDS_MAX = 60


def create(address: str, topic: str, partitions: int) -> None:
    """Create a topic."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(SECONDS_MAX)


def produce(address: str, topic: str, size: int) -> float:
    """Records a second from the first call to the last acknowledgement."""
    producer = Producer(
        {
            "bootstrap.servers": address,
            "linger.ms": 5,
            "batch.num.messages": 100_000,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    producer.list_topics(topic, SECONDS_MAX)
    value = b"v" * size
    count, partitions = COUNTS[size], PARTITIONS[size]
    started = time.perf_counter()
    for number in range(count):
        producer.produce(topic, value, partition=number % partitions)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(SECONDS_MAX) == 0
    return count / (time.perf_counter() - started)


def consume(address: str, topic: str, size: int) -> float:
    """Records a second of reading it all back."""
    consumer = _consumer(address)
    count = COUNTS[size]
    started = time.perf_counter()
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(PARTITIONS[size])])
    seen = 0
    while seen < count:
        messages = consumer.consume(10_000, SECONDS_MAX)
        assert messages, f"{seen} of {count}"
        seen += len(messages)
    rate = count / (time.perf_counter() - started)
    consumer.close()
    return rate


def _consumer(address: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "benchmark",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 500,
            "queued.min.messages": 1_000_000,
            "fetch.message.max.bytes": 1_048_576,
        }
    )


def hand_off(address: str, topic: str) -> list[float]:
    """Seconds from produce() to the record in the hands of a waiting consumer."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "acks": 1})
    consumer = _consumer(address)
    consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
    while not consumer.position([TopicPartition(topic, 0)])[0].offset >= 0:
        producer.produce(topic, b"warm", partition=0)
        producer.poll(0)
        consumer.poll(0.1)
    while consumer.poll(0.6) is not None:
        continue
    delays = []
    for _ in range(HAND_OFFS):
        sent = time.perf_counter()
        producer.produce(topic, b"v" * 100, partition=0)
        producer.poll(0)
        message = consumer.poll(SECONDS_MAX)
        delays.append(time.perf_counter() - sent)
        assert message is not None and message.error() is None
        time.sleep(0.002)
        producer.poll(0)
    consumer.close()
    return sorted(delays)


def echo_round_trip() -> float:
    """Seconds for 100 bytes to an echoing thread's process-local socket and back, the median."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := connection.recv(4096):
            connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    with socket.create_connection(server.getsockname()) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        delays = []
        for _ in range(2000):
            sent = time.perf_counter()
            client.sendall(b"x" * 100)
            client.recv(4096)
            delays.append(time.perf_counter() - sent)
    return sorted(delays)[len(delays) // 2]


def requests(address: str) -> float:
    """ApiVersions v0 requests a second on one connection, 32 in flight."""
    host, port = address.split(":")
    body = struct.pack(">hhih", 18, 0, 1, -1)
    frame = struct.pack(">i", len(body)) + body
    with socket.create_connection((host, int(port))) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.sendall(frame)
        (size,) = struct.unpack(">i", link.recv(4, socket.MSG_WAITALL))
        link.recv(size, socket.MSG_WAITALL)
        count, window = 20_000, 32
        started = time.perf_counter()
        for _ in range(count // window):
            link.sendall(frame * window)
            link.recv((size + 4) * window, socket.MSG_WAITALL)
        return (count // window) * window / (time.perf_counter() - started)


def main() -> None:
    """All tables over TCP."""
    with brokers() as addresses:
        for size in COUNTS:
            produced = dict.fromkeys(addresses, 0.0)
            consumed = dict.fromkeys(addresses, 0.0)
            for number in range(ROUNDS):
                for name, address in addresses.items():
                    topic = f"bench-{size}-{number}"
                    create(address, topic, PARTITIONS[size])
                    produced[name] = max(produced[name], produce(address, topic, size))
                    consumed[name] = max(consumed[name], consume(address, topic, size))
            show_rates(f"produce, {size} B", produced, ours="embedlog", unit="records/s")
            show_rates(f"consume, {size} B", consumed, ours="embedlog", unit="records/s")
        rates = {name: requests(address) for name, address in addresses.items()}
        show_rates("ApiVersions requests, 32 in flight", rates, ours="embedlog")
        middle = {"an echo's round trip": echo_round_trip()}
        tail = {}
        for name, address in addresses.items():
            create(address, "hand-off", 1)
            delays = hand_off(address, "hand-off")
            middle[name], tail[name] = delays[len(delays) // 2], delays[int(len(delays) * 0.99)]
        show("produce to consume hand-off, p50", middle, ours="embedlog", unit="us")
        show("produce to consume hand-off, p99", tail, ours="embedlog", unit="us")
