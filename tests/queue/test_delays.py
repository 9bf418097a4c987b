"""Delayed jobs become ready at their time, once, and survive the death of their mover."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import embedlog
from embedlog import ConfigError, Queue
from embedlog.testing import Kafka
from tests.queue.test_queue import is_empty, taken


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka(clock="manual") as opened:
        yield opened


@pytest.fixture
def jobs(kafka: Kafka) -> Iterator[Queue]:
    with kafka.cluster.queue("jobs") as opened:
        yield opened


def test_a_job_comes_after_its_delay(kafka: Kafka, jobs: Queue) -> None:
    put_at_ms = kafka.clock.now_ms
    made = jobs.put({"number": 1}, delay=120, key="k", headers={"a": "b"})
    kafka.clock.jump(seconds=119)
    assert jobs.stats().delayed == 1
    assert is_empty(jobs)
    kafka.clock.jump(seconds=2)
    job = taken(jobs)
    assert (job.id, job.value, job.key, job.headers["a"]) == (made, {"number": 1}, b"k", b"b")
    assert 0 <= job.put_at_ms - put_at_ms < 60_000
    job.ack()
    kafka.clock.jump(minutes=1)
    assert is_empty(jobs)
    assert jobs.stats().delayed == 0


def test_jobs_become_ready_in_the_order_of_their_times(kafka: Kafka, jobs: Queue) -> None:
    now = datetime.fromtimestamp(kafka.clock.now_ms / 1000, UTC)
    jobs.put(b"3", at=now + timedelta(seconds=30))
    jobs.put(b"1", delay=timedelta(seconds=10))
    jobs.put(b"2", at=kafka.clock.now_ms / 1000 + 20)
    kafka.clock.jump(minutes=1)
    assert [taken(jobs).value for _ in range(3)] == [b"1", b"2", b"3"]


@pytest.mark.parametrize("kind", ["replaced", "cancelled"])
def test_a_mover_that_reads_late_moves_no_former_job(kafka: Kafka, jobs: Queue, kind: str) -> None:
    jobs.put(b"old", delay=10, id="mail")
    jobs.put(b"early", delay=1)
    kafka.clock.jump(seconds=2)
    taken(jobs).ack()  # the mover has read both
    client = {"client_id": "queue-jobs-mover"}
    with kafka.hold("Fetch", **client) as hold, kafka.record() as seen:
        if kind == "replaced":
            jobs.put(b"new", delay=1000, id="mail")
        else:
            jobs.cancel("mail")
        kafka.clock.jump(seconds=20)
        # It asks for the end of the topic before it moves a due job.
        kafka.wait.until(lambda: seen.requests("ListOffsets", **client))
        for each in hold.held:
            each.release()
    kafka.clock.jump(seconds=20)
    assert is_empty(jobs)
    assert jobs.stats().delayed == (1 if kind == "replaced" else 0)


def test_an_id_replaces_the_delayed_job(kafka: Kafka, jobs: Queue) -> None:
    jobs.put(b"old", delay=10, id="mail")
    jobs.put(b"new", delay=20, id="mail")
    jobs.put(b"other", delay=15)
    kafka.clock.jump(seconds=60)
    assert [taken(jobs).value, taken(jobs).value] == [b"other", b"new"]
    assert is_empty(jobs)


def test_a_delayed_job_can_be_cancelled(kafka: Kafka, jobs: Queue) -> None:
    jobs.put(b"0", delay=10)
    kafka.clock.jump(seconds=10)
    assert taken(jobs).value == b"0"  # the mover has read all records
    unnamed = jobs.put(b"1", delay=10)
    jobs.put(b"2", delay=10, id="named")
    jobs.put(b"3", delay=10)
    jobs.cancel(unnamed)
    jobs.cancel("named")
    jobs.cancel("unknown")
    kafka.clock.jump(seconds=15)
    assert taken(jobs).value == b"3"
    assert is_empty(jobs)
    assert jobs.stats().delayed == 0


def test_one_of_the_jobs_with_one_text_is_ready_in_a_window(kafka: Kafka, jobs: Queue) -> None:
    for number in range(3):
        jobs.put(number, dedupe="order 1", window=60)
    jobs.put("other", dedupe="order 2", window=60)
    for expected in (0, "other"):
        with taken(jobs) as job:
            assert job.value == expected
    assert is_empty(jobs)
    # Compaction removes the first job, and keeps a record that remembers its text.
    live = [record.key for record in kafka.topic("jobs.delayed").records() if record.value == b""]
    assert live == [b"seen:order 1", b"seen:order 2"]
    kafka.clock.jump(seconds=50)
    jobs.put(3, dedupe="order 1", window=60)
    assert is_empty(jobs)
    kafka.clock.jump(seconds=20)
    jobs.put(4, dedupe="order 1", window=60)
    assert taken(jobs).value == 4


def test_a_cron_job_comes_at_each_time(kafka: Kafka, jobs: Queue) -> None:
    jobs.put(b"report", cron="* * * * *", id="minutely")
    ids = []
    for _ in range(3):
        kafka.clock.jump(minutes=1)
        with taken(jobs) as job:
            ids.append(job.id)
        assert is_empty(jobs)
    assert len(set(ids)) == 3
    assert all(each.startswith("minutely-") for each in ids)
    jobs.cancel("minutely")
    kafka.clock.jump(minutes=2)
    assert is_empty(jobs)


def test_a_wrong_cron_expression_is_refused(jobs: Queue) -> None:
    with pytest.raises(ConfigError, match="every day"):
        jobs.put(b"x", cron="every day")


def test_a_released_job_comes_again_later(kafka: Kafka, jobs: Queue) -> None:
    made = jobs.put(b"work", key="k")
    taken(jobs).release(delay=30)
    assert is_empty(jobs)
    kafka.clock.jump(seconds=31)
    job = taken(jobs)
    assert (job.id, job.value, job.key, job.deliveries, job.failures) == (made, b"work", b"k", 2, 0)


def test_delayed_jobs_survive_a_restart(tmp_path: Path) -> None:
    with embedlog.open(tmp_path) as cluster, cluster.queue("jobs") as queue:
        queue.put(b"now", delay=0.01)
        assert taken(queue).value == b"now"
        queue.put(b"later", delay=0.3)
        queue.put(b"gone", delay=0.3, id="gone")
        queue.cancel("gone")
        for number in range(3):
            queue.put(number, dedupe="text")
        with taken(queue) as job:
            assert job.value == 0
    with embedlog.open(tmp_path) as cluster, cluster.queue("jobs") as queue:
        queue.put(3, dedupe="text")  # within the window that the former process has begun
        queue.put("end", dedupe="another text")
        assert {taken(queue).value for _ in range(3)} == {b"now", b"later", "end"}


def test_another_queue_object_moves_the_jobs_after_the_first(kafka: Kafka) -> None:
    first, second = kafka.cluster.queue("jobs"), kafka.cluster.queue("jobs")
    first.put(b"1", delay=60)
    second.put(b"2", delay=60)
    first.close()
    kafka.clock.jump(seconds=61)
    assert {taken(second).value, taken(second).value} == {b"1", b"2"}
    assert is_empty(second)
    second.close()


def test_a_process_notices_the_delayed_jobs_of_another(kafka: Kafka) -> None:
    worker = kafka.cluster.queue("jobs")
    assert is_empty(worker)
    with kafka.cluster.queue("jobs") as other:
        other.put(b"later", delay=60)
    kafka.clock.jump(seconds=61)
    assert taken(worker).value == b"later"
    worker.close()


def test_a_record_of_another_program_does_not_stop_the_mover(kafka: Kafka, jobs: Queue) -> None:
    jobs.put(b"1", delay=10)
    foreign = [
        [],
        [("job.to", b"elsewhere")],
        [("job.to", b"jobs"), ("job.cron", b"every day")],
        [("job.to", b"jobs"), ("job.put.at", b"\xff"), ("job.dedupe", b"\xff")],
    ]
    with kafka.cluster.producer() as producer:
        for number, headers in enumerate(foreign):
            producer.append("jobs.delayed", b"strange", key=b"%d" % number, headers=headers)
    jobs.put(b"2", delay=20)
    kafka.clock.jump(seconds=30)
    assert sorted(taken(jobs).value for _ in range(3)) == [b"1", b"2", b"strange"]
    assert is_empty(jobs)


def test_a_delayed_job_may_be_part_of_a_transaction(kafka: Kafka, jobs: Queue) -> None:
    with kafka.cluster.producer(transactional_id="shop") as producer:
        producer.init_transactions()
        with pytest.raises(ZeroDivisionError), producer.transaction() as transaction:
            jobs.put(b"lost", delay=10, transaction=transaction)
            _ = 1 / 0
        with producer.transaction() as transaction:
            jobs.put(b"kept", delay=10, transaction=transaction)
    kafka.clock.jump(seconds=20)
    assert taken(jobs).value == b"kept"
    assert is_empty(jobs)
