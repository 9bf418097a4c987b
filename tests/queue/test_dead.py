"""Dead jobs: a list to look at, to put again, and to drop from."""

from __future__ import annotations

import pytest

import embedlog
from embedlog import Queue
from embedlog.errors import KafkaError
from embedlog.testing import Kafka
from tests.queue.test_queue import is_empty, taken


def kill(queue: Queue, *values: object) -> list[str]:
    """Put jobs and reject them; return their ids."""
    ids = []
    for value in values:
        ids.append(queue.put(value))
        taken(queue).reject(f"no {value}")
    return ids


def test_all_dead_jobs_are_put_again(queue: Queue) -> None:
    ids = kill(queue, "a", "b")
    assert [job.reason for job in queue.dead] == ["no a", "no b"]
    assert queue.dead.redrive() == 2
    assert list(queue.dead) == []
    jobs = [taken(queue), taken(queue)]
    assert [job.value for job in jobs] == ["a", "b"]
    assert [job.id for job in jobs] == ids
    for job in jobs:
        job.ack()
    assert queue.dead.redrive() == 0
    assert is_empty(queue)


def test_chosen_jobs_leave_and_the_others_stay(queue: Queue) -> None:
    a, b, c, d = kill(queue, "a", "b", "c", "d")
    dead = {job.id: job for job in queue.dead}
    assert queue.dead.drop([c, "unknown"]) == 1
    assert queue.dead.redrive([dead[b]]) == 1
    assert [job.id for job in queue.dead] == [a, d]
    assert taken(queue).value == "b"
    kill(queue, "e")
    assert [job.value for job in queue.dead] == ["a", "d", "e"]
    assert queue.dead.drop() == 3
    assert len(queue.dead) == queue.stats().dead == 0


def test_a_redriven_job_begins_anew(cluster: embedlog.Cluster) -> None:
    with cluster.queue("jobs", retries=1) as queue:
        queue.put(b"work", key="k", headers={"a": "b"})
        for _ in range(2):
            taken(queue).fail("broken")
        (dead,) = queue.dead
        assert (dead.failures, dead.last_error, dead.key, dead.deliveries) == (1, "broken", b"k", 2)
        queue.dead.redrive()
        job = taken(queue)
        assert (job.failures, job.last_error, job.deliveries) == (0, None, 1)
        assert (job.key, job.headers["a"]) == (b"k", b"b")
        job.fail("broken again")
        assert taken(queue).failures == 1
        assert len(queue.dead) == 0


def test_the_dead_topic_is_cut_as_far_as_all_jobs_have_left(
    cluster: embedlog.Cluster, queue: Queue
) -> None:
    a, b, _ = kill(queue, "a", "b", "c")
    queue.dead.drop([a])
    with cluster.consumer() as consumer:
        key = ("dlq.jobs", 0)
        assert consumer.beginning_offsets([key]) == {key: 1}
        queue.dead.drop([b])
        assert consumer.beginning_offsets([key]) == {key: 2}
    assert [job.value for job in queue.dead] == ["c"]


def test_a_priority_returns_to_its_topic(cluster: embedlog.Cluster) -> None:
    with cluster.queue("jobs", priorities=2) as queue:
        queue.put(b"urgent", priority=1)
        taken(queue).reject()
        queue.dead.redrive()
        assert taken(queue).priority == 1


def test_a_job_that_is_never_settled_dies() -> None:
    with Kafka(clock="manual") as kafka, kafka.cluster.queue("jobs") as queue:
        made = queue.put({"poison": 1}, key="k")
        for delivery in range(1, 10):
            assert taken(queue).deliveries == delivery
            kafka.clock.jump(seconds=31)
        assert is_empty(queue)
        (dead,) = queue.dead
        assert (dead.id, dead.key, dead.deliveries) == (made, b"k", 10)
        assert dead.reason == "9 deliveries ended without an acknowledgement"
        queue.dead.redrive()
        assert taken(queue).id == made


def test_the_maker_of_a_dead_job_learns_the_reason(queue: Queue) -> None:
    made = queue.put(b"work", reply=True)
    taken(queue).reject(ValueError("no"))
    with pytest.raises(embedlog.JobFailed, match="^ValueError: no$"):
        queue.result(made, timeout=10)


def test_a_second_process_cannot_redrive_at_the_same_time(
    cluster: embedlog.Cluster, queue: Queue
) -> None:
    """The later call wins: its transactional id fences the former one."""
    kill(queue, "a")
    with cluster.producer(transactional_id="dlq.jobs.leaving") as other:
        other.init_transactions()
        other.begin_transaction()
        other.send("dlq.jobs", b"x", headers=[("job.left", b"0-0")])
        other.flush()
        assert queue.dead.redrive() == 1
        with pytest.raises(KafkaError):
            other.commit_transaction()
    assert len(queue.dead) == 0
    assert taken(queue).value == "a"
