"""A queue over a connection: to Apache Kafka, and to a listener of embedlog."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import embedlog
from embedlog import AcknowledgeType, ConfigError, Job, Queue
from tests.support.kafka import real_kafka

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real_kafka(tmp_path_factory.mktemp("kafka")) as listening:
        yield listening


@pytest.fixture(scope="module")
def listener() -> Iterator[str]:
    with embedlog.open() as cluster:
        yield cluster.listen("127.0.0.1", 0).address


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.interop), "listener"])
def address(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def queue(address: str, request: pytest.FixtureRequest) -> Iterator[Queue]:
    name = request.function.__name__[:40]
    with Queue(address, name, priorities=2, retries=1) as opened:
        yield opened


def taken(queue: Queue) -> Job:
    job = queue.get(timeout=60)
    assert job is not None
    return job


def test_jobs_are_acknowledged_and_released(queue: Queue) -> None:
    made = queue.put({"number": 1}, key="k", headers={"trace": "7"})
    job = taken(queue)
    assert (job.id, job.value, job.key, job.deliveries) == (made, {"number": 1}, b"k", 1)
    assert job.headers["trace"] == b"7"
    job.renew(wait=True)
    job.release()
    again = taken(queue)
    assert (again.id, again.deliveries) == (made, 2)
    again.ack(wait=True)
    assert queue.get(timeout=0.5) is None
    stats = queue.stats()
    assert (stats.ready, stats.locked, stats.dead, stats.oldest_s) == (0, 0, 0, None)


def test_many_jobs_come_once_each(queue: Queue) -> None:
    made = queue.put_many([{"number": number} for number in range(1000)])
    urgent = queue.put(b"urgent", priority=1)
    found = []
    for _ in range(1001):
        with taken(queue) as job:
            found.append(job.id)
    assert sorted(found) == sorted([*made, urgent])
    assert queue.flush(30)
    assert queue.get(timeout=0.5) is None


def test_dead_jobs_are_put_again(queue: Queue) -> None:
    first, second = queue.put(b"1"), queue.put(b"2")
    taken(queue).reject("no such customer")
    for _ in range(2):
        with pytest.raises(ValueError, match="never"), taken(queue):
            raise ValueError("never")
    reasons = {job.id: (job.value, job.reason) for job in queue.dead}
    assert reasons == {first: (b"1", "no such customer"), second: (b"2", "ValueError: never")}
    assert (queue.stats().ready, queue.stats().dead) == (0, 2)
    assert queue.dead.redrive([first]) == 1
    assert queue.dead.drop() == 1
    with taken(queue) as job:
        assert (job.id, job.value, job.deliveries, job.last_error) == (first, b"1", 1, None)
    assert len(queue.dead) == 0


def test_jobs_become_ready_later_and_duplicates_never(queue: Queue) -> None:
    first = queue.put(b"now", delay=0.5)
    assert queue.get(timeout=0) is None
    job = taken(queue)
    assert (job.id, job.value) == (first, b"now")
    job.release(0.5, error="not yet")
    job = taken(queue)
    assert (job.id, job.deliveries, job.failures, job.last_error) == (first, 2, 1, "not yet")
    job.ack()
    queue.cancel(queue.put(b"cancelled", delay=1))
    for number in range(3):
        queue.put(b"%d" % number, dedupe="the same")
    with taken(queue) as job:
        assert job.value == b"0"
    assert queue.get(timeout=1.5) is None
    assert queue.stats().delayed == 1, "the text that is remembered"


def test_peek_and_stats_leave_out_what_is_done(queue: Queue) -> None:
    made = [queue.put(b"%d" % number) for number in range(5)]
    first, second, third = [taken(queue) for _ in range(3)]
    second.ack(wait=True)
    assert [job.id for job in queue.peek()] == [made[0], *made[2:]]
    stats = queue.stats()
    assert stats.ready + stats.locked == 4
    first.ack()
    third.ack()
    assert queue.flush(30)
    assert [job.value for job in queue.peek(1)] == [b"3"]


def test_results_and_transactions(address: str, queue: Queue) -> None:
    with embedlog.Producer(address, transactional_id=f"{queue.name}-shop") as producer:
        producer.init_transactions()
        with pytest.raises(ZeroDivisionError), producer.transaction() as transaction:
            queue.put(b"lost", transaction=transaction)
            _ = 1 / 0
        with producer.transaction() as transaction:
            made = queue.put(b"kept", transaction=transaction)
    with taken(queue) as job:
        assert (job.id, job.value) == (made, b"kept")
    asked = queue.put(b"7", reply=True)
    with taken(queue) as job:
        job.ack(result=int(job.value) * 2)
    assert queue.result(asked) == 14


def test_a_job_that_comes_too_often_dies(queue: Queue) -> None:
    made = queue.put({"poison": True}, key="k", headers={"trace": "7"})
    for number in range(9):
        job = taken(queue)
        assert job.deliveries == number + 1
        job.release()
    assert queue.get(timeout=1) is None
    (dead,) = queue.dead
    assert (dead.id, dead.value, dead.key) == (made, {"poison": True}, b"k")
    assert queue.dead.redrive() == 1
    with taken(queue) as job:
        assert (job.id, job.value, job.deliveries) == (made, {"poison": True}, 1)


def test_a_letter_of_the_broker_has_the_headers_of_its_job(address: str, queue: Queue) -> None:
    made = queue.put({"to": "x"}, id="mine", key="k", headers={"trace": "7"})
    settings = {"share.acknowledgement.mode": "explicit"}
    with embedlog.ShareConsumer(address, settings, group_id=queue.name) as consumer:
        consumer.subscribe([queue.name])
        (record,) = consumer.poll(60_000)
        consumer.acknowledge(record, AcknowledgeType.REJECT)
        consumer.commit_sync()
    deadline = time.monotonic() + 60
    while not len(queue.dead):  # the broker writes the letter after it has answered
        assert time.monotonic() < deadline
        time.sleep(0.1)
    (dead,) = queue.dead
    assert (dead.id, dead.value, dead.key, dead.deliveries) == (made, {"to": "x"}, b"k", 1)
    assert (dead.reason, dead.headers["trace"]) == ("Offset rejected by client.", b"7")


@pytest.mark.interop
def test_kafka_keeps_no_order_of_keys(kafka: str) -> None:
    with pytest.raises(ConfigError, match="only brokers of embedlog keep the order of keys"):
        Queue(kafka, "ordered", ordered=True)
    with embedlog.Admin(kafka) as admin:
        assert "ordered" not in admin.list_topics()
