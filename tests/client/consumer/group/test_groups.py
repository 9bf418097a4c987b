"""Consumers in groups over every transport: joining, sharing, committing, leaving."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import embedlog
from embedlog import Admin, Consumer, Producer, TopicPartition, errors
from embedlog.client.consumer.group.group_offsets import CloseOptions, OffsetAndMetadata
from embedlog.client.consumer.rebalance_listener import ConsumerRebalanceListener
from embedlog.client.errors import IllegalState, NoOffsetForPartition
from embedlog.testing import sim_runtime

Connect = Callable[[], Any]
ROUNDS_MAX = 1_500
QUICK = {"heartbeat_interval_ms": 100}
PROTOCOLS: list[dict[str, Any]] = [
    {"partition_assignment_strategy": "range", **QUICK},
    {"partition_assignment_strategy": "cooperative-sticky", **QUICK},
    {"group_protocol": "consumer"},
]
protocols = pytest.mark.parametrize("protocol", PROTOCOLS, ids=["eager", "cooperative", "kip-848"])


in_process_at_once = pytest.mark.parametrize(
    "connect",
    [
        "in process",
        pytest.param("loopback", marks=pytest.mark.slow),
        pytest.param("tcp", marks=pytest.mark.slow),
    ],
    indirect=True,
)
"""Tests that wait for heartbeats: seconds over bytes, none in simulated time."""


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[embedlog.Cluster]:
    """A cluster whose consumer-protocol groups have the heartbeat interval of the classic groups.

    In process the time is simulated.
    """
    quick = {
        "group.consumer.min.heartbeat.interval.ms": 100,
        "group.consumer.heartbeat.interval.ms": 100,
    }
    is_simulated = request.node.callspec.params.get("connect") == "in process"
    runtime = sim_runtime(seed=7) if is_simulated else None
    with embedlog.Cluster(config=quick, runtime=runtime) as opened:
        yield opened


class Report(ConsumerRebalanceListener):
    """The calls of a listener, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[TopicPartition]]] = []

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("revoked", partitions))

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("assigned", partitions))

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("lost", partitions))

    def held(self) -> set[TopicPartition]:
        """The owned partitions according to the calls."""
        mine: set[TopicPartition] = set()
        for kind, partitions in self.calls:
            mine = mine | set(partitions) if kind == "assigned" else mine - set(partitions)
        return mine


def member(connect: Connect, group: str = "readers", **settings: Any) -> Consumer:
    return Consumer(connect(), group_id=group, auto_offset_reset="earliest", **settings)


def fill(connect: Connect, topic: str, partitions: int, count: int) -> None:
    """Write `count` records "p-n" to each partition."""
    with Admin(connect()) as admin:
        admin.create_topics({topic: partitions}).check()
    with Producer(connect()) as producer:
        for partition in range(partitions):
            values = [b"%d-%d" % (partition, number) for number in range(count)]
            producer.send_batch(topic, values, partition=partition).result(10)


def poll_until(condition: Callable[[], bool], *consumers: Consumer) -> list[Any]:
    """Poll all consumers in turn until the condition holds; return the records."""
    found: list[Any] = []
    for _ in range(ROUNDS_MAX):
        for consumer in consumers:
            found += consumer.poll(20)
        if condition():
            return found
    raise AssertionError([consumer.assignment() for consumer in consumers])


def read(consumer: Consumer, count: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(ROUNDS_MAX):
        found += consumer.poll(20)
        if len(found) >= count:
            return found
    raise AssertionError(f"{len(found)} of {count} records")


def parts(topic: str, *numbers: int) -> set[TopicPartition]:
    return {TopicPartition(topic, number) for number in numbers}


@protocols
def test_one_member_reads_everything_and_goes_on_where_it_stopped(
    connect: Connect, protocol: dict[str, Any]
) -> None:
    fill(connect, "alone", 3, 10)
    report = Report()
    with member(connect, max_poll_records=7, **protocol) as consumer:
        consumer.subscribe(["alone"], listener=report)
        assert consumer.subscription() == {"alone"}
        assert len(read(consumer, 30)) == 30
        assert report.calls == [("assigned", sorted(parts("alone", 0, 1, 2)))]
        assert consumer.assignment() == report.held()
        named = consumer.group_metadata()
        assert (named.group_id, named.group_instance_id) == ("readers", None)
        assert named.member_id
        assert named.generation_id > 0
    assert report.calls[1:] == [("revoked", sorted(parts("alone", 0, 1, 2)))]
    with Producer(connect()) as producer:
        producer.send("alone", b"more", partition=1).result(10)
    with member(connect, **protocol) as consumer:
        consumer.subscribe(["alone"])
        assert [record.value for record in read(consumer, 1)] == [b"more"]
        committed = consumer.committed(consumer.assignment())
        assert {each.offset for each in committed.values() if each} == {10}


@in_process_at_once
@protocols
def test_members_share_and_hand_over(connect: Connect, protocol: dict[str, Any]) -> None:
    fill(connect, "shared", 4, 5)
    reports = Report(), Report()
    first, second = member(connect, **protocol), member(connect, **protocol)
    first.subscribe(["shared"], listener=reports[0])
    read(first, 20)
    second.subscribe(["shared"], listener=reports[1])
    both = parts("shared", 0, 1, 2, 3)

    def is_shared() -> bool:
        mine, yours = first.assignment(), second.assignment()
        return len(mine) == len(yours) == 2 and mine | yours == both

    again = poll_until(is_shared, first, second)
    assert again == [], "the first member committed its positions before it gave the partition up"
    assert [report.held() for report in reports] == [first.assignment(), second.assignment()]
    kept = first.assignment() & set(reports[0].calls[0][1])
    given_up = [partitions for kind, partitions in reports[0].calls if kind == "revoked"]
    if protocol.get("partition_assignment_strategy") == "range":
        assert given_up == [sorted(both)]
    else:
        assert given_up == [sorted(both - kept)], "only the partition that moves is revoked"
    with Producer(connect()) as producer:
        for partition in range(4):
            producer.send("shared", b"new", partition=partition).result(10)
    seen: list[Any] = []
    for _ in range(ROUNDS_MAX):
        seen += [*first.poll(20), *second.poll(20)]
        if len(seen) == 4:
            break
    assert {(record.partition, record.value) for record in seen} == {
        (partition, b"new") for partition in range(4)
    }
    first.close()
    assert poll_until(lambda: second.assignment() == both, second) == []
    second.close()
    assert [report.held() for report in reports] == [set(), set()]


@in_process_at_once
@protocols
def test_a_pattern_finds_topics_that_come_later(connect: Connect, protocol: dict[str, Any]) -> None:
    fill(connect, "logs-a", 1, 1)
    fill(connect, "other", 1, 1)
    with member(connect, metadata_max_age_ms=200, **protocol) as consumer:
        consumer.subscribe(pattern="logs-.*")
        assert [record.topic for record in read(consumer, 1)] == ["logs-a"]
        assert consumer.subscription() == {"logs-a"}
        fill(connect, "logs-b", 2, 1)
        assert {record.topic for record in read(consumer, 2)} == {"logs-b"}
        assert consumer.assignment() == parts("logs-a", 0) | parts("logs-b", 0, 1)
        with pytest.raises(IllegalState, match="exclude each other"):
            consumer.subscribe(["other"])
        consumer.unsubscribe()
        assert consumer.subscription() == set()
        consumer.subscribe(["other"])
        assert [record.topic for record in read(consumer, 1)] == ["other"]


@in_process_at_once
@protocols
def test_another_subscription_replaces_the_first(
    connect: Connect, protocol: dict[str, Any]
) -> None:
    fill(connect, "before", 1, 3)
    fill(connect, "after", 2, 3)
    with member(connect, **protocol) as consumer:
        consumer.subscribe(["before"])
        read(consumer, 3)
        consumer.subscribe(["after"])
        assert {record.topic for record in read(consumer, 6)} == {"after"}
        assert consumer.assignment() == parts("after", 0, 1)


@in_process_at_once
@protocols
def test_partitions_that_are_added_are_assigned(connect: Connect, protocol: dict[str, Any]) -> None:
    fill(connect, "grows", 1, 1)
    with member(connect, metadata_max_age_ms=200, **protocol) as consumer:
        consumer.subscribe(["grows"])
        read(consumer, 1)
        with Admin(connect()) as admin:
            admin.create_partitions({"grows": 3}).check()
        poll_until(lambda: consumer.assignment() == parts("grows", 0, 1, 2), consumer)


@in_process_at_once
@protocols
def test_commits_by_hand(connect: Connect, protocol: dict[str, Any]) -> None:
    fill(connect, "hand", 2, 10)
    here, there = TopicPartition("hand", 0), TopicPartition("hand", 1)
    with member(connect, enable_auto_commit=False, **protocol) as consumer:
        consumer.subscribe(["hand"])
        read(consumer, 20)
        assert consumer.committed([here, there]) == {here: None, there: None}
        consumer.commit({here: 4, there: OffsetAndMetadata(6, "text", 0)})
        assert consumer.committed([here, there]) == {
            here: OffsetAndMetadata(4),
            there: OffsetAndMetadata(6, "text", 0),
        }
        told: list[Any] = []
        consumer.commit_async({here: 5}, lambda *news: told.append(news))
        consumer.commit_async(callback=lambda *news: told.append(news))
        consumer.commit({})
        assert [(offsets[here].offset, error) for offsets, error in told] == [(5, None), (10, None)]
        assert consumer.committed([there])[there] == OffsetAndMetadata(10, "", 0)
        with pytest.raises(errors.OffsetMetadataTooLarge):
            consumer.commit({here: OffsetAndMetadata(5, "x" * 5000)})
        consumer.seek(here, 3)
        assert consumer.position(here) == 3
    with member(connect, **protocol) as consumer:
        consumer.subscribe(["hand"])
        poll_until(lambda: len(consumer.assignment()) == 2, consumer)
        assert consumer.position(here) == 10, "without auto commit the seek was not stored"


@in_process_at_once
def test_assigned_partitions_use_the_groups_offsets_too(connect: Connect) -> None:
    fill(connect, "plain", 2, 10)
    here = TopicPartition("plain", 0)
    with member(connect) as consumer:
        consumer.assign([here])
        assert len(read(consumer, 10)) == 10
        with pytest.raises(IllegalState, match="exclude each other"):
            consumer.subscribe(["plain"])
        with pytest.raises(IllegalState, match="nothing is subscribed"):
            consumer.enforce_rebalance()
    with member(connect, auto_commit_interval_ms=1) as consumer:
        consumer.assign([here, ("plain", 1)])
        assert {record.partition for record in read(consumer, 10)} == {1}
        consumer.seek(here, 2)
        poll_until(lambda: consumer.position(here) == 10, consumer)
        consumer.assign([("plain", 1)])
        consumer.unsubscribe()
        consumer.subscribe(["plain"])
        poll_until(lambda: len(consumer.assignment()) == 2, consumer)
        assert consumer.position(("plain", 1)) == 10


def test_an_offset_in_the_group_may_be_missing(connect: Connect) -> None:
    fill(connect, "fresh", 1, 3)
    here = TopicPartition("fresh", 0)
    for policy, expected in (("latest", 3), ("earliest", 0), ("by_duration:PT1H", 0)):
        with Consumer(connect(), group_id="fresh", auto_offset_reset=policy) as consumer:
            consumer.assign([here])
            assert consumer.position(here) == expected
            consumer.unsubscribe()
    with Consumer(connect(), group_id="fresh", auto_offset_reset="none") as consumer:
        consumer.assign([here])
        with pytest.raises(NoOffsetForPartition, match="fresh-0"):
            consumer.poll(10_000)
        consumer.commit({here: 1})
        assert consumer.position(here) == 1


@in_process_at_once
@protocols
def test_a_static_member_comes_back_to_its_partitions(
    connect: Connect, protocol: dict[str, Any]
) -> None:
    fill(connect, "static", 4, 1)
    names = "one", "two"
    members = [member(connect, group_instance_id=name, **protocol) for name in names]
    for each in members:
        each.subscribe(["static"])
    poll_until(lambda: all(len(each.assignment()) == 2 for each in members), *members)
    report = Report()
    members[0].subscribe(["static"], listener=report)
    before = members[1].assignment()
    members[1].close()
    members[1] = member(connect, group_instance_id="two", **protocol)
    members[1].subscribe(["static"])
    poll_until(lambda: members[1].assignment() == before, *members)
    assert report.calls == [], "the other member noticed nothing"
    members[1].close(membership=CloseOptions.LEAVE_GROUP)
    poll_until(lambda: len(members[0].assignment()) == 4, members[0])
    members[0].close(membership=CloseOptions.LEAVE_GROUP)


def test_enforcing_a_rebalance_begins_a_new_generation(connect: Connect) -> None:
    fill(connect, "again", 1, 1)
    with member(connect, **QUICK) as consumer:
        consumer.subscribe(["again"])
        read(consumer, 1)
        generation = consumer.group_metadata().generation_id
        consumer.enforce_rebalance("for the test")
        poll_until(lambda: consumer.group_metadata().generation_id == generation + 1, consumer)


def test_a_listener_may_use_the_consumer(connect: Connect) -> None:
    fill(connect, "within", 1, 10)
    here = TopicPartition("within", 0)

    class Mover(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            assert consumer.committed(partitions) == {here: None}
            assert consumer.position(here) == 0
            consumer.seek(here, 8)

        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            consumer.commit({here: 9})

    with member(connect, enable_auto_commit=False) as consumer:
        consumer.subscribe(["within"], listener=Mover())
        assert [record.offset for record in read(consumer, 2)] == [8, 9]
    with member(connect) as consumer:
        consumer.assign([here])
        assert consumer.position(here) == 9


def test_what_a_listener_raises_ends_the_poll_not_the_rebalance(connect: Connect) -> None:
    fill(connect, "raises", 1, 1)

    class Broken(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            raise ZeroDivisionError("the user's")

    with member(connect) as consumer:
        consumer.subscribe(["raises"], listener=Broken())
        with pytest.raises(ZeroDivisionError, match="the user's") as caught:
            poll_until(lambda: False, consumer)
        (note,) = caught.value.__notes__
        assert note.startswith(f"raised by {__name__}.")
        assert note.endswith("Broken.on_partitions_assigned, called for raises-0 in a rebalance")
        assert consumer.assignment() == parts("raises", 0)
        assert len(read(consumer, 1)) == 1


def test_a_consumer_without_a_group_says_so(connect: Connect) -> None:
    with Consumer(connect()) as consumer:
        for call in (
            lambda: consumer.subscribe(["t"]),
            consumer.commit,
            consumer.commit_async,
            lambda: consumer.committed([]),
            consumer.group_metadata,
            consumer.enforce_rebalance,
        ):
            with pytest.raises(errors.InvalidGroupId):
                call()
        assert consumer.subscription() == set()
        consumer.unsubscribe()


def test_the_broker_matches_patterns_of_its_own(connect: Connect) -> None:
    from embedlog.client.consumer.subscription_state import SubscriptionPattern

    fill(connect, "metrics-a", 2, 1)
    fill(connect, "else", 1, 1)
    with member(connect, group_protocol="consumer", metadata_max_age_ms=200) as consumer:
        consumer.subscribe(SubscriptionPattern("metrics-[a-z]"))
        read(consumer, 2)
        assert consumer.assignment() == parts("metrics-a", 0, 1)
    with (
        member(connect) as consumer,
        pytest.raises(IllegalState, match="group.protocol=consumer"),
    ):
        consumer.subscribe(SubscriptionPattern(".*"))


def test_metrics_count_what_happened(connect: Connect) -> None:
    fill(connect, "counted", 2, 10)
    with member(connect, **QUICK) as consumer:
        consumer.subscribe(["counted"])
        read(consumer, 20)
        consumer.commit()
        found = consumer.metrics()
        assert found["records-consumed-total"] == 20
        assert found["bytes-consumed-total"] > 100
        assert found["assigned-partitions"] == 2
        assert found["records-lag-max"] == 0
        assert found["commit-total"] >= 1
        assert found["rebalance-total"] == 1
        assert found["join-total"] >= 1


def test_interceptors_see_records_and_commits(connect: Connect) -> None:
    fill(connect, "seen", 1, 3)
    seen: list[Any] = []

    class Watcher:
        def on_consume(self, records: Any) -> Any:
            seen.append(("consumed", len(records)))
            return records

        def on_commit(self, offsets: Any) -> None:
            seen.append(("committed", dict(offsets)))

        def close(self) -> None:
            seen.append("closed")

    class Broken:
        def on_consume(self, records: Any) -> Any:
            raise ZeroDivisionError

        def on_commit(self, offsets: Any) -> None:
            raise ZeroDivisionError

    chosen = [Broken(), Watcher()]
    with member(connect, interceptor_classes=chosen, enable_auto_commit=False) as consumer:
        consumer.subscribe(["seen"])
        assert len(read(consumer, 3)) == 3
        consumer.commit()
    assert [each for each in seen if each[0] == "consumed" and each[1]] == [("consumed", 3)]
    here = TopicPartition("seen", 0)
    assert seen[-2:] == [("committed", {here: OffsetAndMetadata(3, "", 0)}), "closed"]
