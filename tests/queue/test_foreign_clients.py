"""A queue is a share group of Kafka: confluent-kafka works on its jobs, and makes some."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import confluent_kafka as confluent
import pytest

import embedlog
from embedlog import Job, Queue

pytestmark = [pytest.mark.interop, pytest.mark.slow]

KINDS = confluent.AcknowledgeType


@pytest.fixture
def address(cluster: embedlog.Cluster) -> str:
    return cluster.listen("127.0.0.1", 0).address


@pytest.fixture
def worker(address: str) -> Iterator[Any]:
    """A foreign worker of the queue."""
    settings = {
        "bootstrap.servers": address,
        "group.id": "jobs",
        "share.acknowledgement.mode": "explicit",
    }
    consumer = confluent.ShareConsumer(settings)
    consumer.subscribe(["jobs"])
    yield consumer
    consumer.close()


def worked(worker: Any, *kinds: Any) -> list[Any]:
    """Take a job for each kind of acknowledgement, and settle it so; return the records."""
    found: list[Any] = []
    deadline = time.monotonic() + 60
    while len(found) < len(kinds):
        assert time.monotonic() < deadline, found
        for record in worker.poll(0.5):
            worker.acknowledge(record, kinds[len(found)])
            found.append(record)
        assert not any(worker.commit_sync(30).values())
    return found


def taken(queue: Queue) -> Job:
    job = queue.get(timeout=60)
    assert job is not None
    return job


def test_a_foreign_worker_does_the_jobs(queue: Queue, worker: Any) -> None:
    queue.put({"to": "a@example.com"}, key="customer 7", headers={"trace": "7"})
    queue.put(b"\x00\xff")
    (first, second) = worked(worker, KINDS.ACCEPT, KINDS.ACCEPT)
    assert (first.key(), first.value()) == (b"customer 7", b'{"to":"a@example.com"}')
    assert dict(first.headers()) == {"content-type": b"application/json", "trace": b"7"}
    assert (second.key(), second.value()) == (None, b"\x00\xff")
    made = queue.put("later", delay=0.2, key="k")
    (released,) = worked(worker, KINDS.RELEASE)
    assert (released.key(), released.value()) == (b"k", b'"later"')
    assert dict(released.headers())["job.id"] == made.encode()
    (rejected,) = worked(worker, KINDS.REJECT)
    assert (rejected.offset(), rejected.delivery_count()) == (released.offset(), 2)
    assert queue.get(timeout=0.2) is None
    (dead,) = queue.dead
    assert (dead.id, dead.value, dead.key, dead.deliveries) == (made, "later", b"k", 2)
    stats = queue.stats()
    assert (stats.ready, stats.locked, stats.dead) == (0, 0, 1)
    queue.dead.redrive()
    with taken(queue) as job:
        assert (job.id, job.value, job.key) == (made, "later", b"k")


def test_both_kinds_of_workers_share_the_jobs(queue: Queue, worker: Any) -> None:
    queue.put_many([b"%d" % number for number in range(20)])
    ours = taken(queue)
    others = worked(worker, *[KINDS.ACCEPT] * 19)
    assert {ours.value, *(each.value() for each in others)} == {b"%d" % n for n in range(20)}
    assert queue.get(timeout=0.2) is None
    ours.release()
    (again,) = worked(worker, KINDS.ACCEPT)
    assert (again.value(), again.delivery_count()) == (ours.value, 2)
    assert queue.get(timeout=0.2) is None


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_jobs_of_a_foreign_producer_are_taken(queue: Queue, address: str, codec: str) -> None:
    producer = confluent.Producer({"bootstrap.servers": address, "compression.type": codec})
    headers = [
        ("content-type", b"application/json"),
        ("empty", None),
        ("twice", b"1"),
        ("twice", b"2"),
    ]
    producer.produce("jobs", b'{"a":1}', key=b"\xff\x00", headers=headers)
    producer.produce("jobs", None, key=b"no value")
    producer.produce("jobs", b"", key=None)
    producer.produce("jobs", b"{no json", headers=headers[:1])
    producer.produce("jobs", b"x" * 100_000, headers=[("job.deliveries", b"many")])
    assert producer.flush(30) == 0
    first, no_value, empty, wrong, large = [taken(queue) for _ in range(5)]
    assert (first.value, first.key) == ({"a": 1}, b"\xff\x00")
    assert (first.headers["empty"], first.headers["twice"]) == (None, b"2")
    assert (no_value.value, no_value.raw, no_value.key) == (None, None, b"no value")
    assert (empty.value, empty.key) == (b"", None)
    with pytest.raises(ValueError, match="property name"):
        _ = wrong.value
    assert wrong.raw == b"{no json"
    assert (large.value, large.deliveries) == (b"x" * 100_000, 1)
    first.release(error="try again")
    first = taken(queue)
    assert (first.value, first.key, first.headers["empty"]) == ({"a": 1}, b"\xff\x00", None)
    for job in (first, empty, large):
        job.ack()
    no_value.reject("no value")
    wrong.reject("no JSON")
    assert {job.reason: job.raw for job in queue.dead} == {
        "no value": None,
        "no JSON": b"{no json",
    }
    assert queue.dead.redrive() == 1
    with taken(queue) as job:
        assert job.raw == b"{no json"
