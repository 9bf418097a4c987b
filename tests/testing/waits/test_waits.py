"""Waits for records, leaders, in-sync replicas, requests, transactions and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from embedlog.errors import ConfigError, UnknownTopicOrPartition
from embedlog.testing import Kafka, SimClock, WaitTimedOut
from tests.testing.members import FAST

TOPICS = {"orders": {"partitions": 2, "replication_factor": 3}}


@pytest.fixture
def alone() -> Iterator[Kafka]:
    with Kafka(topics={"orders": 2}, config=FAST) as made:
        yield made


@pytest.fixture
def three() -> Iterator[Kafka]:
    with Kafka(brokers=3, topics=TOPICS, config=FAST) as made:
        yield made


def _started(target: Callable[[], object]) -> Thread:
    thread = Thread(target=target, daemon=True)
    thread.start()
    return thread


@contextmanager
def _repeated(step: Callable[[], object]) -> Iterator[None]:
    """Repeat a step in another thread: a wait counts only the requests after its beginning."""
    is_over = Event()

    def run() -> None:
        while not is_over.is_set():
            step()

    thread = _started(run)
    try:
        yield
    finally:
        is_over.set()
        thread.join(10)


def test_records_of_another_thread_end_a_wait(alone: Kafka) -> None:
    def produce() -> None:
        for _ in range(5):
            alone.producer().send("orders", b"x", partition=0).result()

    thread = _started(produce)
    assert alone.wait.records("orders", 5, partition=0) == 5
    thread.join(5)
    with pytest.raises(WaitTimedOut, match=r"seen last: 5 records \(orders-0: 5, orders-1: 0\)"):
        alone.wait.records("orders", 6, timeout=0.02)


def test_replicated_records_are_awaited(three: Kafka) -> None:
    for _ in range(3):
        three.producer(acks=1).send("orders", b"x", partition=1)
    assert three.wait.records("orders", 3) == 3


def test_aborted_and_open_records_do_not_count_at_read_committed(alone: Kafka) -> None:
    producer = alone.producer(transactional_id="tx")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"aborted", partition=0).result()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send("orders", b"x", partition=0).result()
    assert alone.wait.records("orders", 2) == 2
    with pytest.raises(WaitTimedOut, match="a transaction is open from offset 2 on"):
        alone.wait.records("orders", 1, isolation="read_committed", timeout=0.02)
    producer.commit_transaction()
    assert alone.wait.records("orders", 1, isolation="read_committed") == 1


def test_markers_and_aborted_records_are_no_lag_of_readers_at_read_committed(alone: Kafka) -> None:
    producer = alone.producer(transactional_id="tx")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"committed", partition=0).result()
    producer.commit_transaction()
    alone.group("g").commit({("orders", 0): 1})
    assert alone.wait.lag("g") == {("orders", 0): 0}
    producer.begin_transaction()
    producer.send("orders", b"aborted", partition=0).result()
    assert alone.wait.lag("g", isolation="read_committed") == {("orders", 0): 0}
    producer.abort_transaction()
    assert alone.wait.lag("g", isolation="read_committed") == {("orders", 0): 0}
    with pytest.raises(WaitTimedOut, match="orders-0 lags 3"):
        alone.wait.lag("g", timeout=0.02)


def test_leaders_and_replicas_are_awaited(three: Kafka) -> None:
    partition = three.partition("orders", 0)
    assert three.wait.isr("orders", 0, {1, 2, 3}) == {1, 2, 3}
    leader = partition.leader
    others = {1, 2, 3} - {leader}
    three.broker(leader).kill()
    assert three.wait.leader("orders", 0) in others
    assert three.wait.isr("orders", 0, others) == others
    with pytest.raises(
        WaitTimedOut, match=r"seen last: leader \d\n  near it: replicas \[1, 2, 3\]"
    ):
        three.wait.leader("orders", 0, leader, timeout=0.02)
    three.broker(leader).start()
    assert three.wait.isr("orders", 0, {1, 2, 3}) == {1, 2, 3}


def test_a_wait_outlives_the_time_in_which_no_broker_runs(three: Kafka) -> None:
    for node in three.brokers:
        node.kill()
    with pytest.raises(WaitTimedOut, match="near it: no broker runs"):
        three.wait.until(lambda: three.partition("orders", 0).leader, timeout=0.02)
    thread = _started(lambda: [node.start() for node in three.brokers])
    assert three.wait.until(lambda: three.partition("orders", 0).leader > 0) is True
    thread.join(10)


def test_requests_are_counted_from_the_call_on(alone: Kafka) -> None:
    producer = alone.producer(client_id="p", enable_idempotence=False)
    with _repeated(lambda: producer.send("orders", b"x").result()):
        seen = alone.wait.request(
            "produce", client_id="p", times=2, where=lambda each: each.topic_data
        )
    found = [(each.api, each.client_id, each.node_id) for each in seen]
    assert found == [("Produce", "p", 1)] * 2
    with pytest.raises(WaitTimedOut, match="no other request came"):
        alone.wait.request("Produce", client_id="q", timeout=0.02)


def test_fetches_of_followers_are_no_requests_of_clients(three: Kafka) -> None:
    three.producer().send("orders", b"x").result()
    with pytest.raises(WaitTimedOut):
        three.wait.request("Fetch", timeout=0.05)


def test_an_error_of_the_predicate_reaches_the_test(alone: Kafka) -> None:
    admin = alone.admin()
    with _repeated(admin.list_topics), pytest.raises(ZeroDivisionError):
        alone.wait.request("Metadata", where=lambda _: 1 / 0)


def test_no_stage_and_no_watcher_is_left(alone: Kafka) -> None:
    core = alone.broker().core
    alone.producer().send("orders", b"x", partition=0).result()
    with pytest.raises(WaitTimedOut):
        alone.wait.request("Fetch", timeout=0.01)
    with pytest.raises(WaitTimedOut):
        alone.wait.records("orders", 2, timeout=0.01)
    with pytest.raises(WaitTimedOut):
        alone.wait.until(lambda: False, timeout=0.01)
    assert core.interceptor is None
    assert core.runtime.watchers == []
    assert not core.replica_manager.partition("orders", 0).watchers


def test_transactions_are_awaited(alone: Kafka) -> None:
    with pytest.raises(WaitTimedOut, match="no transactional ids at all"):
        alone.wait.transaction("payments", "Ongoing", timeout=0.01)
    producer = alone.producer(transactional_id="payments")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"x").result()
    assert alone.wait.transaction("payments", "Ongoing").partitions
    producer.commit_transaction()
    assert alone.wait.transaction("payments", "CompleteCommit").partitions == ()
    with pytest.raises(WaitTimedOut, match="there is a transactional id 'payments' in state"):
        alone.wait.transaction("payment", "Empty", timeout=0.01)


def test_a_function_is_called_again_after_changes(alone: Kafka) -> None:
    thread = _started(lambda: alone.create_topic("late", 1))
    assert alone.wait.until(lambda: "late" in alone.cluster.topics) is True
    thread.join(5)
    with pytest.raises(WaitTimedOut, match=r"for the moon\n  seen last: 0"):
        alone.wait.until(lambda: 0, describe="the moon", timeout=0.01)


def test_names_are_refused_at_once(alone: Kafka) -> None:
    with pytest.raises(ConfigError, match="did you mean 'Fetch'"):
        alone.wait.request("Fitch")
    with pytest.raises(ConfigError, match="did you mean 'CompleteCommit'"):
        alone.wait.transaction("tx", "CompletCommit")
    with pytest.raises(ConfigError, match="did you mean 'read_committed'"):
        alone.wait.records("orders", 1, isolation="read_comitted")
    with pytest.raises(UnknownTopicOrPartition, match="did you mean 'orders'"):
        alone.wait.records("oders", 1)
    with pytest.raises(ConfigError, match="there is no broker 9"):
        alone.wait.leader("orders", 0, 9)


def test_the_limit_is_real_time_also_on_a_clock_that_stands_still() -> None:
    from embedlog.cluster.cluster import Cluster
    from embedlog.runtime import Runtime, Scheduler
    from embedlog.runtime.memory_files import MemoryFiles
    from embedlog.runtime.randomness import Random
    from embedlog.testing.interception import Stages
    from embedlog.testing.on_demand.desk import Desk
    from embedlog.testing.waits.waits import Waits

    clock = SimClock()
    runtime = Runtime(
        clock=clock, files=MemoryFiles(clock), scheduler=Scheduler(clock), random=Random()
    )
    with Cluster(runtime=runtime) as cluster:
        cluster.create_topic("orders", 1)
        stages = Stages(cluster)
        waits = Waits(Desk(cluster, stages).brokers, stages)
        with pytest.raises(WaitTimedOut):
            waits.records("orders", 1, timeout=0.05)
