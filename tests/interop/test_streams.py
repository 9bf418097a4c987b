"""Kafka Streams with exactly_once_v2 counts words over a repartition, while all parts
are killed.
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import embedlog
from tests.interop.chains.story import HERE, Program, served
from tests.support import jvm
from tests.support.tools import compiled_java

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

LINES = 30_000
WORDS = ["ash", "beech", "cedar", "elm", "fir", "gorse", "hazel", "ivy"]
END_S_MAX = 120.0


def fill(address: str, chance: random.Random) -> Counter[str]:
    """Write lines of words to two partitions; return how often each word occurs."""
    counts: Counter[str] = Counter()
    with embedlog.Admin(address) as admin:
        admin.create_topics([embedlog.NewTopic("lines", 2), embedlog.NewTopic("counts", 2)]).check()
    with embedlog.Producer(address) as producer:
        for _ in range(LINES):
            words = chance.choices(WORDS, k=3)
            counts.update(words)
            producer.send("lines", " ".join(words).encode())
    return counts


def wait_for(consumer: embedlog.Consumer, count: int, updates: dict[str, list[int]]) -> None:
    """Read until this number of updates exists."""
    deadline = time.monotonic() + END_S_MAX
    while sum(map(len, updates.values())) < count:
        assert time.monotonic() < deadline, updates
        for record in consumer.poll(200):
            assert record.key is not None
            assert record.value is not None
            updates[record.key.decode()].append(int(record.value))


@pytest.mark.parametrize("seed", [1])
def test_every_word_is_counted_once_during_kills(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    classes = tmp_path / "classes"
    classes.mkdir()
    path = compiled_java(HERE / "WordCount.java", classes)
    address, broker = served(tmp_path)
    counter = None
    try:
        counts = fill(address, chance)
        command = ["java", "-Xmx256m", *jvm.OPTIONS, "-cp", path, "WordCount"]
        command += [address, "lines", "counts"]
        counter = Program([*command, str(tmp_path / "state")], None, tmp_path / "counter.log")
        updates: dict[str, list[int]] = defaultdict(list)
        with embedlog.Consumer(address, {"isolation.level": "read_committed"}) as consumer:
            consumer.assign([("counts", 0), ("counts", 1)])
            consumer.seek_to_beginning()
            for share in (0.1, 0.3, 0.5, 0.7):
                wait_for(consumer, int(share * counts.total()), updates)
                counter.kill()
                assert sum(map(len, updates.values())) < counts.total()
                if share in (0.3, 0.7):
                    broker.kill()
                    broker.start()
                counter.start()
            wait_for(consumer, counts.total(), updates)
            assert not list(consumer.poll(1_000))
        assert updates == {word: list(range(1, counts[word] + 1)) for word in WORDS}
    finally:
        for program in (counter, broker):
            if program is not None:
                program.kill()
