"""Logs for the tests of Spark's readers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import embedlog
from tests.storage.logs import append, append_marker

FIRST_MS = 1_700_000_000_000


@contextmanager
def filled(path: Path, counts: dict[str, list[int]], **config: str) -> Iterator[Any]:
    """A cluster over `path`; each partition of a topic has the given number of records.

    Record n of a partition has the key k<n> (every third: null), the value v<n>, a header, and a
    timestamp n seconds after the first one.
    """
    with embedlog.open(path, durability="os") as cluster:
        for topic, sizes in counts.items():
            cluster.create_topic(topic, len(sizes), config=config)
            for number, count in enumerate(sizes):
                add(cluster, topic, number, range(count))
        yield cluster


def add(cluster: Any, topic: str, partition: int, numbers: range, linger_ms: int = 5) -> None:
    """Append records with these numbers."""
    with cluster.producer(linger_ms=linger_ms) as producer:
        for n in numbers:
            producer.send(
                topic,
                b"v%d" % n,
                key=None if n % 3 == 0 else b"k%d" % n,
                partition=partition,
                timestamp_ms=FIRST_MS + 1000 * n,
                headers=[("number", b"%d" % n)],
            )
        producer.flush()


def add_transaction(cluster: Any, producer_id: int, values: list[bytes], *, commits: bool) -> None:
    """Append a transaction to t-0 and end it."""
    partition = cluster.broker().core.replica_manager.partition("t", 0)
    log = partition.log
    with log.lock:
        append(log, *values, producer=(producer_id, 0, 0), transactional=True)
        append_marker(log, producer_id, committed=commits)
        log.offsets.commit(False)
