"""Members of a classic group whose coordinator or fellow members fail."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from embedlog.testing import Kafka
from tests.testing.scenarios.clients import (
    SECONDS,
    admin,
    committed,
    consumer,
    failure,
    member,
    next_error,
    take,
    until_assigned,
)

pytestmark = pytest.mark.interop

CONFIG = {"group.max.size": 3}
QUICK: dict[str, Any] = {"session.timeout.ms": 600, "heartbeat.interval.ms": 60}


def wait_for(by: Consumer, done: Any) -> None:
    """Poll a consumer until `done` has an element."""
    for _ in range(1_000):
        if done:
            return
        by.poll(0.02)
    raise AssertionError("it has not happened")


# The coordinator


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("SyncGroup", "NOT_COORDINATOR"),
        ("SyncGroup", "REBALANCE_IN_PROGRESS"),
        ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS"),
    ],
)
def test_a_member_joins_in_spite_of_errors_that_pass(
    kafka: Kafka, topic: str, api: str, error: str
) -> None:
    """`poll` hides errors of a coordinator that moves or loads, and gets the record."""
    kafka.topic(topic).put(b"x")
    with kafka.fault(api, group=topic, error=error) as fault:
        assert take(member(kafka, topic, topic), 1) == [b"x"]
    assert fault.hits == 1


@pytest.mark.parametrize("api", ["Heartbeat", "JoinGroup"])
def test_a_member_looks_for_its_coordinator_again(kafka: Kafka, topic: str, api: str) -> None:
    """NOT_COORDINATOR leads to one FindCoordinator, without a long pause."""
    kafka.topic(topic).put(b"x")
    by = member(kafka, topic, topic, client_id=topic)
    if api == "Heartbeat":
        assert take(by, 1) == [b"x"]
    with kafka.record() as log, kafka.faults.coordinator_moves(group=topic) as fault:
        if api == "JoinGroup":
            assert take(by, 1) == [b"x"]
        fault.wait()
        with kafka.hold("Heartbeat", group=topic, times=1) as beat:
            beat.wait()
    apis = [event.api for event in log.requests(client_id=topic)]
    at = next(at for at, event in enumerate(log.requests(client_id=topic)) if event.errors)
    assert "FindCoordinator" in apis[at:]


def test_a_rebalance_keeps_the_partitions_of_a_lone_member(kafka: Kafka, topic: str) -> None:
    """REBALANCE_IN_PROGRESS at a heartbeat: the member joins again, and reads on."""
    orders = kafka.topic(topic)
    orders.put(b"1")
    by = member(kafka, topic, topic, **QUICK)
    assert take(by, 1) == [b"1"]
    by.commit(asynchronous=False)
    with kafka.faults.rebalance_begins(group=topic) as fault:
        orders.put(b"2")
        while not fault.hits:
            by.poll(0.02)
    orders.put(b"3")
    assert take(by, 1)[-1] in (b"2", b"3")


@pytest.mark.parametrize("error", ["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"])
def test_a_member_that_was_expelled_loses_its_partitions_and_joins_again(
    kafka: Kafka, topic: str, error: str
) -> None:
    """The member tells the application that the partitions are lost, not that it gave them up."""
    kafka.topic(topic).put(b"x")
    events: list[str] = []
    by = consumer(kafka, topic, **QUICK)
    by.subscribe(
        [topic],
        on_assign=lambda *_: events.append("assigned"),
        on_revoke=lambda *_: events.append("revoked"),
        on_lost=lambda *_: events.append("lost"),
    )
    assert take(by, 1) == [b"x"]
    with kafka.fault("Heartbeat", group=topic, error=error):
        assert take(by, 1) == [b"x"]
    assert events == ["assigned", "lost", "assigned"]


@pytest.mark.parametrize("error", ["GROUP_AUTHORIZATION_FAILED", "INVALID_GROUP_ID"])
def test_a_refused_member_is_told(kafka: Kafka, topic: str, error: str) -> None:
    """An error that will not pass reaches the application through `poll`."""
    by = member(kafka, topic, topic)
    with kafka.fault("JoinGroup", group=topic, error=error):
        assert next_error(by).name() == error


# Sessions


def test_a_silent_member_is_expelled_and_another_takes_over(kafka: Kafka, topic: str) -> None:
    """After session.timeout.ms without heartbeats the other member gets all partitions."""
    kafka.topic(topic).put(b"x")
    lost: list[Any] = []
    silent = consumer(kafka, topic, client_id="silent", **QUICK)
    silent.subscribe([topic], on_lost=lambda *_: lost.append(1))
    assert take(silent, 1) == [b"x"]
    with kafka.blackhole(client_id="silent"):
        other = member(kafka, topic, topic, **QUICK)
        assert take(other, 1) == [b"x"]
        wait_for(silent, lost)
    assert lost


def test_a_commit_after_the_loss_is_refused(kafka: Kafka, topic: str) -> None:
    """A member whose partitions were lost cannot commit for them."""
    kafka.topic(topic).put(b"x")
    by = consumer(kafka, topic, **QUICK)
    refused: list[str] = []
    place = [TopicPartition(topic, 0, 1)]

    def on_lost(*_: Any) -> None:
        refused.append(failure(by.commit, offsets=place, asynchronous=False).name())

    by.subscribe([topic], on_lost=on_lost)
    assert take(by, 1) == [b"x"]
    with kafka.fault("Heartbeat", group=topic, error="UNKNOWN_MEMBER_ID"):
        wait_for(by, refused)
    assert refused[0] in ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "_NO_OFFSET"), refused
    assert committed(kafka, topic, topic) == -1001


def test_closing_does_not_wait_for_a_dead_coordinator(kafka: Kafka, topic: str) -> None:
    """`close` ends although nobody answers LeaveGroup."""
    kafka.topic(topic).put(b"x")
    by = member(kafka, topic, topic, **QUICK)
    assert take(by, 1) == [b"x"]
    with kafka.hold("LeaveGroup", group=topic) as hold:
        closing = threading.Thread(target=by.close)
        closing.start()
        hold.wait()
        closing.join(SECONDS)
    assert not closing.is_alive()


def test_closing_hides_an_error_of_the_leave(kafka: Kafka, topic: str) -> None:
    """A coordinator that does not know the member any more is no error of `close`."""
    kafka.topic(topic).put(b"x")
    by = member(kafka, topic, topic, **QUICK)
    assert take(by, 1) == [b"x"]
    with kafka.fault("LeaveGroup", group=topic, error="UNKNOWN_MEMBER_ID"):
        by.close()


# Static members


def test_a_static_member_comes_back_without_a_rebalance(kafka: Kafka, topic: str) -> None:
    """A member with group.instance.id that comes back in time has its partitions of before."""
    kafka.create_topic(f"{topic}-2", 2)
    names = [f"{topic}-2"]
    settings = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 60}
    first = member(kafka, topic, *names, group_instance_id="one", **settings)
    second = member(kafka, topic, *names, group_instance_id="two", **settings)
    until_assigned(first, second, counts=[1, 1])
    had = second.assignment()
    with kafka.record() as log:
        second.close()
        second = member(kafka, topic, *names, group_instance_id="two", **settings)
        until_assigned(first, second, counts=[1, 1])
    assert [each.partition for each in second.assignment()] == [each.partition for each in had]
    assert not log.count("LeaveGroup", group=topic)
    assert log.count("JoinGroup", group=topic) == 1


def test_the_older_of_two_members_with_one_instance_id_is_fenced(kafka: Kafka, topic: str) -> None:
    """Two processes with the same group.instance.id: the older gets a fatal error."""
    settings: dict[str, Any] = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 60}
    old = member(kafka, topic, topic, group_instance_id="one", **settings)
    until_assigned(old, counts=[1])
    new = member(kafka, topic, topic, group_instance_id="one", **settings)
    until_assigned(new, counts=[1])
    error = next_error(old)
    assert error.name() == "_FATAL"
    assert "fenced" in error.str()


# Assignments


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_members_get_partitions_of_their_own_topics_alone(
    kafka: Kafka, topic: str, assignor: str
) -> None:
    """Members with different subscriptions: nobody gets a topic that it has not asked for."""
    names = [f"{topic}-1", f"{topic}-2"]
    for each in names:
        kafka.create_topic(each, 2)
    one = member(kafka, topic, names[0], partition_assignment_strategy=assignor)
    both = member(kafka, topic, *names, partition_assignment_strategy=assignor)
    until_assigned(one, both, counts=[2, 2] if "sticky" in assignor else [1, 3])
    assert {each.topic for each in one.assignment()} == {names[0]}
    assert [each.topic for each in both.assignment()].count(names[1]) == 2


def test_the_group_uses_the_first_strategy_that_all_members_have(kafka: Kafka, topic: str) -> None:
    """The order of partition.assignment.strategy decides among common strategies."""
    kafka.create_topic(f"{topic}-2", 2)
    setting = "partition_assignment_strategy"
    one = member(kafka, topic, f"{topic}-2", **{setting: "roundrobin,range"})
    until_assigned(one, counts=[2])
    by = admin(kafka)
    assert by.describe_consumer_groups([topic])[topic].result(SECONDS).partition_assignor == (
        "roundrobin"
    )
    two = member(kafka, topic, f"{topic}-2", **{setting: "range"})
    until_assigned(one, two, counts=[1, 1])
    assert by.describe_consumer_groups([topic])[topic].result(SECONDS).partition_assignor == "range"


def test_a_member_without_a_common_strategy_is_refused(kafka: Kafka, topic: str) -> None:
    """INCONSISTENT_GROUP_PROTOCOL reaches the application; the group is unharmed."""
    one = member(kafka, topic, topic, partition_assignment_strategy="range")
    until_assigned(one, counts=[1])
    other = member(kafka, topic, topic, partition_assignment_strategy="cooperative-sticky")
    assert next_error(other).name() == "INCONSISTENT_GROUP_PROTOCOL"
    assert one.assignment()


def test_a_full_group_refuses_members(kafka: Kafka, topic: str) -> None:
    """With group.max.size members, one more gets GROUP_MAX_SIZE_REACHED."""
    kafka.create_topic(f"{topic}-3", 3)
    members = [member(kafka, topic, f"{topic}-3") for _ in range(3)]
    until_assigned(*members, counts=[1, 1, 1])
    extra = member(kafka, topic, f"{topic}-3")
    assert next_error(extra).name() == "GROUP_MAX_SIZE_REACHED"


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_pattern_finds_new_topics(kafka: Kafka, topic: str, assignor: str) -> None:
    """A subscription by pattern gets topics that are created later, one after another."""
    by = member(
        kafka,
        topic,
        f"^{topic}-n.*",
        partition_assignment_strategy=assignor,
        topic_metadata_refresh_interval_ms=50,
    )
    for number in range(3):
        kafka.create_topic(f"{topic}-n{number}", 2)
        until_assigned(by, counts=[2 * (number + 1)])


def test_new_partitions_are_assigned(kafka: Kafka, topic: str) -> None:
    """After the topic has grown, the member reads the new partition from its beginning."""
    by = member(kafka, topic, topic, topic_metadata_refresh_interval_ms=50)
    until_assigned(by, counts=[1])
    kafka.admin().create_partitions({topic: 2})
    kafka.topic(topic).put(b"x", partition=1)
    assert take(by, 1) == [b"x"]


def test_a_deleted_topic_leaves_the_assignment(kafka: Kafka, topic: str) -> None:
    """A deleted topic: the member keeps the partitions of the other topic alone."""
    kafka.create_topic(f"{topic}-2", 2)
    by = consumer(kafka, topic, topic_metadata_refresh_interval_ms=50)
    by.subscribe([f"^{topic}.*"])
    until_assigned(by, counts=[3])
    kafka.admin().delete_topics([f"{topic}-2"])
    for _ in range(500):
        by.poll(0.02)  # it may tell that the topic is unknown
        if len(by.assignment()) == 1:
            break
    assert [each.topic for each in by.assignment()] == [topic]


def test_changes_of_the_subscription_end_with_the_last_one(kafka: Kafka, topic: str) -> None:
    """Subscriptions in quick succession: the assignment follows the last one."""
    names = [f"{topic}-{number}" for number in range(4)]
    for each in names:
        kafka.create_topic(each, 1)
    # A join that the client gives up leaves a member behind, until the end of its session.
    by = consumer(kafka, topic, **QUICK)
    for each in names:
        by.subscribe([topic, each])
        by.poll(0.01)
    by.unsubscribe()
    by.subscribe(names[:2])
    kafka.topic(names[0]).put(b"x")
    assert take(by, 1) == [b"x"]
    assert sorted(each.topic for each in by.assignment()) == names[:2]
