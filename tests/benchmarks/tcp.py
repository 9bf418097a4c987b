"""The same client, confluent-kafka, against each broker: produce, consume, hand-off, requests."""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.benchmarks.brokers import OURS, PROCESSES, broker, brokers, names, processor_seconds
from tests.benchmarks.machine import warm_memory
from tests.benchmarks.raw import fetch_all, wake_up
from tests.benchmarks.table import show, show_rates

ROUNDS = 3
COUNTS = {100: 960_000, 1024: 192_000}
TOPICS = {100: 8, 1024: 12}
CHUNK = 1000
PARTITIONS = 4  # the mock's default for a topic; it keeps 5 MB of each
HAND_OFFS = 400
MOCK_HAND_OFFS = 20  # half a second each
APART = 16
"""Partitions that are read a few at a time: an assignment takes 0.3 s, and 5 ms for
each partition.
"""
PAUSES = {"one after the other": 0.0, "every 2 ms": 0.002}
"""Seconds between hand-offs. In a pause the CPU falls asleep, and waking it takes longer than a
small broker's work; without a pause the echo is the comparable measure.
"""
SECONDS_MAX = 60
MESSAGES_A_CALL = 500
"""Kafka's default of `max.poll.records`. With 10,000 the client's objects leave the CPU cache, and
every broker looks the same.
"""
FETCH_SIZE = 1 << 20
BATCHES = {"batches of 1 MB, librdkafka's own": 1_000_000, "batches of 16 KiB, Kafka's own": 16_384}

Place = tuple[str, int]

ECHO = """
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
connection, _ = server.accept()
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while data := connection.recv(4096):
    connection.sendall(data)
"""

RELAY = """
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
writer, _ = server.accept()
reader, _ = server.accept()
for connection in writer, reader:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while data := writer.recv(4096):
    reader.sendall(data)
    writer.sendall(data)
"""


def create(address: str, name: str, topics: int, *, is_mock: bool) -> list[Place]:
    """Create topics and return all their partitions. The mock knows only auto-creation."""
    admin = AdminClient({"bootstrap.servers": address})
    names = [f"{name}-{number}" for number in range(topics)]
    if not is_mock:
        made = admin.create_topics([NewTopic(each, PARTITIONS, 1) for each in names])
        for future in made.values():
            future.result(SECONDS_MAX)
    else:
        for each in names:
            admin.list_topics(each, SECONDS_MAX)
    return [(each, partition) for each in names for partition in range(PARTITIONS)]


def produce(address: str, places: list[Place], size: int, batch_size: int) -> float:
    """Return records a second from the first call to the last acknowledgement."""
    producer = Producer(
        {
            "bootstrap.servers": address,
            "linger.ms": 5,
            "batch.num.messages": 100_000,
            "batch.size": batch_size,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    producer.list_topics(timeout=SECONDS_MAX)
    value = b"v" * size
    count = COUNTS[size]
    started = time.perf_counter()
    everywhere = itertools.cycle(places)
    for _ in range(count // CHUNK):
        for topic, partition in itertools.islice(everywhere, CHUNK):
            producer.produce(topic, value, partition=partition)
        producer.poll(0)
    assert producer.flush(SECONDS_MAX) == 0
    return count / (time.perf_counter() - started)


def consume(address: str, places: list[Place], size: int) -> float:
    """Return records a second from the first to the last record.

    Before the first record librdkafka looks for a coordinator, which takes the same time with every
    broker.
    """
    consumer = _consumer(address)
    count = COUNTS[size] - 1
    consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in places])
    assert consumer.consume(1, SECONDS_MAX), "no record at all"
    rate = count / _seconds_to_read(consumer, count)
    consumer.close()
    return rate


def consume_apart(address: str, places: list[Place], size: int, at_once: int) -> float:
    """As `consume`, but with `at_once` partitions at a time, like the reader of one topic.

    The mock returns one batch of a partition in an answer, Kafka and embedlog as many as fit.
    """
    consumer = _consumer(address, wait_ms=10)  # the next assignment waits for the last fetch
    count = seconds = 0.0
    for first in range(0, APART, at_once):
        some = places[first : first + at_once]
        consumer.assign([TopicPartition(*place, 0) for place in some])
        assert consumer.consume(1, SECONDS_MAX), "no record at all"
        wanted = COUNTS[size] // len(places) * len(some) - 1
        seconds += _seconds_to_read(consumer, wanted)
        count += wanted
        consumer.unassign()
    consumer.close()
    return count / seconds


def _seconds_to_read(consumer: Consumer, count: int) -> float:
    started = time.perf_counter()
    seen = 0
    while seen < count:
        messages = consumer.consume(min(MESSAGES_A_CALL, count - seen), SECONDS_MAX)
        assert messages, f"{seen} of {count}"
        seen += len(messages)
    return time.perf_counter() - started


def _consumer(address: str, wait_ms: int = 500) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "benchmark",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": wait_ms,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 1_000_000,
            "fetch.message.max.bytes": 1_048_576,
        }
    )


def hand_off(address: str, topic: str, count: int, pause: float) -> list[float]:
    """Return sorted seconds from produce() until a waiting consumer has the record."""
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
    for _ in range(count):
        sent = time.perf_counter()
        producer.produce(topic, b"v" * 100, partition=0)
        producer.poll(0)
        message = consumer.poll(SECONDS_MAX)
        delays.append(time.perf_counter() - sent)
        assert message is not None and message.error() is None
        if pause:
            time.sleep(pause)
        producer.poll(0)
    consumer.close()
    return sorted(delays)


@contextlib.contextmanager
def program(code: str) -> Iterator[int]:
    """Run a program in a process of its own, and yield the port that it prints."""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


def echo_round_trip() -> float:
    """Return the median of seconds for 100 bytes to an echoing process and back."""
    with program(ECHO) as port:
        return _round_trip(port)


def relay_wake_up(count: int) -> float:
    """Return the median of `raw.wake_up` through a process that only forwards bytes: the limit."""
    with (
        program(RELAY) as port,
        socket.create_connection(("127.0.0.1", port)) as writer,
        socket.create_connection(("127.0.0.1", port)) as reader,
    ):
        writer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        delays = []
        for _ in range(count):
            time.sleep(0.001)
            sent = time.perf_counter()
            writer.sendall(b"x" * 200)
            reader.recv(4096)
            delays.append(time.perf_counter() - sent)
            writer.recv(4096)
    return sorted(delays)[count // 2]


def _round_trip(port: int) -> float:
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        delays = []
        for _ in range(2000):
            sent = time.perf_counter()
            client.sendall(b"x" * 100)
            client.recv(4096)
            delays.append(time.perf_counter() - sent)
    return sorted(delays)[len(delays) // 2]


def requests(address: str) -> float:
    """Return ApiVersions v0 requests a second on one connection, 32 in flight."""
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


def throughput(addresses: dict[str, str], size: int, batches: str) -> None:
    """Print tables of writing and reading records of `size` bytes."""
    produced = dict.fromkeys(addresses, 0.0)
    consumed = dict.fromkeys(addresses, 0.0)
    fetched = dict.fromkeys(addresses, 0.0)
    apart = {1: dict.fromkeys(addresses, 0.0), PARTITIONS: dict.fromkeys(addresses, 0.0)}
    # A batch of many records hides the cost of an answer with one batch.
    are_small = BATCHES[batches] // size <= 16
    busy: dict[str, float] = {}
    for number in range(ROUNDS):
        # Alternate the order: a JVM continues to work for a while after its turn.
        for name, address in list(addresses.items())[:: -1 if number % 2 else 1]:
            topics = f"bench-{size}-{BATCHES[batches]}-{number}"
            places = create(address, topics, TOPICS[size], is_mock="mock" in name)
            warm_memory(2 * COUNTS[size] * size)
            rate = produce(address, places, size, BATCHES[batches])
            produced[name] = max(produced[name], rate)
            before = processor_seconds(address) if address in PROCESSES else 0.0
            consumed[name] = max(consumed[name], consume(address, places, size))
            if address in PROCESSES:
                seconds = (processor_seconds(address) - before) / COUNTS[size]
                busy[name] = min(busy.get(name, seconds), seconds)
            if are_small:
                for at_once, rates in apart.items():
                    rate = consume_apart(address, places, size, at_once)
                    rates[name] = max(rates[name], rate)
            rate = fetch_all(address, places, COUNTS[size], FETCH_SIZE)
            fetched[name] = max(fetched[name], rate)
    show_rates(f"produce, {size} B, {batches}", produced, ours=OURS, unit="records/s")
    show_rates(f"consume, {size} B, {batches}", consumed, ours=OURS, unit="records/s")
    show("the broker's processor time for a record of that", busy, ours=OURS)
    if are_small:
        for at_once, rates in apart.items():
            title = f"consume, {size} B, {batches}, partitions at once: {at_once}"
            show_rates(title, rates, ours=OURS, unit="records/s")
    show_rates(f"fetch, {size} B, plain socket", fetched, ours=OURS, unit="records/s")


def hand_offs() -> None:
    """Print tables of the time from a record to its waiting reader.

    One broker at a time: threads of an idle broker would wake up in between.
    """
    echo = {"an echo's round trip": echo_round_trip()}
    middle = {how: dict(echo) for how in PAUSES}
    tail: dict[str, dict[str, float]] = {how: {} for how in PAUSES}
    awake = {**echo, "a relay that reads nothing": relay_wake_up(HAND_OFFS)}
    for name in names():
        with broker(name) as address:
            first, second, *_ = create(address, "hand-off", 1, is_mock="mock" in name)
            count = MOCK_HAND_OFFS if "mock" in name else HAND_OFFS
            for how, pause in PAUSES.items():
                delays = hand_off(address, first[0], count, pause)
                middle[how][name] = delays[len(delays) // 2]
                tail[how][name] = delays[int(len(delays) * 0.99)]
            awake[name] = wake_up(address, second, count)[count // 2]
    for how in PAUSES:
        show(f"produce to consume hand-off, {how}, p50", middle[how], ours=OURS, unit="us")
        show(f"produce to consume hand-off, {how}, p99", tail[how], ours=OURS, unit="us")
    show("of that the broker: plain sockets, every 1 ms, p50", awake, ours=OURS, unit="us")


def main() -> None:
    """Print all tables over TCP."""
    with brokers() as addresses:
        for size in COUNTS:
            for batches in BATCHES:
                throughput(addresses, size, batches)
        rates = {name: requests(address) for name, address in addresses.items()}
        show_rates("ApiVersions requests, 32 in flight", rates, ours=OURS)
    hand_offs()
