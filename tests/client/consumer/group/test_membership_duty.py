"""Between the user's calls the scheduler, or over TCP a thread, keeps a member alive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from embedlog import Cluster, Consumer
from embedlog.client.consumer.group.membership_duty import MembershipDuty
from embedlog.runtime.pending import Pending
from tests.client.consumer.group.test_groups import fill, member
from tests.client.faulty_cluster import faulty_cluster, poll_until
from tests.support import left_over

NAME = "embedlog-heartbeat"


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == NAME]


def eventually(condition: Callable[[], bool], cluster: Cluster) -> None:
    """Wait in real time, at most ten seconds, without using the consumer."""
    for _ in range(500):
        if condition():
            return
        cluster.runtime.scheduler.wait(Pending(), 20)
    assert condition()


def idle_member(connect: Callable[[], Any], **settings: Any) -> Consumer:
    consumer = member(connect, heartbeat_interval_ms=50, **settings)
    consumer.subscribe(["kept"])
    poll_until(lambda: bool(consumer.assignment()), consumer)
    return consumer


def test_over_tcp_one_thread_watches_while_there_is_a_membership(cluster: Cluster) -> None:
    address = cluster.listen("127.0.0.1", 0).address
    fill(lambda: address, "kept", 1, 1)
    assert not watchers()
    consumer = idle_member(lambda: address)
    assert len(watchers()) == 1
    sent = consumer.metrics()["heartbeat-total"]
    eventually(lambda: consumer.metrics()["heartbeat-total"] > sent + 3, cluster)
    consumer.unsubscribe()
    eventually(lambda: not watchers(), cluster)
    consumer.subscribe(["kept"])
    poll_until(lambda: bool(consumer.assignment()), consumer)
    assert len(watchers()) == 1
    consumer.close()
    assert not watchers()


def test_assigned_partitions_need_no_thread(cluster: Cluster) -> None:
    address = cluster.listen("127.0.0.1", 0).address
    fill(lambda: address, "kept", 1, 1)
    with member(lambda: address) as consumer:
        consumer.assign([("kept", 0)])
        assert len(consumer.poll(10_000)) == 1
        consumer.commit()
        assert not watchers()


def test_in_process_nobody_starts_a_thread(cluster: Cluster) -> None:
    fill(lambda: cluster, "kept", 1, 1)
    before = left_over.threads()
    with idle_member(lambda: cluster) as consumer:
        assert left_over.threads() <= before
        sent = consumer.metrics()["heartbeat-total"]
        eventually(lambda: consumer.metrics()["heartbeat-total"] > sent + 3, cluster)


@pytest.mark.slow
def test_over_tcp_a_member_leaves_when_its_user_stops_polling(cluster: Cluster) -> None:
    address = cluster.listen("127.0.0.1", 0).address
    fill(lambda: address, "kept", 1, 1)
    consumer = idle_member(lambda: address, max_poll_interval_ms=300)
    eventually(lambda: not watchers(), cluster)
    with member(lambda: address) as other:
        other.subscribe(["kept"])
        poll_until(lambda: bool(other.assignment()), other)
    consumer.close()


def test_the_user_and_the_watcher_take_turns(cluster: Cluster) -> None:
    """Heartbeats every millisecond, while the user calls all the time."""
    address = cluster.listen("127.0.0.1", 0).address
    fill(lambda: address, "kept", 2, 100)
    with member(lambda: address, heartbeat_interval_ms=1, max_poll_records=1) as consumer:
        consumer.subscribe(["kept"])
        seen = 0
        while seen < 200:
            seen += len(consumer.poll(100))
            consumer.commit_async()
            assert len(consumer.assignment()) in {0, 2}
        consumer.commit()
        assert {each.offset for each in consumer.committed(consumer.assignment()).values() if each}
        assert consumer.metrics()["failed-rebalance-total"] == 0


def test_the_duty_stands_back_and_ends() -> None:
    with faulty_cluster(t=1) as made:
        transport = made.connect()
    calls: list[int] = []
    answers: list[int | None] = [300, 5_000, None]

    def keep_alive(now_ms: int) -> int | None:
        calls.append(now_ms)
        return answers.pop(0)

    duty = MembershipDuty(transport, keep_alive, 1_000, leave=lambda _reason: None)
    assert duty.run_once(0) is None, "not started"
    with duty.turn:
        duty.start()
        assert duty.run_once(1) == 1_000, "the user is inside"
    assert duty.run_once(2) == 300
    assert duty.run_once(3) == 1_000, "no later than that: the user may change the consumer"
    assert duty.run_once(4) is None
    assert not duty.is_running
    assert calls == [2, 3, 4]


def test_a_duty_that_stood_back_does_so_for_no_longer_than_the_coordinator_allows() -> None:
    with faulty_cluster(t=1) as made:
        transport = made.connect()
    scheduler = transport.runtime.scheduler
    calls: list[int] = []

    def keep_alive(now_ms: int) -> int | None:
        calls.append(now_ms)
        return 5_000

    duty = MembershipDuty(transport, keep_alive, 3_000, leave=lambda _reason: None)
    began_ms = transport.runtime.clock.monotonic_ms()
    with duty.turn:
        duty.start()
        scheduler.wait(Pending(), 10)
        duty.beat_every(200)
        scheduler.wait(Pending(), 10)
    scheduler.wait(Pending(), 1_000)
    assert [each - began_ms for each in calls] == [210, 410, 610, 810, 1_010]


def test_a_dropped_member_does_not_wait_for_a_silent_coordinator_for_ever() -> None:
    with faulty_cluster() as cluster:
        transport = cluster.connect()
        told: list[str] = []

        def leave(reason: str) -> Pending[Any]:
            told.append(reason)
            return Pending()

        duty = MembershipDuty(transport, lambda _now_ms: 100, 100, leave=leave)
        with duty.turn:
            duty.start()
        assert duty.abandon()
        cluster.pass_time(4_000)
        assert not transport.is_closed
        cluster.pass_time(2_000)
        assert transport.is_closed
        assert told == ["the consumer was dropped without close"]
