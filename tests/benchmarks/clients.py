"""Our clients against kafka-python, aiokafka and confluent-kafka, over TCP to one broker.

Further tables: objects in process against bytes without a socket, hand-off times, and the memory
for reading 1 GiB. All clients have the same settings: acks all, batches of 16 KiB, linger 5 ms, no
idempotence, and a hundred requests in flight if they have such a limit (Kafka's is 5, librdkafka's
own a million; aiokafka has none). The broker is `embedlog serve` in a process of its own. Readers
look at every record's value.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka

import embedlog
from embedlog.testing.loopback_transport import LoopbackTransport
from tests.benchmarks.brokers import embedlog_broker
from tests.benchmarks.table import show, show_rates

ROUNDS = 3
COUNTS = {100: 400_000, 1024: 200_000}
SHARES = {"kafka-python": 8, "aiokafka": 4}
"""Slow producers send only a fraction 1/n of the records, which is enough for a rate."""
BATCH_SIZE = 16_384
LINGER_MS = 5
IN_FLIGHT = 100
KAFKAS_IN_FLIGHT = 5
SECONDS_MAX = 60
HAND_OFFS = 1_000
PAUSE_SECONDS = 0.001
GIB = 1 << 30

_topic_numbers = itertools.count()

Measure = Callable[[str, str, int, int], float]
"""(address, topic, size, count) -> seconds."""


# Producing: from the first call to the last acknowledgement


def produce_ours(
    address: str, topic: str, size: int, count: int, *, in_flight: int = IN_FLIGHT
) -> float:
    """`embedlog.Producer`, a record a call."""
    with embedlog.Producer(
        address,
        linger_ms=LINGER_MS,
        batch_size=BATCH_SIZE,
        enable_idempotence=False,
        max_in_flight_requests_per_connection=in_flight,
    ) as producer:
        producer.partitions_for(topic)
        value = b"v" * size
        started = time.perf_counter()
        for _ in range(count):
            producer.send(topic, value)
        producer.flush()
        return time.perf_counter() - started


def produce_ours_in_batches(address: str, topic: str, size: int, count: int) -> float:
    """`send_batch`, a thousand records a call."""
    with embedlog.Producer(address, enable_idempotence=False) as producer:
        producer.partitions_for(topic)
        values = [b"v" * size] * 1000
        started = time.perf_counter()
        for _ in range(count // 1000):
            producer.send_batch(topic, values)
        producer.flush()
        return time.perf_counter() - started


def produce_ours_aio(address: str, topic: str, size: int, count: int) -> float:
    """`embedlog.aio.Producer`, awaiting a thousand futures at a time."""
    from embedlog.aio import Producer

    async def main() -> float:
        async with Producer(
            address,
            linger_ms=LINGER_MS,
            batch_size=BATCH_SIZE,
            enable_idempotence=False,
            max_in_flight_requests_per_connection=IN_FLIGHT,
        ) as producer:
            await producer.partitions_for(topic)
            value = b"v" * size
            started = time.perf_counter()
            earlier = [producer.send(topic, value)]
            for _ in range(count // 1000):
                futures = [producer.send(topic, value) for _ in range(1000)]
                # Await the earlier futures, so that the next records can fill batches meanwhile.
                await earlier[-1]
                earlier = futures
            await producer.flush()
            assert futures[-1].done()
            return time.perf_counter() - started

    return asyncio.run(main())


def produce_confluent(address: str, topic: str, size: int, count: int) -> float:
    """confluent-kafka: librdkafka in C."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": address,
            "acks": "all",
            "linger.ms": LINGER_MS,
            "batch.size": BATCH_SIZE,
            "max.in.flight": IN_FLIGHT,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    producer.list_topics(topic, timeout=SECONDS_MAX)
    value = b"v" * size
    started = time.perf_counter()
    for number in range(count):
        producer.produce(topic, value)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(SECONDS_MAX) == 0
    return time.perf_counter() - started


def produce_kafka_python(address: str, topic: str, size: int, count: int) -> float:
    """kafka-python."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=address,
        acks="all",
        linger_ms=LINGER_MS,
        batch_size=BATCH_SIZE,
        enable_idempotence=False,
        max_in_flight_requests_per_connection=IN_FLIGHT,
    )
    producer.partitions_for(topic)
    value = b"v" * size
    started = time.perf_counter()
    for _ in range(count):
        producer.send(topic, value)
    producer.flush()
    seconds = time.perf_counter() - started
    producer.close()
    return seconds


def produce_aiokafka(address: str, topic: str, size: int, count: int) -> float:
    """aiokafka."""

    async def main() -> float:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=address,
            acks="all",
            linger_ms=LINGER_MS,
            max_batch_size=BATCH_SIZE,
        )
        await producer.start()
        await producer.partitions_for(topic)
        value = b"v" * size
        started = time.perf_counter()
        for _ in range(count):
            await producer.send(topic, value)
        await producer.flush()
        seconds = time.perf_counter() - started
        await producer.stop()
        return seconds

    return asyncio.run(main())


# Consuming: from the first received records to the last


def consume_ours(address: str, topic: str, size: int, count: int, *, way: str = "poll") -> float:
    """`embedlog.Consumer`: records, tuples or columns."""
    settings = {"max.poll.records": 50_000} if way == "poll_columns" else {}
    with embedlog.Consumer(address, settings, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        poll = getattr(consumer, way)
        look = _LOOKS[way]
        seen = look(poll(10_000))
        first, started = seen, time.perf_counter()
        while seen < count:
            seen += look(poll(10_000))
        return (time.perf_counter() - started) * count / (count - first)


def _look_at_records(records: Any) -> int:
    seen = 0
    for record in records:
        seen += record.value is not None
    return seen


def _look_at_tuples(batches: Any) -> int:
    seen = 0
    for batch in batches:
        for _, _, _, value, _ in batch:
            seen += value is not None
    return seen


def _look_at_columns(parts: Any) -> int:
    return int(sum(part.value_sizes.size for part in parts))


_LOOKS = {
    "poll": _look_at_records,
    "poll_batches": _look_at_tuples,
    "poll_columns": _look_at_columns,
}


def consume_ours_aio(address: str, topic: str, size: int, count: int) -> float:
    """`embedlog.aio.Consumer`, iterated."""
    from embedlog.aio import Consumer

    async def main() -> float:
        async with Consumer(address, auto_offset_reset="earliest") as consumer:
            await consumer.assign([(topic, 0)])
            await anext(consumer)
            started = time.perf_counter()
            seen = 1
            async for record in consumer:
                seen += record.value is not None
                if seen == count:
                    break
            return time.perf_counter() - started

    return asyncio.run(main())


def consume_confluent(address: str, topic: str, size: int, count: int) -> float:
    """confluent-kafka, many messages a call."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "benchmark",
            "enable.auto.commit": False,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 1_000_000,
        }
    )
    start = confluent_kafka.OFFSET_BEGINNING
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, start)])
    seen = len(consumer.consume(1, SECONDS_MAX))
    assert seen == 1, "no record at all"
    started = time.perf_counter()
    while seen < count:
        for message in consumer.consume(min(500, count - seen), SECONDS_MAX):
            seen += message.value() is not None
    seconds = time.perf_counter() - started
    consumer.close()
    return seconds


def consume_kafka_python(address: str, topic: str, size: int, count: int) -> float:
    """kafka-python."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=address, auto_offset_reset="earliest", group_id=None
    )
    consumer.assign([kafka.TopicPartition(topic, 0)])
    seen = 0
    while not seen:
        seen = sum(map(len, consumer.poll(10_000).values()))
    first, started = seen, time.perf_counter()
    while seen < count:
        for records in consumer.poll(10_000).values():
            for record in records:
                seen += record.value is not None
    seconds = (time.perf_counter() - started) * count / (count - first)
    consumer.close()
    return seconds


def consume_aiokafka(address: str, topic: str, size: int, count: int) -> float:
    """aiokafka."""

    async def main() -> float:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=address, auto_offset_reset="earliest", group_id=None
        )
        await consumer.start()
        consumer.assign([aiokafka.TopicPartition(topic, 0)])
        seen = 0
        while not seen:
            seen = sum(map(len, (await consumer.getmany(timeout_ms=10_000)).values()))
        first, started = seen, time.perf_counter()
        while seen < count:
            found = await consumer.getmany(timeout_ms=10_000, max_records=500)
            for records in found.values():
                for record in records:
                    seen += record.value is not None
        seconds = (time.perf_counter() - started) * count / (count - first)
        await consumer.stop()
        return seconds

    return asyncio.run(main())


OURS = "embedlog"
PRODUCERS: dict[str, Measure] = {
    OURS: produce_ours,
    "embedlog, 5 in flight": functools.partial(produce_ours, in_flight=KAFKAS_IN_FLIGHT),
    "embedlog, send_batch": produce_ours_in_batches,
    "embedlog.aio": produce_ours_aio,
    "confluent-kafka": produce_confluent,
    "kafka-python": produce_kafka_python,
    "aiokafka": produce_aiokafka,
}
CONSUMERS: dict[str, Measure] = {
    OURS: consume_ours,
    "embedlog, tuples": functools.partial(consume_ours, way="poll_batches"),
    "embedlog, columns": functools.partial(consume_ours, way="poll_columns"),
    "embedlog.aio": consume_ours_aio,
    "confluent-kafka": consume_confluent,
    "kafka-python": consume_kafka_python,
    "aiokafka": consume_aiokafka,
}


def throughput(address: str, size: int) -> None:
    """Print tables of writing and reading records of `size` bytes over TCP."""
    with embedlog.Admin(address) as admin:
        produced = dict.fromkeys(PRODUCERS, 0.0)
        consumed = dict.fromkeys(CONSUMERS, 0.0)
        for _ in range(ROUNDS):
            topics = []
            for name, produce in PRODUCERS.items():
                count = COUNTS[size] // SHARES.get(name, 1)
                topic = f"bench-{next(_topic_numbers)}"
                topics.append(topic)
                admin.create_topics({topic: 1}).check()
                produced[name] = max(produced[name], count / produce(address, topic, size, count))
                if name == OURS:
                    full = topic
            for name, consume in CONSUMERS.items():
                count = COUNTS[size] // (2 if name == "kafka-python" else 1)
                consumed[name] = max(consumed[name], count / consume(address, full, size, count))
            admin.delete_topics(topics).check()
    show_rates(f"produce over TCP, {size} B", produced, ours=OURS, unit="records/s")
    show_rates(f"consume over TCP, {size} B", consumed, ours=OURS, unit="records/s")


# In process


def in_process() -> None:
    """Print the same calls on objects, and through bytes without a socket."""
    ways: dict[str, Callable[[embedlog.Cluster], Any]] = {
        "in process": lambda cluster: cluster,
        "through bytes": LoopbackTransport,
    }
    count = COUNTS[100]
    produced = dict.fromkeys(ways, 0.0)
    consumed = dict.fromkeys(ways, 0.0)
    for _ in range(ROUNDS):
        for name, way in ways.items():
            with embedlog.open() as cluster:
                cluster.create_topic("t", 1)
                produced[name] = max(
                    produced[name], count / produce_ours(way(cluster), "t", 100, count)
                )
                consumed[name] = max(
                    consumed[name], count / consume_ours(way(cluster), "t", 100, count)
                )
    show_rates("produce in this process, 100 B", produced, ours="in process", unit="records/s")
    show_rates("consume in this process, 100 B", consumed, ours="in process", unit="records/s")


# Hand-off


def hand_off(target: Any, count: int) -> list[float]:
    """Return the sorted seconds from `send` until another polling thread has the record."""
    taken: list[float] = []
    arrived = threading.Event()

    def take() -> None:
        with embedlog.Consumer(target, auto_offset_reset="earliest") as consumer:
            consumer.assign([("hand-off", 0)])
            while len(taken) < count:
                for _ in consumer.poll(1000):
                    taken.append(time.perf_counter())
                    arrived.set()

    reader = threading.Thread(target=take)
    sent = []
    with embedlog.Producer(target, linger_ms=0) as producer:
        producer.partitions_for("hand-off")
        reader.start()
        for _ in range(count):
            time.sleep(PAUSE_SECONDS)
            arrived.clear()
            sent.append(time.perf_counter())
            producer.send("hand-off", b"v" * 100).result()
            assert arrived.wait(10)
    reader.join()
    return sorted(after - before for before, after in zip(sent[10:], taken[10:], strict=True))


def hand_off_aio(target: Any, count: int) -> list[float]:
    """As `hand_off`, from one task to another."""
    from embedlog.aio import Consumer, Producer

    async def main() -> list[float]:
        delays: list[float] = []
        async with Consumer(target, auto_offset_reset="earliest") as consumer:
            await consumer.assign([("hand-off-aio", 0)])
            async with Producer(target, linger_ms=0) as producer:
                for _ in range(count):
                    waiting = asyncio.create_task(anext(consumer))
                    await asyncio.sleep(PAUSE_SECONDS)
                    before = time.perf_counter()
                    producer.send("hand-off-aio", b"v" * 100)
                    await waiting
                    delays.append(time.perf_counter() - before)
        return sorted(delays[10:])

    return asyncio.run(main())


def hand_off_queue(count: int) -> list[float]:
    """As `hand_off`, through `queue.SimpleQueue`: the cost of two threads alone."""
    things: queue.SimpleQueue[int] = queue.SimpleQueue()
    taken: list[float] = []
    arrived = threading.Event()

    def take() -> None:
        while len(taken) < count:
            things.get()
            taken.append(time.perf_counter())
            arrived.set()

    reader = threading.Thread(target=take)
    reader.start()
    sent = []
    for _ in range(count):
        time.sleep(PAUSE_SECONDS)
        arrived.clear()
        sent.append(time.perf_counter())
        things.put(0)
        assert arrived.wait(10)
    reader.join()
    return sorted(after - before for before, after in zip(sent[10:], taken[10:], strict=True))


def hand_off_tables(address: str) -> None:
    """Print median and 99th percentile, in process and over TCP."""
    delays = hand_off_queue(HAND_OFFS)
    middle = {"queue.SimpleQueue": delays[len(delays) // 2]}
    tail = {"queue.SimpleQueue": delays[int(len(delays) * 0.99)]}
    with embedlog.open() as cluster:
        for name, target in {"in process": cluster, "over TCP": address}.items():
            with embedlog.Admin(target) as admin:
                admin.create_topics({"hand-off": 1, "hand-off-aio": 1}).check()
            for kind, measure in {name: hand_off, f"{name}, asyncio": hand_off_aio}.items():
                delays = measure(target, HAND_OFFS)
                middle[kind] = delays[len(delays) // 2]
                tail[kind] = delays[int(len(delays) * 0.99)]
    show("send to record in hand, p50", middle, ours="in process", unit="us")
    show("send to record in hand, p99", tail, ours="in process", unit="us")


# Memory

READER = """
import sys, time
from pathlib import Path
import embedlog
def peak():
    (line,) = [l for l in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in l]
    return int(line.split()[1]) // 1024
address, way, total = sys.argv[1], sys.argv[2], int(sys.argv[3])
if way == "poll_columns":
    import numpy
before = peak()
started = time.perf_counter()
seen = 0
with embedlog.Consumer(address, auto_offset_reset="earliest") as consumer:
    consumer.assign([("gib", 0)])
    poll = getattr(consumer, way)
    while seen < total:
        found = poll(10_000)
        seen += len(found) if way == "poll" else sum(map(len, found))
print(before, peak(), time.perf_counter() - started)
"""


def gib() -> None:
    """Print the peak memory of a process that reads a topic of 1 GiB."""
    count = GIB // 1024
    with tempfile.TemporaryDirectory() as folder:
        data = str(Path(folder) / "data")
        with embedlog_broker("--data", data) as address:
            with embedlog.Producer(address) as producer:
                for _ in range(count // 1024):
                    producer.send_batch("gib", [b"v" * 1024] * 1024)
            print("\na topic of 1 GiB in records of 1 KiB, read by a process of its own")
            for way in ("poll", "poll_columns"):
                command = [sys.executable, "-c", READER, address, way, str(count)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                before, after, seconds = done.stdout.split()
                print(f"  {way:<14} peak RSS {after} MB ({before} before), {float(seconds):.1f} s")


def main() -> None:
    """Print all tables of clients."""
    with (
        tempfile.TemporaryDirectory() as folder,
        embedlog_broker("--data", str(Path(folder) / "data")) as address,
    ):
        for size in COUNTS:
            throughput(address, size)
        hand_off_tables(address)
    in_process()
    gib()
