"""Members of a group of the new protocol (KIP-848): errors, topics, hand-overs, commits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from embedlog.testing import Kafka
from tests.testing.scenarios import clients
from tests.testing.scenarios.clients import (
    SECONDS,
    admin,
    committed,
    failure,
    next_error,
    take,
    transactional,
    until_assigned,
)

pytestmark = pytest.mark.interop

BEAT = "ConsumerGroupHeartbeat"


def consumer(kafka: Kafka, group: str, **settings: Any) -> Consumer:
    return clients.consumer(kafka, group, group_protocol="consumer", **settings)


def member(kafka: Kafka, group: str, topic: str, *more: str, **settings: Any) -> Consumer:
    made = consumer(kafka, group, **settings)
    made.subscribe([topic, *more])
    return made


@pytest.fixture
def orders(kafka: Kafka, topic: str) -> Iterator[str]:
    """A topic with one record."""
    kafka.topic(topic).put(b"x")
    yield topic


# Errors of heartbeats


@pytest.mark.parametrize(
    "error", ["COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"]
)
@pytest.mark.parametrize("when", ["joining", "joined"])
def test_heartbeats_go_on_after_errors_that_pass(
    kafka: Kafka, orders: str, error: str, when: str
) -> None:
    """`poll` hides errors of a coordinator that moves or loads; the member keeps its partition."""
    by = member(kafka, orders, orders)
    if when == "joined":
        assert take(by, 1) == [b"x"]
    with kafka.fault(BEAT, group=orders, error=error, times=2) as fault:
        if when == "joining":
            assert take(by, 1) == [b"x"]
        fault.wait(2)
    kafka.topic(orders).put(b"y")
    assert take(by, 1) == [b"y"]


@pytest.mark.parametrize("error", ["UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"])
def test_a_fenced_member_loses_its_partitions_and_joins_again(
    kafka: Kafka, orders: str, error: str
) -> None:
    """The member tells that its partitions are lost, joins with epoch 0, and reads on."""
    events: list[str] = []
    by = consumer(kafka, orders)
    by.subscribe(
        [orders],
        on_assign=lambda *_: events.append("assigned"),
        on_lost=lambda *_: events.append("lost"),
    )
    assert take(by, 1) == [b"x"]
    with kafka.fault(BEAT, group=orders, error=error):
        assert take(by, 1) == [b"x"]
    assert events == ["assigned", "lost", "assigned"]


@pytest.mark.parametrize(
    "error",
    [
        "INVALID_REQUEST",
        "GROUP_MAX_SIZE_REACHED",
        "UNSUPPORTED_ASSIGNOR",
        "UNSUPPORTED_VERSION",
        "UNRELEASED_INSTANCE_ID",
        "GROUP_AUTHORIZATION_FAILED",
    ],
)
def test_other_errors_of_heartbeats_are_fatal(kafka: Kafka, orders: str, error: str) -> None:
    """An error that will not pass ends the consumer, and `poll` tells it."""
    by = member(kafka, orders, orders)
    with kafka.fault(BEAT, group=orders, error=error, always=True):
        told = next_error(by)
    assert told.name() in ("_FATAL", error), told


def test_heartbeats_keep_to_the_interval_of_the_coordinator(kafka: Kafka, orders: str) -> None:
    """Answers tell the interval, 50 ms here: the member sends no more often, except for changes."""
    by = member(kafka, orders, orders, client_id=orders)
    assert take(by, 1) == [b"x"]
    with kafka.hold(BEAT, group=orders, times=1) as hold:
        hold.wait()
    with kafka.record() as log:
        for _ in range(4):
            with kafka.hold(BEAT, group=orders, times=1) as hold:
                hold.wait()
    at = [event.at_us / 1000 for event in log.requests(BEAT, client_id=orders)]
    assert all(later - earlier > 40 for earlier, later in zip(at, at[1:], strict=False)), at


def test_unsubscribing_at_once_leaves_nothing_behind(kafka: Kafka, orders: str) -> None:
    """A member that unsubscribes before it has joined can subscribe again, and reads."""
    by = consumer(kafka, orders)
    for _ in range(3):
        by.subscribe([orders])
        by.unsubscribe()
    by.subscribe([orders])
    assert take(by, 1) == [b"x"]


def test_closing_while_the_join_is_unanswered(kafka: Kafka, orders: str) -> None:
    """`close` ends although the coordinator has not answered the first heartbeat."""
    by = member(kafka, orders, orders)
    with kafka.hold(BEAT, group=orders) as hold:
        hold.wait()
        closing = threading.Thread(target=by.close)
        closing.start()
        hold.release()
        closing.join(SECONDS)
    assert not closing.is_alive()


def test_a_member_that_polls_too_rarely_comes_back(kafka: Kafka, orders: str) -> None:
    """After max.poll.interval.ms the member leaves; when it polls again it joins and reads."""
    by = member(kafka, orders, orders, max_poll_interval_ms=300)
    assert take(by, 1) == [b"x"]
    other = member(kafka, orders, orders)
    assert take(other, 1) == [b"x"]  # it has the partition, because the first member has left
    other.close()
    assert next_error(by).name() == "_MAX_POLL_EXCEEDED"
    assert take(by, 1) == [b"x"]


# Topics


def test_a_topic_that_metadata_does_not_know_yet_is_waited_for(kafka: Kafka, orders: str) -> None:
    """UNKNOWN_TOPIC_ID for an assigned topic: the member asks again, and then reads."""
    by = member(kafka, orders, orders, client_id=orders)

    def unknown(_request: Any, response: Any) -> Any:
        for each in response.topics:
            each.error_code, each.partitions, each.name = 100, [], None
        return response

    fault: Any = {"client_id": orders, "answer": unknown, "times": 2}
    with kafka.fault("Metadata", **fault, where=lambda request: bool(request.topics)):
        assert take(by, 1) == [b"x"]


def test_a_topic_that_is_created_later_is_assigned(kafka: Kafka, topic: str) -> None:
    """A subscription may name a topic that does not exist yet."""
    later = f"{topic}-later"
    by = member(kafka, topic, topic, later)
    until_assigned(by, counts=[1])
    kafka.create_topic(later, 2)
    until_assigned(by, counts=[3])


def test_a_pattern_is_matched_by_the_coordinator(kafka: Kafka, topic: str) -> None:
    """A subscription by pattern gets the topics that exist; the client does not search itself."""
    for number in range(2):
        kafka.create_topic(f"{topic}-n{number}", 2)
    by = member(kafka, topic, f"^{topic}-n.*", client_id=topic)
    with kafka.record() as log:
        until_assigned(by, counts=[4])
    assert log.requests(BEAT, client_id=topic)


def test_a_changed_subscription_is_reconciled(kafka: Kafka, orders: str) -> None:
    """A member adds a topic and drops the other; records of the kept topic go on."""
    other = f"{orders}-2"
    kafka.create_topic(other, 2)
    by = member(kafka, orders, orders)
    assert take(by, 1) == [b"x"]
    by.subscribe([orders, other])
    until_assigned(by, counts=[3])
    by.subscribe([other])
    until_assigned(by, counts=[2])
    kafka.topic(other).put(b"y", partition=1)
    assert take(by, 1) == [b"y"]


# Several members


def test_partitions_pass_from_member_to_member_without_duplicates(kafka: Kafka, topic: str) -> None:
    """A partition goes to the new member after the old one has committed and given it up."""
    name = f"{topic}-4"
    kafka.create_topic(name, 4)
    for partition in range(4):
        kafka.topic(name).put(b"%d" % partition, partition=partition)
    one = member(kafka, topic, name, enable_auto_commit=True)
    assert sorted(take(one, 4), key=str) == [b"0", b"1", b"2", b"3"]
    two = member(kafka, topic, name, enable_auto_commit=True)
    until_assigned(one, two, counts=[2, 2])  # it fails if a record comes again
    moved = {each.partition for each in two.assignment()}
    assert moved.isdisjoint(each.partition for each in one.assignment())
    two.close()
    until_assigned(one, counts=[4])


def test_a_silent_member_is_expelled(kafka: Kafka, topic: str) -> None:
    """After the session's end the other member has all partitions."""
    name = f"{topic}-2"
    kafka.create_topic(name, 2)
    one = member(kafka, topic, name, client_id="silent")
    two = member(kafka, topic, name)
    until_assigned(one, two, counts=[1, 1])
    with kafka.blackhole(client_id="silent"):
        until_assigned(two, counts=[2])


def test_a_static_member_gets_its_partitions_back(kafka: Kafka, topic: str) -> None:
    """A member with group.instance.id that returns in time has the partitions of before."""
    name = f"{topic}-2"
    kafka.create_topic(name, 2)
    one = member(kafka, topic, name, group_instance_id="one")
    two = member(kafka, topic, name, group_instance_id="two")
    until_assigned(one, two, counts=[1, 1])
    had = [each.partition for each in two.assignment()]
    two.close()
    two = member(kafka, topic, name, group_instance_id="two")
    until_assigned(one, two, counts=[1, 1])
    assert [each.partition for each in two.assignment()] == had


def test_the_newer_of_two_members_with_one_instance_id_is_refused(
    kafka: Kafka, orders: str
) -> None:
    """Two processes with the same group.instance.id: the newer gets a fatal error."""
    old = member(kafka, orders, orders, group_instance_id="one")
    assert take(old, 1) == [b"x"]
    error = next_error(member(kafka, orders, orders, group_instance_id="one"))
    assert error.name() in ("_FATAL", "UNRELEASED_INSTANCE_ID"), error
    kafka.topic(orders).put(b"y")
    assert take(old, 1) == [b"y"]


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_a_server_side_assignor_is_chosen_by_name(kafka: Kafka, topic: str, assignor: str) -> None:
    """group.remote.assignor: the group is of the new type, and uses the assignor."""
    by = member(kafka, topic, topic, group_remote_assignor=assignor)
    until_assigned(by, counts=[1])
    asking = admin(kafka)
    described = asking.describe_consumer_groups([topic])[topic].result(SECONDS)
    assert described.partition_assignor == assignor
    assert described.type.name == "CONSUMER"


def test_an_unknown_assignor_is_refused(kafka: Kafka, topic: str) -> None:
    """A server-side assignor that the broker does not have ends the consumer."""
    error = next_error(member(kafka, topic, topic, group_remote_assignor="no-such"))
    assert error.name() in ("_FATAL", "UNSUPPORTED_ASSIGNOR"), error


# Commits


@pytest.mark.parametrize("code", [113, 88], ids=["STALE_MEMBER_EPOCH", "UNSTABLE_OFFSET_COMMIT"])
def test_committed_offsets_are_fetched_again(kafka: Kafka, orders: str, code: int) -> None:
    """OffsetFetch refused twice: the member begins at the committed offset, not at the reset.

    The error stands at the partition, as in librdkafka's mock. Kafka puts STALE_MEMBER_EPOCH at the
    group, without partitions; there librdkafka 2.16 waits for ever.
    """
    kafka.topic(orders).put(b"y")
    kafka.commit(orders, {(orders, 0): 1})

    def refused(_request: Any, response: Any) -> Any:
        for group in response.groups:
            for topic in group.topics:
                for partition in topic.partitions:
                    partition.error_code, partition.committed_offset = code, -1
        return response

    with kafka.fault("OffsetFetch", group=orders, answer=refused, times=2) as fault:
        assert take(member(kafka, orders, orders), 1) == [b"y"]
    assert fault.hits == 2


@pytest.mark.parametrize(
    "error", ["STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "TOPIC_AUTHORIZATION_FAILED"]
)
def test_a_refused_commit_is_told(kafka: Kafka, orders: str, error: str) -> None:
    """A synchronous commit returns the broker's error of the partition."""
    by = member(kafka, orders, orders)
    assert take(by, 1) == [b"x"]
    with kafka.fault("OffsetCommit", group=orders, error=error):
        raised = failure(by.commit, asynchronous=False)
    assert raised.name() == error
    assert committed(kafka, orders, orders) == -1001


def test_the_commit_of_a_leaving_member_is_repeated(kafka: Kafka, orders: str) -> None:
    """STALE_MEMBER_EPOCH while the member closes: it learns its epoch, and commits."""
    by = member(kafka, orders, orders, enable_auto_commit=True, auto_commit_interval_ms=60_000)
    assert take(by, 1) == [b"x"]
    with kafka.fault("OffsetCommit", group=orders, error="STALE_MEMBER_EPOCH", times=2) as fault:
        by.close()
    assert fault.hits == 2
    assert committed(kafka, orders, orders) == 1


def test_a_transaction_commits_offsets_for_a_member(kafka: Kafka, orders: str) -> None:
    """Read, process, write with the new protocol: offsets are the group's after the commit."""
    by = member(kafka, orders, orders)
    assert take(by, 1) == [b"x"]
    writer = transactional(kafka, orders)
    writer.begin_transaction()
    group = by.consumer_group_metadata()
    writer.send_offsets_to_transaction([TopicPartition(orders, 0, 1)], group, SECONDS)
    writer.commit_transaction(SECONDS)
    assert committed(kafka, orders, orders) == 1


def test_a_group_without_members_can_be_deleted(kafka: Kafka, orders: str) -> None:
    """A group with a member cannot be deleted; after the member has left it can."""
    by = member(kafka, orders, orders)
    assert take(by, 1) == [b"x"]
    asking = admin(kafka)
    delete = asking.delete_consumer_groups
    assert failure(delete([orders])[orders].result, SECONDS).name() == "NON_EMPTY_GROUP"
    by.close()
    delete([orders])[orders].result(SECONDS)
