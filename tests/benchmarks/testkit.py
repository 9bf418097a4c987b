"""The test kit: a fresh cluster; saved states by size; a day of the clock; the cost of a timeline.

Beside each figure stands the cost of the plain way: a fresh cluster with the same records.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

from embedlog import Producer
from embedlog.testing import Kafka

SIZES_MB = (0, 1, 10, 100)
ROUNDS = 15
RECORDS = 100_000


def best_ms(call: Callable[[], object], close: Callable[[], None] = lambda: None) -> float:
    """Return the shortest of several calls, in milliseconds; `close` is not counted."""
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
        close()
    return best * 1000


def filled(brokers: int, size_mb: int) -> Kafka:
    """Return a cluster with an address and records of 1 KB."""
    made = Kafka(brokers=brokers, topics={"t": 4})
    with made.cluster.producer() as producer:
        for _ in range(size_mb):
            producer.send_batch("t", [b"x" * 1000] * 1000).result()
    assert made.bootstrap_servers
    return made


def states() -> None:
    """Print snapshot, restore, reset and fork by size and number of brokers."""
    print(f"\n{'':24}{'snapshot':>10}{'restore':>10}{'reset':>10}{'fork':>10}{'anew':>10}  ms")
    for brokers in (1, 3):
        for size_mb in SIZES_MB:
            row = "".join(f"{each:10.2f}" for each in states_of(brokers, size_mb))
            print(f"  {brokers} brokers, {size_mb:4} MB      {row}", flush=True)


def states_of(brokers: int, size_mb: int) -> list[float]:
    """Return the milliseconds of snapshot, restore, reset, fork, and of filling a new cluster."""
    started = time.perf_counter()
    kafka = filled(brokers, size_mb)
    anew = (time.perf_counter() - started) * 1000
    saved = kafka.snapshot()
    forks: list[Kafka] = []
    snapshot = best_ms(kafka.snapshot)
    restore = best_ms(lambda: kafka.restore(saved))
    fork = best_ms(lambda: forks.append(kafka.fork()), lambda: forks.pop().close())
    reset = best_ms(kafka.reset)
    kafka.close()
    return [snapshot, restore, reset, fork, anew]


def fresh() -> None:
    """Print the time of a fresh cluster, of its first address, and of its end."""
    made: list[Kafka] = []
    listened: list[str] = []
    opened = best_ms(lambda: made.append(Kafka()), lambda: made.pop().close())
    both = best_ms(
        lambda: (made.append(Kafka()), listened.append(made[-1].bootstrap_servers)),
        lambda: made.pop().close(),
    )
    print(f"\na fresh cluster {opened:.2f} ms, with an address {both:.2f} ms")


def timelines() -> None:
    """Print the records a second of a client over TCP, without a timeline and with one."""
    rates: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(5):
        for is_recorded, found in rates.items():
            with Kafka(topics={"t": 1}) as kafka:
                address = kafka.bootstrap_servers
                if is_recorded:
                    kafka.record()
                with Producer(address, batch_size=16_384, linger_ms=5) as producer:
                    producer.send("t", b"x").result()
                    started = time.perf_counter()
                    for _ in range(RECORDS):
                        producer.send("t", b"x" * 100)
                    producer.flush()
                    found.append(RECORDS / (time.perf_counter() - started))
    without, recorded = (statistics.median(each) for each in rates.values())
    print(f"\nrecords a second {without:,.0f}, with a timeline {recorded:,.0f}", end="")
    print(f" ({recorded / without:.2f})")


def jump(kafka: Kafka, *, keep_members: bool = False) -> float:
    """Return the milliseconds of a jump of a day."""
    return best_ms(lambda: kafka.clock.jump(days=1, keep_members=keep_members))


def days() -> None:
    """Print the time of a jump of a day: idle, with several brokers, and with a live member."""
    print("\na jump of a day")
    for brokers in (1, 3):
        with Kafka(brokers=brokers, clock="manual", topics={"t": 1}) as kafka:
            print(f"  {brokers} brokers, idle {jump(kafka):12.1f} ms")
    try:
        from confluent_kafka import Consumer
    except ImportError:
        return
    for protocol in ("classic", "consumer"):
        with Kafka(clock="manual", topics={"t": 1}) as kafka:
            settings = {"group.id": "g", "group.protocol": protocol}
            consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, **settings})
            consumer.subscribe(["t"])
            while not consumer.assignment():
                consumer.poll(0.1)
            took = jump(kafka, keep_members=True)
            print(f"  confluent-kafka, {protocol:9}{took:8.1f} ms with its heartbeats")
            consumer.close()


def main() -> None:
    """Print all tables of the test kit."""
    fresh()
    timelines()
    states()
    days()
