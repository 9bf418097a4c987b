"""Kafka Streams with exactly_once_v2 counts words in a streams group, while parts are killed."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import embedlog
from tests.interop.groups.serving import Serve
from tests.interop.streams.instance import Instance, compiled

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(400)]

LINES = 20_000
WORDS = ["ash", "beech", "cedar", "elm", "fir", "gorse", "hazel", "ivy"]
PARTITIONS = 4
SETTINGS = {
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "3000",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.initial.rebalance.delay.ms": "500",
    "group.streams.num.standby.replicas": "1",
}
"""The group notices a killed instance after three seconds."""
END_S_MAX = 150.0

Updates = dict[str, list[int]]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Serve]:
    serve = Serve(tmp_path / "data", SETTINGS)
    try:
        yield serve
    finally:
        serve.discard()


def fill(address: str, chance: random.Random, *, replicas: int = 1) -> Counter[str]:
    """Write lines of words; return the number of each word."""
    counts: Counter[str] = Counter()
    with embedlog.Admin(address) as admin:
        topics = {"lines": PARTITIONS, "counts": 2}
        admin.create_topics(
            [embedlog.NewTopic(name, count, replicas) for name, count in topics.items()]
        ).check()
    with embedlog.Producer(address) as producer:
        for _ in range(LINES):
            words = chance.choices(WORDS, k=3)
            counts.update(words)
            producer.send("lines", " ".join(words).encode())
    return counts


def wait_for(consumer: embedlog.Consumer, count: int, updates: Updates) -> None:
    """Read until this number of updates exists."""
    deadline = time.monotonic() + END_S_MAX
    while sum(map(len, updates.values())) < count:
        assert time.monotonic() < deadline, {word: len(found) for word, found in updates.items()}
        for record in consumer.poll(200):
            assert record.key is not None
            assert record.value is not None
            updates[record.key.decode()].append(int(record.value))


def test_every_word_is_counted_once_while_instances_and_the_broker_are_killed(
    broker: Serve, tmp_path: Path
) -> None:
    classes = compiled(tmp_path)
    counts = fill(broker.address, random.Random(1))
    total = counts.total()
    instances: list[Instance] = []
    try:
        instances += [
            Instance(classes, broker.address, tmp_path / f"instance-{number}", threads=2)
            for number in range(2)
        ]
        updates: Updates = defaultdict(list)
        with embedlog.Consumer(broker.address, {"isolation.level": "read_committed"}) as consumer:
            consumer.assign([("counts", 0), ("counts", 1)])
            consumer.seek_to_beginning()
            for share, victims in ((0.1, [0]), (0.3, [1]), (0.5, []), (0.7, [0, 1])):
                wait_for(consumer, int(share * total), updates)
                for number in victims:
                    instances[number].kill()
                assert sum(map(len, updates.values())) < total
                if not victims:
                    broker.kill()
                    broker.start()
                for number in victims:
                    instances[number].start()
            wait_for(consumer, total, updates)
            assert not list(consumer.poll(1_000))
        assert updates == {word: list(range(1, counts[word] + 1)) for word in WORDS}
        for instance in instances:
            instance.stop()
    finally:
        for instance in instances:
            instance.kill()


def test_every_word_is_counted_once_while_the_coordinators_move(tmp_path: Path) -> None:
    """Each of three brokers is stopped in turn, so the group's coordinator moves."""
    classes = compiled(tmp_path)
    with embedlog.open(
        brokers=3, config={**SETTINGS, "default.replication.factor": "3"}
    ) as cluster:
        cluster.listen()
        address = ",".join(filter(None, (each.address for each in cluster.brokers)))
        counts = fill(address, random.Random(2), replicas=3)
        total = counts.total()
        instance = Instance(classes, address, tmp_path / "instance", threads=2)
        try:
            updates: Updates = defaultdict(list)
            with embedlog.Consumer(address, {"isolation.level": "read_committed"}) as consumer:
                consumer.assign([("counts", 0), ("counts", 1)])
                consumer.seek_to_beginning()
                for share, broker in zip((0.2, 0.4, 0.6), cluster.brokers, strict=True):
                    wait_for(consumer, int(share * total), updates)
                    broker.stop()
                    broker.start()
                wait_for(consumer, total, updates)
                assert not list(consumer.poll(1_000))
            assert updates == {word: list(range(1, counts[word] + 1)) for word in WORDS}
            instance.stop()
        finally:
            instance.kill()
