"""Several brokers: the cost of a start, of a replica and of a lost leader.

For comparison one broker of ours, and in some tables three of Apache Kafka in processes of their
own (with the same client, so with the same client time).
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, Producer
from kafka import KafkaProducer

import embedlog
from embedlog import Cluster
from embedlog.cluster.handles.broker_node import BrokerNode
from embedlog.testing import sim_runtime
from tests.benchmarks.process import seconds
from tests.benchmarks.table import Row, measure, show, show_rates
from tests.support.kafka_cluster import kafka_cluster

PARTITIONS = 30
CALLS = 500
RECORDS = 50_000
RECORD = b"x" * 100
KILLS = 5
STARTS = 10
START = """
import embedlog
with embedlog.open(brokers={brokers}) as cluster:
    cluster.create_topic("t", {partitions}, replication_factor={factor})
"""
MANY_BROKERS = 100
MANY_PARTITIONS = 1000


def starts() -> None:
    """Print the start of one broker and of three, with a topic of 30 partitions, empty or with
    records.
    """

    def start(brokers: int, count: int) -> Callable[[], None]:
        def run() -> None:
            with embedlog.open(brokers=brokers) as cluster:
                cluster.create_topic("t", PARTITIONS, replication_factor=brokers)
                with cluster.producer(acks="all") as producer:
                    for partition in range(count):
                        producer.send("t", RECORD, partition=partition)

        return run

    for count, used in ((0, "none used"), (1, "one used"), (PARTITIONS, "all used")):
        rows = [Row("one broker", 1, start(1, count)), Row("three brokers", 1, start(3, count))]
        title = f"start with {PARTITIONS} partitions, {used}, and close"
        measure(title, rows, ours="three brokers", unit="ms")
    best: dict[str, float] = {}
    for _ in range(STARTS):
        for brokers, factor in ((1, 1), (3, 1), (3, 3)):
            code = START.format(brokers=brokers, factor=factor, partitions=PARTITIONS)
            name = f"brokers: {brokers}, replicas: {factor}"
            best[name] = min(best.get(name, 9.0), seconds(code))
    show("the same in a new process", best, ours="brokers: 3, replicas: 3", unit="ms")


def records_one_by_one() -> None:
    """Print the time of single acks=all sends in process, each awaited."""

    def produce(cluster: Cluster, topic: str) -> Callable[[], None]:
        producer = cluster.producer(acks="all")

        def run() -> None:
            for _ in range(CALLS):
                producer.send(topic, RECORD, partition=0).result()

        return run

    with embedlog.open() as one, embedlog.open(brokers=3) as three:
        one.create_topic("t", 1)
        for factor in (1, 3):
            three.create_topic(f"t{factor}", 1, replication_factor=factor)
        measure(
            "send().result() with acks=all, in process",
            [
                Row("one broker", CALLS, produce(one, "t")),
                Row("three brokers, 1 replica", CALLS, produce(three, "t1")),
                Row("three brokers, 3 replicas", CALLS, produce(three, "t3")),
            ],
            ours="three brokers, 3 replicas",
            unit="us",
        )


def rates(address: str, topic: str) -> tuple[float, float, list[float]]:
    """Return librdkafka's rates of acks=all writes and of reads, and the seconds of
    single writes.
    """
    producer = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": 5})
    producer.produce(topic, RECORD)
    producer.flush()
    began = time.perf_counter()
    for _ in range(RECORDS):
        producer.produce(topic, RECORD)
        producer.poll(0)
    producer.flush()
    written = RECORDS / (time.perf_counter() - began)
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    count, began = 0, 0.0
    while count < RECORDS:
        found = len(consumer.consume(10_000, 1.0))
        began = began or time.perf_counter()
        count += found
    read = count / (time.perf_counter() - began)
    consumer.close()
    single = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": 0})
    waits = []
    for _ in range(CALLS):
        began = time.perf_counter()
        single.produce(topic, RECORD)
        single.flush()
        waits.append(time.perf_counter() - began)
    return written, read, waits


def over_tcp() -> None:
    """Print librdkafka with acks=all on one replica and three, of ours and of Kafka."""
    results: dict[str, tuple[float, float, list[float]]] = {}
    with embedlog.open(brokers=3) as cluster:
        address = cluster.listen().address
        for factor in (1, 3):
            cluster.create_topic(f"t{factor}", 1, replication_factor=factor)
            results[f"embedlog, {factor} replicas"] = rates(address, f"t{factor}")
    with tempfile.TemporaryDirectory() as folder, kafka_cluster(Path(folder)) as kafka:
        with embedlog.Admin(kafka.bootstrap) as admin:
            admin.create_topics([embedlog.NewTopic(f"t{factor}", 1, factor) for factor in (1, 3)])
        for factor in (1, 3):
            results[f"Kafka, {factor} replicas"] = rates(kafka.bootstrap, f"t{factor}")
    ours = "embedlog, 3 replicas"
    show_rates("written, acks=all", {k: v[0] for k, v in results.items()}, ours=ours)
    show_rates("read", {k: v[1] for k, v in results.items()}, ours=ours)
    for name, quantile in (("p50", 50), ("p99", 99)):
        found = {k: statistics.quantiles(v[2], n=100)[quantile - 1] for k, v in results.items()}
        show(f"{name} of one record, acks=all", found, ours=ours, unit="us")


def elections() -> None:
    """Print the time from the kill of a leader to the next acknowledged record."""
    runtime = sim_runtime(seed=1)
    with Cluster(brokers=3, runtime=runtime) as cluster:
        cluster.create_topic("t", 1, replication_factor=3)
        with cluster.producer(acks="all") as producer:
            producer.send("t", RECORD).result()
            began_ms = runtime.clock.monotonic_ms()
            cluster.broker(cluster.partition("t", 0).leader).kill()
            producer.send("t", RECORD).result()
            print(f"\nafter a kill, virtual: {runtime.clock.monotonic_ms() - began_ms} ms")
    with embedlog.open(brokers=3) as cluster:
        address = cluster.listen().address
        for topic in ("t", "warm"):
            cluster.create_topic(topic, 3, replication_factor=3)
        for name, producer in (
            ("our client", _OurProducer),
            ("librdkafka", _Librdkafka),
            ("kafka-python", _KafkaPython),
        ):
            for what, end in (("a kill", BrokerNode.kill), ("a stop", BrokerNode.stop)):
                waits = sorted(wait_after(end, cluster, producer(address)) for _ in range(KILLS))
                shown = ", ".join(f"{wait * 1000:.0f}" for wait in waits)
                print(f"after {what}, {name} over TCP: {shown} ms")


def wait_after(
    end: Callable[[BrokerNode], None],
    cluster: Cluster,
    producer: _OurProducer | _Librdkafka | _KafkaPython,
) -> float:
    """Return the seconds from a leader's end to the next acknowledged record.

    The client must be new and know all brokers: a used one avoids a broker that died in the last
    second or two.
    """
    for number in range(3):
        producer.send("warm", number)
    node = cluster.broker(cluster.partition("t", 0).leader)
    producer.send("t", 0)
    end(node)
    began = time.perf_counter()
    producer.send("t", 0)
    waited = time.perf_counter() - began
    node.start()
    while len(cluster.partition("t", 0).isr) < 3:
        time.sleep(0.01)
    return waited


class _OurProducer:
    def __init__(self, address: str) -> None:
        self._producer = embedlog.Producer(address, acks="all")

    def send(self, topic: str, partition: int) -> None:
        self._producer.send(topic, RECORD, partition=partition).result()


class _Librdkafka:
    def __init__(self, address: str) -> None:
        self._producer = Producer({"bootstrap.servers": address, "acks": "all"})

    def send(self, topic: str, partition: int) -> None:
        self._producer.produce(topic, RECORD, partition=partition)
        self._producer.flush()


class _KafkaPython:
    def __init__(self, address: str) -> None:
        self._producer = KafkaProducer(bootstrap_servers=address, acks="all")

    def send(self, topic: str, partition: int) -> None:
        self._producer.send(topic, RECORD, partition=partition).get()


def many_brokers() -> None:
    """Simulate 100 brokers with 1,000 partitions, and the failure of one."""
    runtime = sim_runtime(seed=1)
    began = time.perf_counter()
    with Cluster(brokers=MANY_BROKERS, runtime=runtime) as cluster:
        cluster.create_topic("t", MANY_PARTITIONS, replication_factor=3)
        opened = time.perf_counter()
        runtime.scheduler.run_for(1_000)
        settled = time.perf_counter()
        cluster.broker(7).kill()
        runtime.scheduler.run_for(1_000)
        failed = time.perf_counter()
        led = [cluster.partition("t", number).leader for number in range(MANY_PARTITIONS)]
        assert 7 not in led
        assert -1 not in led
        print(
            f"\n{MANY_BROKERS} brokers, {MANY_PARTITIONS} partitions: opened in"
            f" {opened - began:.1f} s, a second of theirs in {settled - opened:.1f} s,"
            f" one with a failure in {failed - settled:.1f} s"
        )


def main() -> None:
    """Print all tables of several brokers."""
    starts()
    records_one_by_one()
    over_tcp()
    elections()
    many_brokers()
