"""Commits of offsets: their results, errors and retries."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from embedlog.testing import Kafka
from tests.testing.scenarios.clients import (
    SECONDS,
    admin,
    committed,
    consumer,
    failure,
    member,
    take,
)

pytestmark = pytest.mark.interop


@pytest.fixture
def orders(kafka: Kafka, topic: str) -> str:
    """A topic with five records."""
    kafka.topic(topic).put_many([b"%d" % number for number in range(5)])
    return topic


@pytest.mark.parametrize("client", ["confluent", "kafka-python", "embedlog"])
def test_metadata_of_a_commit_comes_back(kafka: Kafka, orders: str, client: str) -> None:
    """A commit may carry a text, which a later look-up returns with the offset."""
    if client == "confluent":
        by = consumer(kafka, orders)
        place = TopicPartition(orders, 0, 3, metadata="note")
        by.commit(offsets=[place], asynchronous=False)
        found = by.committed([TopicPartition(orders, 0)], SECONDS)[0]
        assert (found.offset, found.metadata) == (3, "note")
    elif client == "kafka-python":
        from kafka import KafkaConsumer, OffsetAndMetadata
        from kafka import TopicPartition as Place

        given = kafka.client_config("kafka-python", group_id=orders)
        other = kafka.closing(KafkaConsumer(**given))
        other.commit({Place(orders, 0): OffsetAndMetadata(3, "note", -1)})
        again = other.committed(Place(orders, 0), metadata=True)
        assert (again.offset, again.metadata) == (3, "note")
    else:
        import embedlog

        own = kafka.consumer(group_id=orders)
        place_here = embedlog.TopicPartition(orders, 0)
        own.commit({place_here: embedlog.OffsetAndMetadata(3, metadata="note")})
        kept = own.committed([place_here])[place_here]
        assert (kept.offset, kept.metadata) == (3, "note")


def test_nothing_is_committed_before_the_first_commit(kafka: Kafka, orders: str) -> None:
    """A group without a commit has no offset, and a consumer reads from its reset on."""
    by = member(kafka, orders, orders)
    assert take(by, 5)[0] == b"0"
    assert committed(kafka, orders, orders) == -1001


def test_the_position_is_committed(kafka: Kafka, orders: str) -> None:
    """A commit without offsets commits the position behind the last record that was returned."""
    by = member(kafka, orders, orders)
    take(by, 2)
    assert by.position([TopicPartition(orders, 0)])[0].offset == 2
    by.commit(asynchronous=False)
    assert committed(kafka, orders, orders) == 2


def test_given_offsets_are_committed(kafka: Kafka, orders: str) -> None:
    """A commit of a message commits the offset behind it, although the member has read more."""
    by = member(kafka, orders, orders)
    messages = by.consume(5, SECONDS)
    by.commit(message=messages[1], asynchronous=False)
    assert committed(kafka, orders, orders) == 2


def test_an_asynchronous_commit_tells_its_result(kafka: Kafka, orders: str) -> None:
    """The callback of an asynchronous commit gets the offset, or the broker's error."""
    told: list[Any] = []
    by = member(kafka, orders, orders, on_commit=lambda *result: told.append(result))
    take(by, 3)
    by.commit(offsets=[TopicPartition(orders, 0, 3)], asynchronous=True)
    while not told:
        by.poll(0.05)
    error, places = told[0]
    assert error is None
    assert [place.offset for place in places] == [3]
    with kafka.fault("OffsetCommit", group=orders, error="TOPIC_AUTHORIZATION_FAILED"):
        by.commit(offsets=[TopicPartition(orders, 0, 4)], asynchronous=True)
        while len(told) < 2:
            by.poll(0.05)
    assert told[1][0].name() == "TOPIC_AUTHORIZATION_FAILED"


def test_closing_commits_what_was_read(kafka: Kafka, orders: str) -> None:
    """With enable.auto.commit the position is committed at `close`, long before the interval."""
    by = member(kafka, orders, orders, enable_auto_commit=True, auto_commit_interval_ms=60_000)
    take(by, 4)
    by.close()
    assert committed(kafka, orders, orders) == 4


@pytest.mark.parametrize("error", ["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"])
def test_a_commit_is_repeated_after_an_error_that_passes(
    kafka: Kafka, orders: str, error: str
) -> None:
    """The commit succeeds at the second attempt, and the application sees no error."""
    by = member(kafka, orders, orders)
    take(by, 1)
    with kafka.fault("OffsetCommit", group=orders, error=error) as fault:
        by.commit(asynchronous=False)
    assert fault.hits == 1
    assert committed(kafka, orders, orders) == 1


def test_a_commit_gives_up_after_its_retries(kafka: Kafka, orders: str) -> None:
    """A coordinator that loads for ever: the commit fails with its error, after three attempts."""
    by = member(kafka, orders, orders)
    take(by, 1)
    error = "COORDINATOR_LOAD_IN_PROGRESS"
    with kafka.fault("OffsetCommit", group=orders, error=error, always=True) as fault:
        assert failure(by.commit, asynchronous=False).name() == error
    assert fault.hits == 3


def test_a_commit_that_timed_out_at_the_broker_fails_or_is_repeated(
    kafka: Kafka, orders: str
) -> None:
    """REQUEST_TIMED_OUT for a commit: the consumer goes on reading, and the next commit counts."""
    by = member(kafka, orders, orders)
    take(by, 1)
    with kafka.fault("OffsetCommit", group=orders, error="REQUEST_TIMED_OUT"):
        try:
            by.commit(asynchronous=False)
        except KafkaException as raised:
            assert raised.args[0].name() == "REQUEST_TIMED_OUT"
    assert take(by, 1) == [b"1"]
    by.commit(asynchronous=False)
    assert committed(kafka, orders, orders) == 2


def test_a_commit_during_a_rebalance_does_not_stop_the_reading(kafka: Kafka, orders: str) -> None:
    """REBALANCE_IN_PROGRESS for a commit: the call fails with it, and records still come."""
    by = member(kafka, orders, orders)
    take(by, 1)
    with kafka.fault("OffsetCommit", group=orders, error="REBALANCE_IN_PROGRESS"):
        assert failure(by.commit, asynchronous=False).name() == "REBALANCE_IN_PROGRESS"
    assert take(by, 1) == [b"1"]


def test_a_commit_that_comes_too_late_changes_nothing(kafka: Kafka, orders: str) -> None:
    """ILLEGAL_GENERATION: another member may have the partition, so the offset stays."""
    by = member(kafka, orders, orders)
    take(by, 1)
    by.commit(asynchronous=False)
    take(by, 1)
    with kafka.faults.commit_too_late(group=orders):
        assert failure(by.commit, asynchronous=False).name() == "ILLEGAL_GENERATION"
    assert committed(kafka, orders, orders) == 1


def test_a_lost_answer_to_a_commit_is_asked_again(kafka: Kafka, orders: str) -> None:
    """The connection breaks after the commit was done: it is done again, to the same end."""
    by = member(kafka, orders, orders)
    take(by, 2)
    with kafka.fault("OffsetCommit", group=orders, action="cut-after-apply"):
        by.commit(asynchronous=False)
    assert committed(kafka, orders, orders) == 2


def test_a_partition_that_does_not_exist_cannot_be_committed(kafka: Kafka, orders: str) -> None:
    """A commit for an unknown partition fails for it, and counts for the known one."""
    by = consumer(kafka, orders)
    places = [TopicPartition(orders, 0, 2), TopicPartition(orders, 9, 2)]
    raised = failure(by.commit, offsets=places, asynchronous=False)
    assert raised.name() == "UNKNOWN_TOPIC_OR_PART"
    assert committed(kafka, orders, orders) == 2


@pytest.mark.parametrize(
    ("error", "is_whole"),
    [("GROUP_AUTHORIZATION_FAILED", True), ("TOPIC_AUTHORIZATION_FAILED", False)],
)
def test_an_administrators_commit_tells_the_error(
    kafka: Kafka, orders: str, error: str, is_whole: bool
) -> None:
    """`alter_consumer_group_offsets` returns the error of the group, or of the partition."""
    by = admin(kafka)
    wanted = ConsumerGroupTopicPartitions(orders, [TopicPartition(orders, 0, 2)])
    with kafka.fault("OffsetCommit", group=orders, error=error):
        future = by.alter_consumer_group_offsets([wanted])[orders]
        try:
            told = future.result(SECONDS).topic_partitions[0].error.name()
        except KafkaException as raised:
            told = raised.args[0].name()
    assert told == error
    assert committed(kafka, orders, orders) == -1001
    by.alter_consumer_group_offsets([wanted])[orders].result(SECONDS)
    assert committed(kafka, orders, orders) == 2


def test_offsets_of_a_group_with_members_cannot_be_altered(kafka: Kafka, orders: str) -> None:
    """An administrator may move the offsets of a group only while it has no members."""
    take(member(kafka, orders, orders), 1)
    by = admin(kafka)
    wanted = ConsumerGroupTopicPartitions(orders, [TopicPartition(orders, 0, 2)])
    future = by.alter_consumer_group_offsets([wanted])[orders]
    try:
        told = future.result(SECONDS).topic_partitions[0].error.name()
    except KafkaException as raised:
        told = raised.args[0].name()
    assert told == "UNKNOWN_MEMBER_ID"
