"""Jobs are put, taken, and settled one by one."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog import AcknowledgeType, ConfigError, IllegalState, Job, Queue
from embedlog.errors import ClosedError, InvalidRecordState, InvalidRequest, MessageTooLarge
from embedlog.testing import Kafka


def taken(queue: Queue) -> Job:
    job = queue.get(timeout=10)
    assert job is not None
    return job


def is_empty(queue: Queue) -> bool:
    return queue.get(timeout=0.05) is None


def test_the_end_of_the_block_acknowledges(queue: Queue) -> None:
    made = queue.put(b"work")
    with taken(queue) as job:
        assert (job.id, job.value, job.deliveries, job.failures) == (made, b"work", 1, 0)
    assert is_empty(queue)
    assert queue.stats().ready == queue.stats().locked == 0


def test_jobs_come_in_the_order_of_their_puts(queue: Queue) -> None:
    queue.put_many([b"%d" % number for number in range(300)])
    values = []
    for _ in range(300):
        with taken(queue) as job:
            values.append(int(job.value))
    assert values == list(range(300))
    assert is_empty(queue)


def test_get_returns_none_when_its_time_is_over(queue: Queue) -> None:
    assert queue.get(timeout=0) is None
    assert queue.get(timeout=0.01) is None


@pytest.mark.parametrize("value", [b"", b"x", {"a": [1, None, "b"]}, "text", 7, None, [], True])
def test_values_come_back_as_they_were_put(queue: Queue, value: object) -> None:
    queue.put(value)
    job = taken(queue)
    assert job.value == value
    assert type(job.value) is type(value)


def test_a_value_that_is_no_json_is_refused(queue: Queue) -> None:
    with pytest.raises(TypeError, match="bytes or JSON, not object"):
        queue.put(object())
    with pytest.raises(TypeError, match="bytes or JSON, not float"):
        queue.put(float("nan"))
    assert is_empty(queue)


def test_a_serializer_takes_any_object(cluster: embedlog.Cluster) -> None:
    with cluster.queue("objects", serializer=pickle) as queue:
        queue.put({1, 2})
        assert taken(queue).value == {1, 2}
    with cluster.queue("texts", serializer=json) as queue:
        queue.put({"a": 1})
        assert taken(queue).raw == b'{"a": 1}'


def test_a_failing_block_releases_the_job_with_its_error(queue: Queue) -> None:
    made = queue.put(b"work", key="k")
    with pytest.raises(ZeroDivisionError), taken(queue):
        _ = 1 / 0
    job = taken(queue)
    assert (job.id, job.value, job.key, job.deliveries, job.failures) == (made, b"work", b"k", 2, 1)
    assert job.last_error == "ZeroDivisionError: division by zero"


def test_a_job_dies_after_its_retries(cluster: embedlog.Cluster) -> None:
    with cluster.queue("jobs", retries=2) as queue:
        made = queue.put({"number": 1})
        for _ in range(3):
            with pytest.raises(ValueError, match="never"), taken(queue):
                raise ValueError("never")
        assert is_empty(queue)
        (dead,) = queue.dead
        assert (dead.id, dead.value, dead.deliveries) == (made, {"number": 1}, 3)
        assert dead.reason == dead.last_error == "ValueError: never"
        assert queue.stats().dead == 1


def test_a_job_that_comes_too_often_dies(queue: Queue) -> None:
    made = queue.put({"poison": True}, id="mine", key="k", headers={"trace": "7"})
    for number in range(9):
        job = taken(queue)
        assert job.deliveries == number + 1
        job.release()
    assert is_empty(queue)
    (dead,) = queue.dead
    assert (dead.id, dead.value, dead.key) == (made, {"poison": True}, b"k")
    assert dead.reason == "9 deliveries ended without an acknowledgement"
    assert dead.headers["trace"] == b"7"
    assert queue.dead.redrive() == 1
    job = taken(queue)
    assert (job.id, job.value, job.deliveries) == (made, {"poison": True}, 1)


def test_a_letter_of_the_broker_has_the_headers_of_its_job(
    cluster: embedlog.Cluster, queue: Queue
) -> None:
    made = queue.put({"to": "x"}, id="mine", key="k", headers={"trace": "7"})
    later = queue.put(b"later")
    with cluster.share_consumer(group_id="jobs", share_acknowledgement_mode="explicit") as consumer:
        consumer.subscribe(["jobs"])
        for record in consumer.poll(10_000):
            consumer.acknowledge(record, AcknowledgeType.REJECT)
        consumer.commit_sync()
    dead, second = queue.dead
    assert (dead.id, dead.value, dead.key, dead.deliveries) == (made, {"to": "x"}, b"k", 1)
    assert (dead.reason, dead.headers["trace"]) == ("Offset rejected by client.", b"7")
    assert (second.id, second.value) == (later, b"later")
    with cluster.admin() as admin:  # the done records are removed
        admin.delete_records({("jobs", 0): 2}).check()
    assert [job.value for job in queue.dead] == [b'{"to":"x"}', b"later"]
    assert queue.dead.redrive([later]) == 1
    assert taken(queue).id == later


def test_headers_stay_as_they_are(cluster: embedlog.Cluster, queue: Queue) -> None:
    given = [("twice", b"1"), ("empty", None), ("twice", b"2")]
    with cluster.producer() as producer:
        producer.append("jobs", b"work", headers=given)
    for settle in (
        lambda job: job.release(error="once more"),
        lambda job: job.release(delay=0.01),
        lambda job: job.reject(),
    ):
        job = taken(queue)
        assert [each for each in job.record.headers if each[0] in ("twice", "empty")] == given
        settle(job)
    assert queue.dead.redrive() == 1
    found = [each for each in taken(queue).record.headers if each[0] in ("twice", "empty")]
    assert found == given


def test_the_end_of_the_program_is_no_failure(queue: Queue) -> None:
    queue.put(b"work")
    with pytest.raises(KeyboardInterrupt), taken(queue):
        raise KeyboardInterrupt
    job = taken(queue)
    assert (job.failures, job.last_error, job.deliveries) == (0, None, 2)


def test_release_keeps_the_place(queue: Queue) -> None:
    queue.put_many([b"first", b"second"])
    taken(queue).release()
    assert taken(queue).value == b"first"


def test_reject_gives_the_job_up_with_its_reason(queue: Queue) -> None:
    queue.put(b"work")
    taken(queue).reject("no such customer")
    (dead,) = queue.dead
    assert (dead.value, dead.reason, dead.last_error) == (b"work", "no such customer", None)


def test_a_job_is_settled_once(queue: Queue) -> None:
    queue.put(b"work")
    job = taken(queue)
    job.ack()
    for settle in (job.ack, job.release, job.reject, job.renew):
        with pytest.raises(IllegalState, match="was settled already"):
            settle()
    with job:  # leaving the block changes nothing
        pass


def test_an_acknowledgement_after_the_lock_is_refused() -> None:
    with Kafka(clock="manual") as kafka, kafka.cluster.queue("jobs") as queue:
        queue.put(b"work")
        job = taken(queue)
        kafka.clock.jump(seconds=20)
        job.renew(wait=True)
        kafka.clock.jump(seconds=20)
        assert is_empty(queue)
        kafka.clock.jump(seconds=20)
        with pytest.raises(InvalidRecordState, match=r"call renew\(\) in time"):
            job.ack()
        again = taken(queue)
        assert (again.id, again.deliveries) == (job.id, 2)


def test_wait_returns_when_the_acknowledgement_is_stored(queue: Queue) -> None:
    queue.put(b"work")
    job = taken(queue)
    job.renew(wait=True)
    job.ack(wait=True)
    assert queue.stats().late == 0
    assert is_empty(queue)


def test_peek_shows_the_next_jobs_and_locks_none(cluster: embedlog.Cluster) -> None:
    with cluster.queue("jobs", priorities=2) as queue:
        assert queue.peek() == []
        made = [queue.put({"number": number}, key="k") for number in range(20)]
        urgent = queue.put(b"urgent", priority=1)
        jobs = queue.peek(3)
        assert [job.id for job in jobs] == [urgent, *made[:2]]
        assert (jobs[1].value, jobs[1].key, jobs[1].failures) == ({"number": 0}, b"k", 0)
        taken(queue).ack(wait=True)
        first, second, third = [taken(queue) for _ in range(3)]
        second.ack(wait=True)  # before the first one is done
        assert [job.id for job in queue.peek()] == [first.id, third.id, *made[3:11]]
        third.ack(wait=True)
        first.ack(wait=True)
        assert [job.id for job in queue.peek(100)] == made[3:]
        with pytest.raises(ValueError, match="count"):
            queue.peek(0)


def test_done_jobs_are_not_the_oldest() -> None:
    with Kafka(clock="manual") as kafka, kafka.cluster.queue("jobs") as queue:
        queue.put(b"early")
        kafka.clock.jump(seconds=3600)
        queue.put(b"late")
        assert 3600 <= (queue.stats().oldest_s or 0) < 3660
        taken(queue).ack(wait=True)
        assert 0 <= (queue.stats().oldest_s or 0) < 60


def test_stats_count_the_jobs(queue: Queue) -> None:
    queue.put_many([b"1", b"2", b"3"])
    jobs = [taken(queue), taken(queue)]
    stats = queue.stats()
    assert stats.ready + stats.locked == 3
    assert stats.locked >= 2
    assert stats.oldest_s is not None
    assert stats.oldest_s < 60
    for job in jobs:
        job.ack()
    taken(queue).ack()
    stats = queue.stats()
    assert (stats.ready, stats.locked, stats.delayed, stats.dead) == (0, 0, 0, 0)
    assert stats.oldest_s is None


def test_higher_priorities_come_first(cluster: embedlog.Cluster) -> None:
    with cluster.queue("jobs", priorities=3) as queue:
        for priority in (0, 1, 2, 0, 1, 2):
            queue.put(priority, priority=priority)
        jobs = [taken(queue) for _ in range(6)]
        assert [job.value for job in jobs] == [2, 2, 1, 1, 0, 0]
        assert [job.priority for job in jobs] == [2, 2, 1, 1, 0, 0]
        with pytest.raises(ConfigError, match="has the priorities 0 to 2"):
            queue.put(b"x", priority=3)


def test_a_queue_that_exists_keeps_its_priorities(cluster: embedlog.Cluster) -> None:
    with cluster.queue("jobs", priorities=3) as queue:
        queue.put(b"urgent", priority=2)
    with cluster.queue("jobs") as queue:
        assert queue.stats().ready == 1
        assert taken(queue).priority == 2
        queue.put(b"middle", priority=1)
    with cluster.queue("jobs", priorities=4) as queue:
        queue.put(b"highest", priority=3)
        assert taken(queue).value == b"highest"
    with cluster.queue("jobs.p4") as queue:
        queue.put(b"of another queue")
    with cluster.queue("jobs") as queue, pytest.raises(ConfigError, match="priorities 0 to 3"):
        queue.put(b"x", priority=4)


def test_a_queue_that_exists_keeps_its_order(cluster: embedlog.Cluster) -> None:
    with cluster.queue("jobs", ordered=True) as queue:
        queue.put_many([b"1", b"2"], key="k")
    with cluster.queue("jobs") as queue:
        with pytest.raises(ValueError, match="first"), taken(queue):
            raise ValueError("first")
        with pytest.raises(IllegalState, match="keeps the order of keys"):
            taken(queue).release(delay=1)
        job = queue.get(timeout=0)
        assert job is None, "the first job of the key is locked"


@pytest.mark.parametrize("lock", [0.1, 14, 61])
def test_brokers_limit_the_lock(cluster: embedlog.Cluster, lock: float) -> None:
    with pytest.raises(ConfigError, match=rf"^queue\('jobs', lock={lock:g}\): .*(1000|15000)"):
        cluster.queue("jobs", lock=lock)
    assert cluster.topics == []


@pytest.mark.parametrize(
    "name", ["", "a b", "__jobs", "dlq.jobs", "jobs.delayed", "x" * 245, 7, None]
)
def test_a_queue_is_named_as_a_topic(cluster: embedlog.Cluster, name: object) -> None:
    with pytest.raises(ConfigError, match="queue"):
        cluster.queue(name)  # type: ignore[arg-type]
    assert cluster.topics == []


def test_a_queue_that_could_not_be_made_is_made_the_next_time() -> None:
    with Kafka() as kafka:
        with (
            kafka.fault("IncrementalAlterConfigs", error="INVALID_REQUEST"),
            pytest.raises(InvalidRequest),
        ):
            kafka.cluster.queue("jobs")
        with kafka.cluster.queue("jobs") as queue:
            queue.put(b"before the first worker")
            assert taken(queue).value == b"before the first worker"


def test_a_job_that_is_too_large_is_refused(queue: Queue) -> None:
    with pytest.raises(MessageTooLarge):
        queue.put(b"x" * 2_000_000)
    assert is_empty(queue)


@pytest.mark.parametrize(
    "options",
    [
        {"key": 7},
        {"delay": -1},
        {"delay": "soon"},
        {"at": "tomorrow"},
        {"delay": 1, "cron": "* * * * *"},
        {"headers": {"job.id": "x"}},
        {"headers": {"a": 1}},
        {"priority": 0.5},
        {"dedupe": 7},
        {"unknown": 1},
    ],
)
def test_wrong_options_are_refused(queue: Queue, options: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        queue.put(b"work", **options)
    assert is_empty(queue)


def test_an_unknown_option_is_named(queue: Queue) -> None:
    with pytest.raises(TypeError, match="^put has no option 'dely'; its options: key, priority"):
        queue.put(b"work", dely=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="^put_many has no option 'delay'; its options: key, p"):
        queue.put_many([b"work"], delay=1)  # type: ignore[call-arg]
    assert is_empty(queue)


def test_cron_names_the_package_that_it_needs(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="cron='often'"):
        queue.put(b"work", cron="often")
    monkeypatch.setitem(sys.modules, "cronsim", None)
    with pytest.raises(ConfigError, match=r"cronsim is missing: pip install 'embedlog\[cron\]'"):
        queue.put(b"work", cron="0 3 * * *")
    assert queue.stats().delayed == 0


def test_a_closed_queue_refuses_calls(cluster: embedlog.Cluster) -> None:
    queue = cluster.queue("jobs")
    queue.close()
    queue.close()
    for call in (lambda: queue.put(b"x"), queue.get, queue.stats, lambda: queue.dead):
        with pytest.raises(ClosedError, match="the queue 'jobs' was closed"):
            call()


def test_close_gives_the_jobs_back(cluster: embedlog.Cluster) -> None:
    with cluster.queue("jobs") as queue:
        queue.put_many([b"1", b"2"])
        taken(queue)
    with cluster.queue("jobs") as queue:
        assert [taken(queue).value, taken(queue).value] == [b"1", b"2"]


def test_jobs_survive_a_restart(tmp_path: Path) -> None:
    with embedlog.open(tmp_path) as cluster, cluster.queue("jobs") as queue:
        queue.put(b"1")
        queue.put(b"2")
        taken(queue).ack()
    with embedlog.open(tmp_path) as cluster, cluster.queue("jobs") as queue:
        assert taken(queue).value == b"2"
        assert is_empty(queue)


def test_a_job_exists_once_its_transaction_is_committed(
    cluster: embedlog.Cluster, queue: Queue
) -> None:
    cluster.create_topic("orders", 1)
    with cluster.producer(transactional_id="shop") as producer:
        producer.init_transactions()
        with pytest.raises(ZeroDivisionError), producer.transaction() as transaction:
            transaction.send("orders", b"lost")
            queue.put(b"lost", transaction=transaction)
            _ = 1 / 0
        with producer.transaction() as transaction:
            transaction.send("orders", b"order")
            made = queue.put(b"mail", transaction=transaction)
            assert is_empty(queue)
    job = taken(queue)
    assert (job.value, job.id) == (b"mail", made)


def test_any_share_consumer_of_the_group_may_work(cluster: embedlog.Cluster, queue: Queue) -> None:
    queue.put(b"work")
    with cluster.share_consumer(group_id="jobs") as consumer:
        consumer.subscribe(["jobs"])
        (record,) = consumer.poll(10_000)
        assert record.value == b"work"
    with cluster.producer() as producer:
        producer.append("jobs", b"of another program", key=b"k")
    values = {taken(queue).value, taken(queue).value}  # the consumer's close released its record
    assert values == {b"work", b"of another program"}


def test_a_taken_job_needs_one_fetch() -> None:
    """A second fetch would lock a job for nobody, and the acknowledgement would wait for it."""
    with Kafka() as kafka, Queue(kafka.cluster.listen("127.0.0.1", 0).address, "jobs") as queue:
        queue.put(b"1")
        taken(queue).ack(wait=True)
        queue.put(b"2")
        with kafka.record() as seen:
            job = taken(queue)
            job.ack(wait=True)
        assert len(seen.requests("ShareFetch")) == 1
        assert len(seen.requests("ShareAcknowledge")) == 1


def test_results_come_back(queue: Queue) -> None:
    first, second = queue.put(b"1", reply=True), queue.put(b"2", reply=True)
    with taken(queue) as job:
        job.ack(result={"sum": 3})
    taken(queue).reject("no")
    assert queue.result(first, timeout=10) == {"sum": 3}
    with pytest.raises(embedlog.JobFailed, match="^no$"):
        queue.result(second, timeout=10)
    with pytest.raises(embedlog.TimedOut, match="has no result"):
        queue.result("unknown", timeout=0)


def test_a_queue_keeps_the_order_that_another_process_asked_for(cluster: embedlog.Cluster) -> None:
    cluster.queue("jobs", ordered=True).close()
    with cluster.queue("jobs") as queue:
        queue.put_many([b"1", b"2"], key="k")
        queue.put(b"other", key="other")
        first = taken(queue)
        with taken(queue) as other:
            assert other.value == b"other"
        assert is_empty(queue)
        with pytest.raises(IllegalState, match="would overtake this one"):
            first.release(delay=1)
        first.fail("again")
        again = taken(queue)
        assert (again.value, again.deliveries) == (b"1", 2)
        again.ack()
        assert taken(queue).value == b"2"


def test_an_ordered_queue_fetches_no_job_ahead(cluster: embedlog.Cluster) -> None:
    """A fetched job that goes back counts as a delivery, and here deliveries are failures."""
    with cluster.queue("jobs", ordered=True) as queue:
        queue.put_many(list(range(20)), key="k")
        queue.put_many(list(range(20)))
        for _ in range(10):
            with taken(queue):
                pass
        assert queue.stats().locked == 0
