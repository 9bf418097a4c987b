"""Locks end, are renewed, and are given back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

import embedlog
from embedlog import Job, Queue
from embedlog.errors import InvalidRecordState, KafkaError
from embedlog.testing import Kafka
from tests.queue.test_queue import is_empty, taken

PATIENCE_S = 30


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka(clock="manual") as opened:
        yield opened


@pytest.fixture
def jobs(kafka: Kafka) -> Iterator[Queue]:
    with kafka.cluster.queue("jobs") as opened:
        yield opened


def with_jobs_at_hand(jobs: Queue) -> list[bytes]:
    """Work fast until the process has fetched jobs ahead; return the values of the others."""
    values = [b"%d" % number for number in range(40)]
    jobs.put_many(values)
    for _ in range(20):
        taken(jobs).ack()
    assert jobs.stats().locked
    return values[20:]


def test_a_job_whose_lock_has_ended_is_not_handed_out(kafka: Kafka, jobs: Queue) -> None:
    left = with_jobs_at_hand(jobs)
    kafka.clock.jump(seconds=31)
    found = []
    for _ in left:
        job = taken(jobs)
        found.append(job.value)
        job.ack(wait=True)
    assert sorted(found) == sorted(left)
    assert jobs.stats().late == 0


@pytest.mark.slow
def test_an_ended_lock_is_noticed_if_nothing_ran_meanwhile() -> None:
    with (
        embedlog.open(group_share_min_record_lock_duration_ms=1000) as cluster,
        cluster.queue("jobs", lock=1) as jobs,
    ):
        left = with_jobs_at_hand(jobs)
        time.sleep(1.2)
        found = []
        for _ in left:
            job = taken(jobs)
            found.append(job.value)
            job.ack(wait=True)
        assert sorted(found) == sorted(left)
        assert jobs.stats().late == 0


def test_jobs_that_no_worker_takes_go_to_another_process(kafka: Kafka, jobs: Queue) -> None:
    left = with_jobs_at_hand(jobs)
    kafka.clock.jump(seconds=3)
    with kafka.cluster.queue("jobs") as other:
        found = []
        for _ in left:
            with taken(other) as job:
                found.append(job.value)
    assert sorted(found) == sorted(left)


def test_the_lock_is_renewed_while_the_function_runs(kafka: Kafka, jobs: Queue) -> None:
    has_begun, may_end = threading.Event(), threading.Event()
    deliveries = []

    @jobs.worker
    def work(job: Job) -> None:
        deliveries.append(job.deliveries)
        has_begun.set()
        assert may_end.wait(PATIENCE_S)

    jobs.put(b"long")
    with work, kafka.cluster.queue("jobs") as other:
        assert has_begun.wait(PATIENCE_S)
        for _ in range(12):
            kafka.clock.jump(seconds=10)
            threading.Event().wait(0.02)  # the thread that renews wakes up
        assert is_empty(other)
        may_end.set()
    assert deliveries == [1]
    assert work.done_count == 1
    assert jobs.stats().late == 0


def test_the_records_of_done_jobs_are_removed(kafka: Kafka, jobs: Queue) -> None:
    jobs.put_many([b"1", b"2", b"3"])
    taken(jobs).ack()
    taken(jobs).ack(wait=True)
    kafka.clock.jump(seconds=61)
    with taken(jobs) as job:
        assert job.value == b"3"
    with kafka.cluster.consumer() as consumer:
        assert consumer.beginning_offsets([("jobs", 0)]) == {("jobs", 0): 2}


@pytest.mark.parametrize("is_remote", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_locks_that_end_with_the_session_are_noticed(is_remote: bool) -> None:
    """After a restart of the broker, another process gets the jobs that the first one had."""
    with Kafka() as kafka:
        target = kafka.bootstrap_servers if is_remote else kafka.cluster
        with embedlog.Queue(target, "jobs") as jobs:
            left = with_jobs_at_hand(jobs)
            running = taken(jobs)
            broker = kafka.cluster.broker()
            broker.stop()
            broker.start()
            with embedlog.Queue(target, "jobs") as other:
                first = taken(other)
                with pytest.raises(KafkaError):  # the first request tells that the session is lost
                    taken(jobs).ack(wait=True)
                with pytest.raises(InvalidRecordState, match="has ended"):
                    running.ack()
                found = [first.value]
                first.ack(wait=True)
                while len(found) < len(left):
                    job = taken(jobs)
                    found.append(job.value)
                    job.ack(wait=True)
                assert sorted(found) == sorted(left)
            assert is_empty(jobs)
            assert jobs.stats().late == 1
