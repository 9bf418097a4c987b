"""Requests that the test holds, and clients whose requests vanish."""

from __future__ import annotations

import re

import pytest

import embedlog
from embedlog import errors
from embedlog.runtime.pending import Pending
from embedlog.testing import Kafka
from tests.testing.faults.conftest import Values


def producers(kafka: Kafka, count: int) -> list[embedlog.Producer]:
    return [
        embedlog.Producer(kafka.bootstrap_servers, client_id=f"p-{number}", retry_backoff_ms=1)
        for number in range(count)
    ]


def test_held_requests_go_on_in_any_order(kafka: Kafka, values: Values) -> None:
    clients = producers(kafka, 3)
    with kafka.hold("Produce", topic="t") as hold:
        futures = []
        for number, client in enumerate(clients):
            futures.append(client.send("t", b"%d" % number))
            hold.wait(number + 1)
        first, second, third = hold.held
        assert [each.client_id for each in hold.held] == ["p-0", "p-1", "p-2"]
        assert (first.api, first.node_id, first.is_held) == ("Produce", 1, True)
        assert first.request.topic_data
        assert not values()
        third.release()
        futures[2].result()
        first.release()
        futures[0].result()
        first.release()
        assert hold.held == [second]
        assert not futures[1].done()
        hold.release()
        futures[1].result()
        assert not hold.held
    for client in clients:
        client.close()
    assert values() == [b"2", b"0", b"1"]


def test_a_held_answer_belongs_to_done_work(kafka: Kafka, values: Values) -> None:
    [client] = producers(kafka, 1)
    with kafka.hold("Produce", after_apply=True) as hold:
        future = client.send("t", b"x")
        hold.wait()
        assert values() == [b"x"]
        assert not future.done()
    future.result()
    client.close()


def test_a_held_request_can_be_cut(kafka: Kafka, values: Values) -> None:
    client = embedlog.Producer(kafka.bootstrap_servers, retries=0, enable_idempotence=False)
    with kafka.hold("Produce", times=1) as hold:
        future = client.send("t", b"x")
        hold.wait()
        hold.held[0].cut()
        with pytest.raises(errors.Network):
            future.result()
    client.close()
    assert not values()


def test_the_end_of_the_cluster_breaks_what_is_held(kafka: Kafka) -> None:
    [client] = producers(kafka, 1)
    hold = kafka.hold("Produce")
    hang = kafka.fault("Metadata", topic="nowhere", action="hang", may_miss=True)
    client.send("t", b"x")
    hold.wait()
    kafka.close()
    assert not hold.held
    assert hang.hits == 0
    with pytest.warns(RuntimeWarning, match="were not delivered"):
        client.close(0)


def test_a_client_of_this_process_is_held_too(kafka: Kafka, values: Values) -> None:
    producer = kafka.producer()
    with kafka.hold("Produce") as hold:
        future = producer.send("t", b"x")
        hold.wait()
        assert not future.done()
    future.result()
    assert values() == [b"x"]


def test_requests_of_a_black_hole_arrive_when_it_ends(kafka: Kafka, values: Values) -> None:
    lost, other = producers(kafka, 2)
    lost.send("t", b"before").result()
    with kafka.blackhole(client_id="p-0") as hole:
        future = lost.send("t", b"late")
        hole.wait()
        other.send("t", b"meanwhile").result()
        assert values() == [b"before", b"meanwhile"]
    future.result()
    assert values() == [b"before", b"meanwhile", b"late"]
    lost.close()
    other.close()


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_expels_a_member_whose_requests_vanish(protocol: str) -> None:
    config = {
        "group.min.session.timeout.ms": 100,
        "group.consumer.min.session.timeout.ms": 100,
        "group.consumer.session.timeout.ms": 300,
        "group.consumer.min.heartbeat.interval.ms": 20,
        "group.consumer.heartbeat.interval.ms": 50,
    }
    with Kafka(topics={"t": 2}, config=config) as kafka:
        settings: dict[str, object] = {"group_id": "g", "group_protocol": protocol}
        if protocol == "classic":
            settings |= {"session_timeout_ms": 300, "heartbeat_interval_ms": 50}
        address = kafka.bootstrap_servers
        consumers = [
            embedlog.Consumer(address, client_id=f"w-{number}", **settings) for number in (1, 2)
        ]
        for each in consumers:
            each.subscribe(["t"])
        first, second = consumers
        while not len(first.assignment()) == len(second.assignment()) == 1:
            for each in consumers:
                each.poll(20)
        with kafka.blackhole(client_id=re.compile("w-2")) as hole:
            hole.wait()
            while len(first.assignment()) < 2:
                first.poll(20)
        # Alive again, the expelled member joins anew.
        while not len(first.assignment()) == len(second.assignment()) == 1:
            for each in consumers:
                each.poll(20)
        for each in consumers:
            each.close()


@pytest.mark.slow
def test_a_request_for_a_broker_that_is_gone_breaks() -> None:
    topics = {"t": {"partitions": 1, "replication_factor": 2}}
    with Kafka(brokers=2, topics=topics) as kafka:
        producer = kafka.producer(retry_backoff_ms=1)
        with kafka.hold("Produce", times=1) as hold:
            future = producer.send("t", b"x")
            hold.wait()
            leader = kafka.partition("t", 0).leader
            kafka.broker(leader).stop()
            kafka.broker(leader).start()
            hold.release()
            future.result()


def test_the_pending_of_a_held_request_is_not_completed_twice(kafka: Kafka) -> None:
    [client] = producers(kafka, 1)
    with kafka.hold("Produce") as hold:
        future = client.send("t", b"x")
        hold.wait()
        [held] = hold.held
        held.release()
        held.cut()
        assert isinstance(held.answer, Pending)
        assert held.answer.error() is None
        future.result()
    client.close()


def test_a_rule_that_is_removed_during_the_work_keeps_no_answer(
    kafka: Kafka, values: Values
) -> None:
    [client] = producers(kafka, 1)
    hang = kafka.fault("Produce", action="hang", after_apply=True, may_miss=True)
    delay = kafka.fault("Produce", action="delay", seconds=0.1)
    future = client.send("t", b"x")
    delay.wait()
    hang.remove()
    future.result()
    assert (hang.hits, hang.seen) == (0, 1)
    assert values() == [b"x"]
    client.close()
