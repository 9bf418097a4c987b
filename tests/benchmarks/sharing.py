"""Share groups over TCP: records a second that a member reads and acknowledges.

The same two clients against embedlog and Apache Kafka: confluent-kafka's ShareConsumer and ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import AcknowledgeType as ConfluentType
from confluent_kafka import Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, NewTopic

import embedlog
from embedlog import AlterOperation, ConfigResource
from tests.benchmarks.brokers import KAFKA, OURS, broker, names
from tests.benchmarks.table import show_rates

COUNT = 100_000
VALUE = b"v" * 100
BATCH_SIZE = 16_384
ROUNDS = 3
SECONDS_MAX = 60
TOPIC = "jobs"
MODES = {"accepts its last poll": "implicit", "acknowledges each record": "explicit"}

Measure = Callable[[str, str, str], float]


def fill(address: str) -> None:
    """Write the records."""
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
        future.result(SECONDS_MAX)
    producer = Producer({"bootstrap.servers": address, "batch.size": BATCH_SIZE, "linger.ms": 5})
    for number in range(COUNT):
        producer.produce(TOPIC, VALUE, partition=0)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(SECONDS_MAX) == 0


def begin_at_the_start(address: str, group: str) -> None:
    """Let a new group read all records."""
    earliest = {"share.auto.offset.reset": (AlterOperation.SET, "earliest")}
    with embedlog.Admin(address) as admin:
        admin.incremental_alter_configs({ConfigResource("group", group): earliest}).check()


def confluent(address: str, group: str, mode: str) -> float:
    """Return the records a second of confluent-kafka, from the first to the last."""
    consumer = ShareConsumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "share.acknowledgement.mode": mode,
            "log_level": 0,
        }
    )
    consumer.subscribe([TOPIC])
    seen, started = 0, 0.0
    deadline = time.monotonic() + SECONDS_MAX
    while seen < COUNT and time.monotonic() < deadline:
        messages = list(consumer.poll(1.0))
        if messages and not started:
            started = time.perf_counter()
            first = len(messages)
        seen += len(messages)
        if mode == "explicit":
            for each in messages:
                consumer.acknowledge(each, ConfluentType.ACCEPT)
    consumer.commit_sync(SECONDS_MAX)
    seconds = time.perf_counter() - started
    consumer.close()
    return (seen - first) / seconds


def ours(address: str, group: str, mode: str) -> float:
    """Return the records a second of `embedlog.ShareConsumer`, from the first to the last."""
    accept = embedlog.AcknowledgeType.ACCEPT
    with embedlog.ShareConsumer(
        address, group_id=group, share_acknowledgement_mode=mode
    ) as consumer:
        consumer.subscribe([TOPIC])
        seen, started = 0, 0.0
        deadline = time.monotonic() + SECONDS_MAX
        while seen < COUNT and time.monotonic() < deadline:
            records = consumer.poll(1000)
            if records and not started:
                started = time.perf_counter()
                first = len(records)
            seen += len(records)
            if mode == "explicit":
                for record in records:
                    consumer.acknowledge(record, accept)
        consumer.commit_sync()
        return (seen - first) / (time.perf_counter() - started)


CLIENTS: dict[str, Measure] = {"confluent-kafka": confluent, "our client": ours}


def main() -> None:
    """Print a table for each mode."""
    targets = [name for name in names() if name in {OURS, KAFKA}]
    best: dict[str, dict[str, float]] = {mode: {} for mode in MODES}
    for name in targets:
        with broker(name) as address:
            fill(address)
            for number in range(ROUNDS):
                for title, mode in MODES.items():
                    for client, measure in CLIENTS.items():
                        group = f"{client}-{mode}-{number}".replace(" ", "-")
                        begin_at_the_start(address, group)
                        row = f"{name}, {client}"
                        rate = measure(address, group, mode)
                        best[title][row] = max(best[title].get(row, 0.0), rate)
    for title, rates in best.items():
        show_rates(f"share group over TCP, one member {title}, {len(VALUE)} B", rates,
                   ours=f"{OURS}, confluent-kafka")  # fmt: skip
