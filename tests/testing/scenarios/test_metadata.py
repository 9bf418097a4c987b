"""Clients whose leaders move, and whose metadata is missing, late or wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from embedlog.testing import Kafka
from tests.testing.scenarios.clients import (
    SECONDS,
    SENDERS,
    admin,
    consumer,
    failure,
    member,
    producer,
    reader,
    send,
    take,
    transactional,
    until_assigned,
)

pytestmark = pytest.mark.interop
BROKERS = 3
SLOW_REFRESH = {"topic.metadata.refresh.interval.ms": 300_000}


def other_leader(kafka: Kafka, topic: str) -> None:
    """Let another broker lead partition 0."""
    partition = kafka.partition(topic, 0)
    partition.move_to(partition.leader % 3 + 1)


# A leader that moves


def test_a_producer_follows_the_leader(kafka: Kafka, topic: str) -> None:
    """After each change of the leader records go to the new one, without an error."""
    by = producer(kafka, **SLOW_REFRESH)
    for number in range(3):
        assert send(by, topic, [b"%d" % number]) == [f"offset {number}"]
        other_leader(kafka, topic)
    assert kafka.topic(topic).values() == [b"0", b"1", b"2"]


def test_a_producer_follows_the_leaders_of_two_partitions(kafka: Kafka, topic: str) -> None:
    """Both partitions of a topic get new leaders at once."""
    name = f"{topic}-2"
    kafka.create_topic(name, 2, replication_factor=3)
    by = producer(kafka, **SLOW_REFRESH)
    for partition in (0, 1):
        send(by, name, [b"before"], partition=partition)
    for partition in (0, 1):
        moved = kafka.partition(name, partition)
        moved.move_to(moved.leader % 3 + 1)
    for partition in (0, 1):
        assert send(by, name, [b"after"], partition=partition) == ["offset 1"]


@pytest.mark.parametrize("sender", SENDERS.values(), ids=SENDERS)
def test_records_survive_the_death_of_their_leader(
    kafka: Kafka, topic: str, sender: Callable[..., int]
) -> None:
    """The answer is lost, then the leader dies: the next leader has each record once."""
    leader = kafka.broker(kafka.partition(topic, 0).leader)

    with kafka.faults.lost_acknowledgement(topic=topic):
        assert sender(kafka, topic, b"1", enable_idempotence=True) == 0
    leader.kill()
    assert sender(kafka, topic, b"2", enable_idempotence=True) == 1
    assert kafka.topic(topic).values() == [b"1", b"2"]


def test_one_error_of_a_leader_is_one_refresh(kafka: Kafka, topic: str) -> None:
    """NOT_LEADER_OR_FOLLOWER although the leader is the same: no loop of Metadata requests."""
    by = producer(kafka, client_id=topic, **SLOW_REFRESH)
    send(by, topic, [b"1"])
    with kafka.record() as log, kafka.faults.leader_moves(topic=topic):
        assert send(by, topic, [b"2"]) == ["offset 1"]
        assert send(by, topic, [b"3"]) == ["offset 2"]
    assert 1 <= len(log.requests("Metadata", client_id=topic)) <= 3


def test_stale_metadata_is_asked_again(kafka: Kafka, topic: str) -> None:
    """Brokers tell the old leader for a while: the producer asks until they tell the new one."""
    by = producer(kafka, **SLOW_REFRESH)
    send(by, topic, [b"1"])
    with kafka.fault("Metadata", topic=topic, action="stale-metadata", times=2, may_miss=True):
        other_leader(kafka, topic)
        assert send(by, topic, [b"2"]) == ["offset 1"]


def test_metadata_of_an_older_epoch_does_not_move_a_partition_back(
    kafka: Kafka, topic: str
) -> None:
    """A consumer that knows the new leader does not believe a broker that tells an older epoch."""
    kafka.topic(topic).put(b"1")
    by = reader(kafka, topic, **SLOW_REFRESH)
    assert take(by, 1) == [b"1"]
    former = kafka.partition(topic, 0).leader
    armed: list[bool] = []
    rule: Any = {"action": "stale-metadata", "where": lambda _: bool(armed)}
    with kafka.fault("Metadata", topic=topic, **rule):
        other_leader(kafka, topic)
        kafka.topic(topic).put(b"2")
        assert take(by, 1) == [b"2"]
        armed.append(True)
        by.list_topics(topic, SECONDS)  # it tells the former leader
    with kafka.record() as log:
        kafka.topic(topic).put(b"3")
        assert take(by, 1) == [b"3"]
    assert not log.requests("Fetch", node=former, topic=topic)


# Metadata that fails


def test_a_topic_that_is_unknown_for_a_while_is_waited_for(kafka: Kafka, topic: str) -> None:
    """A broker that does not know a new topic yet costs no record."""
    with kafka.faults.topic_unknown(topic=topic, times=2) as fault:
        assert send(producer(kafka), topic, [b"x"]) == ["offset 0"]
    assert fault.hits == 2


def test_an_error_of_metadata_does_not_stop_a_known_topic(kafka: Kafka, topic: str) -> None:
    """UNKNOWN_TOPIC_OR_PARTITION for a topic that works: records go on, without an error."""
    by = producer(kafka, topic_metadata_refresh_interval_ms=50)
    send(by, topic, [b"1"])
    with kafka.faults.topic_unknown(topic=topic, times=3) as fault:
        fault.wait()
        assert send(by, topic, [b"2"]) == ["offset 1"]
        fault.wait(3)
        assert send(by, topic, [b"3"]) == ["offset 2"]


def test_partitions_without_a_leader_at_first_are_asked_again(kafka: Kafka, topic: str) -> None:
    """The first Metadata has LEADER_NOT_AVAILABLE for each partition: the producer asks again."""

    def leaderless(_request: Any, response: Any) -> Any:
        for each in response.topics:
            for partition in each.partitions:
                partition.error_code, partition.leader_id, partition.leader_epoch = 5, -1, -1
        return response

    with kafka.fault("Metadata", topic=topic, answer=leaderless, times=2) as fault:
        assert send(producer(kafka), topic, [b"x"]) == ["offset 0"]
    assert fault.hits == 2


def test_a_topic_without_partitions_is_no_success(kafka: Kafka, topic: str) -> None:
    """A broken broker tells a topic with no partitions: records are kept, and sent later."""

    def empty(_request: Any, response: Any) -> Any:
        for each in response.topics:
            each.partitions = []
        return response

    with kafka.fault("Metadata", topic=topic, answer=empty, times=2) as fault:
        assert send(producer(kafka), topic, [b"x"]) == ["offset 0"]
    assert fault.hits == 2
    assert kafka.topic(topic).values() == [b"x"]


def test_a_partition_that_is_missing_for_a_moment_keeps_its_records(
    kafka: Kafka, topic: str
) -> None:
    """A stale broker tells fewer partitions: the records of the missing one are sent later."""
    name = f"{topic}-2"
    kafka.create_topic(name, 2, replication_factor=3)
    by = producer(kafka, client_id=topic)
    send(by, name, [b"1"], partition=1)

    def shrunk(_request: Any, response: Any) -> Any:
        for each in response.topics:
            each.partitions = [part for part in each.partitions if part.partition_index == 0]
        return response

    with kafka.fault("Metadata", topic=name, client_id=topic, answer=shrunk):
        by.list_topics(name, SECONDS)
    by.produce(name, b"2", partition=1)
    by.list_topics(name, SECONDS)
    assert by.flush(SECONDS) == 0
    assert kafka.topic(name).values() == [b"1", b"2"]


def test_a_partition_that_does_not_exist_is_told(kafka: Kafka, topic: str) -> None:
    """Records for a partition that the topic lacks fail as unknown, and others are sent."""
    settings = {"topic.metadata.propagation.max.ms": 100, "message.timeout.ms": 3_000}
    by = producer(kafka, **settings)
    assert send(by, topic, [b"x"], partition=7) == ["_UNKNOWN_PARTITION"]
    assert send(by, topic, [b"x"]) == ["offset 0"]


def test_a_topic_that_disappears_for_a_while_loses_nothing(kafka: Kafka, topic: str) -> None:
    """Between two transactions the topic is missing from Metadata: sequences go on afterwards."""
    by = transactional(kafka, topic, topic_metadata_refresh_interval_ms=50, client_id=topic)
    for number in range(2):
        by.begin_transaction()
        for value in range(3):
            by.produce(topic, b"%d-%d" % (number, value), partition=0)
        by.commit_transaction(SECONDS)
        if number == 0:
            with kafka.faults.topic_unknown(topic=topic, client_id=topic, times=4) as fault:
                fault.wait(4)
    wanted = [b"%d-%d" % (number, value) for number in range(2) for value in range(3)]
    assert kafka.topic(topic).values() == wanted


# Metadata and groups


def test_a_look_up_right_after_the_subscription_harms_nothing(kafka: Kafka, topic: str) -> None:
    """`list_topics` before the member has joined: no error about an unknown topic comes."""
    kafka.topic(topic).put(b"x")
    by = member(kafka, topic, topic)
    assert topic in by.list_topics(topic, SECONDS).topics
    assert take(by, 1) == [b"x"]


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_look_up_of_all_topics_keeps_the_subscribed_ones(
    kafka: Kafka, topic: str, assignor: str
) -> None:
    """Looking at all topics of the cluster does not make the member forget its own."""
    settings = {"partition.assignment.strategy": assignor}
    by = member(kafka, topic, topic, client_id=topic, **settings)
    until_assigned(by, counts=[1])
    by.list_topics(timeout=SECONDS)
    with kafka.record() as log:
        kafka.topic(topic).put(b"x")
        assert take(by, 1) == [b"x"]
    assert not log.requests("JoinGroup", client_id=topic)


def test_the_leader_of_a_look_up_is_forgotten_when_it_moves(kafka: Kafka, topic: str) -> None:
    """An administrator's `list_offsets` fails once after a change, and then asks the new leader.

    FENCED_LEADER_EPOCH, which Kafka answers as well, does not make librdkafka 2.16 forget.
    """
    kafka.topic(topic).put(b"x")
    by = admin(kafka)
    place = TopicPartition(topic, 0)

    def ask() -> int:
        found = by.list_offsets({place: OffsetSpec.latest()}, request_timeout=SECONDS)
        return int(found[place].result(SECONDS).offset)

    assert ask() == 1
    other_leader(kafka, topic)
    with kafka.fault("ListOffsets", topic=topic, error="NOT_LEADER_OR_FOLLOWER"):
        assert failure(ask).name() == "NOT_LEADER_FOR_PARTITION"
    assert ask() == 1


# Coordinators


@pytest.mark.parametrize("api", ["leader", "coordinator"])
def test_a_broker_dies_in_a_transaction(kafka: Kafka, topic: str, api: str) -> None:
    """The leader, or the coordinator, dies with an open transaction: it commits elsewhere."""
    by = transactional(kafka, topic)
    by.begin_transaction()
    assert send(by, topic, [b"1"]) == ["offset 0"]
    internal = "__transaction_state" if api == "coordinator" else topic
    kafka.broker(kafka.partition(internal, 0).leader).kill()
    by.produce(topic, b"2", partition=0)
    by.commit_transaction(SECONDS)
    assert kafka.topic(topic).values() == [b"1", b"2"]


def test_a_coordinator_moves_in_a_transaction(kafka: Kafka, topic: str) -> None:
    """The coordinator moves between the records and the offsets: both are committed."""
    group = consumer(kafka, topic).consumer_group_metadata()
    by = transactional(kafka, topic)
    by.begin_transaction()
    send(by, topic, [b"x"])
    other_leader(kafka, "__transaction_state")
    by.send_offsets_to_transaction([TopicPartition(topic, 0, 1)], group, SECONDS)
    other_leader(kafka, "__transaction_state")
    by.commit_transaction(SECONDS)
    assert kafka.topic(topic).values() == [b"x"]


def test_a_group_goes_on_at_another_coordinator(kafka: Kafka, topic: str) -> None:
    """The group's coordinator dies: members keep their partitions, and commit at the next one."""
    kafka.topic(topic).put(b"1")
    by = member(kafka, topic, topic)
    assert take(by, 1) == [b"1"]
    kafka.broker(kafka.partition("__consumer_offsets", 0).leader).kill()
    kafka.topic(topic).put(b"2")
    assert take(by, 1) == [b"2"]
    by.commit(asynchronous=False)
    assert by.committed([TopicPartition(topic, 0)], SECONDS)[0].offset == 2
