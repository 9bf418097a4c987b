"""Threads that use a cluster during its close get ClosedError from each call, and soon."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog.errors import ClosedError
from tests.support.sizes import size

_KEY = embedlog.TopicPartition("events", 0)
_STUCK_AFTER_S = 30.0
_numbers = itertools.count()


def follow(cluster: embedlog.Cluster) -> Callable[[], object]:
    consumer = cluster.consumer(group_id="g", auto_offset_reset="earliest")
    consumer.subscribe(["events"])

    def work() -> None:
        consumer.poll(5)
        consumer.commit()
        consumer.commit_async()
        consumer.committed([_KEY])

    return work


def wait(cluster: embedlog.Cluster) -> Callable[[], object]:
    consumer = cluster.consumer()
    consumer.assign([_KEY])
    return lambda: consumer.poll(600_000)


def look(cluster: embedlog.Cluster) -> Callable[[], object]:
    consumer = cluster.consumer()
    consumer.assign([_KEY])

    def work() -> None:
        consumer.end_offsets([_KEY])
        consumer.offsets_for_times({_KEY: 0})
        consumer.seek_to_end()
        consumer.position(_KEY)
        consumer.list_topics()
        consumer.partitions_for("events")

    return work


def administer(cluster: embedlog.Cluster) -> Callable[[], object]:
    admin = cluster.admin()

    def work() -> None:
        admin.create_topics([embedlog.NewTopic(f"admin-{next(_numbers)}", 1)]).check()
        admin.describe_topics(["events"]).check()
        admin.list_groups()
        admin.describe_cluster()

    return work


def transact(cluster: embedlog.Cluster) -> Callable[[], object]:
    producer = cluster.producer(transactional_id="race")
    producer.init_transactions()

    def work() -> None:
        with producer.transaction() as transaction:
            transaction.send("events", b"1")

    return work


def append(cluster: embedlog.Cluster) -> Callable[[], object]:
    producer = cluster.producer()
    return lambda: producer.append("events", b"1")


def send(cluster: embedlog.Cluster) -> Callable[[], object]:
    producer = cluster.producer()

    def work() -> None:
        producer.send("events", b"1").result()
        producer.send_batch("events", [b"1", b"2"]).result()
        producer.flush()
        producer.partitions_for("events")

    return work


def manage(cluster: embedlog.Cluster) -> Callable[[], object]:
    def work() -> None:
        cluster.maintain()
        cluster.health()
        cluster.create_topic(f"cluster-{next(_numbers)}", 1)
        _ = cluster.topics

    return work


def listen(cluster: embedlog.Cluster) -> Callable[[], object]:
    return lambda: cluster.listen("127.0.0.1", 0).close()


def make_clients(cluster: embedlog.Cluster) -> Callable[[], object]:
    def work() -> None:
        producer = cluster.producer()
        producer.send("events", b"1")
        producer.close()
        cluster.consumer(group_id="h").close()
        cluster.admin().close()

    return work


WORKERS = (
    *(follow, wait, look, administer, transact),
    *(append, send, manage, listen, make_clients),
)


class Race:
    """Threads over one cluster, each in a loop until an exception ends it."""

    def __init__(self, cluster: embedlog.Cluster) -> None:
        self._cluster = cluster
        self.ends: dict[str, BaseException] = {}
        self._turns = dict.fromkeys((worker.__name__ for worker in WORKERS), 0)
        self._threads = [
            threading.Thread(target=self._run, args=(worker,), name=worker.__name__, daemon=True)
            for worker in WORKERS
        ]

    def run(self, turn_count: int) -> None:
        """Close the cluster when the threads together have made `turn_count` turns."""
        for thread in self._threads:
            thread.start()
        while sum(self._turns.values()) < turn_count:
            self._threads[0].join(0.001)
        self._cluster.close()
        for thread in self._threads:
            thread.join(_STUCK_AFTER_S)
        stuck = [thread.name for thread in self._threads if thread.is_alive()]
        assert not stuck, stuck
        wrong = {name: end for name, end in self.ends.items() if type(end) is not ClosedError}
        assert not wrong, wrong

    def _run(self, worker: Callable[[embedlog.Cluster], Callable[[], Any]]) -> None:
        try:
            work = worker(self._cluster)
            while True:
                work()
                self._turns[worker.__name__] += 1
        except BaseException as error:
            self.ends[worker.__name__] = error


def opened(kind: str, directory: Path) -> embedlog.Cluster:
    if kind == "several":
        made = embedlog.open(brokers=3)
    else:
        path = None if kind == "memory" else directory / "data"
        made = embedlog.open(path, durability=kind)
    made.create_topic("events", 2)
    return made


def test_every_call_that_meets_the_close_raises_closed_error(tmp_path: Path) -> None:
    Race(opened("memory", tmp_path)).run(30)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["memory", "os", "fsync", "several"])
def test_every_call_that_meets_any_close_raises_closed_error(kind: str, tmp_path: Path) -> None:
    for number in range(size(6, full=100)):
        Race(opened(kind, tmp_path / str(number))).run(number * 37 % 300)


@pytest.mark.parametrize("place", ["in process", "tcp"])
def test_a_producer_that_another_thread_closes_raises_closed_error(place: str) -> None:
    with embedlog.open() as cluster:
        cluster.create_topic("events", 1)
        target = cluster if place == "in process" else cluster.listen("127.0.0.1", 0).address
        producer = embedlog.Producer(target)
        producer.append("events", b"1")
        ends: list[BaseException] = []
        turns: list[None] = []

        def work() -> None:
            try:
                while True:
                    producer.send("events", b"1")
                    producer.flush()
                    producer.append("events", b"1")
                    turns.append(None)
            except BaseException as error:
                ends.append(error)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        while len(turns) < 30:
            threads[0].join(0.001)
        producer.close()
        for thread in threads:
            thread.join(_STUCK_AFTER_S)
        assert [type(error) for error in ends] == [ClosedError] * 3, ends
