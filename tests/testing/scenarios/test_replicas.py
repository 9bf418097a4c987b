"""Reading from a follower in the reader's rack, and what ends it."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from embedlog.testing import Kafka
from tests.testing.scenarios.clients import nothing_comes, reader, take

pytestmark = pytest.mark.interop
BROKERS = 3
LEADER, FOLLOWER = 1, 2


@pytest.fixture
def orders(kafka: Kafka, topic: str) -> str:
    """A topic with five records, which broker 1 leads."""
    kafka.partition(topic, 0).move_to(LEADER)
    kafka.topic(topic).put_many([b"%d" % number for number in range(5)])
    return topic


def near_reader(kafka: Kafka, topic: str, **settings: Any) -> Consumer:
    """Return a reader in the follower's rack that has read all records."""
    by = reader(kafka, topic, client_rack="b", client_id=topic, **settings)
    assert take(by, 5) == [b"0", b"1", b"2", b"3", b"4"]
    return by


def test_a_reader_fetches_from_the_replica_in_its_rack(kafka: Kafka, orders: str) -> None:
    """The leader names the follower in the reader's rack, which then serves all fetches."""
    by = near_reader(kafka, orders)
    with kafka.record() as log:
        for value in (b"new", b"newer"):
            kafka.topic(orders).put(value)
            assert take(by, 1) == [value]
    assert {event.node_id for event in log.requests("Fetch", client_id=orders)} == {FOLLOWER}


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_an_offset_out_of_range_at_a_follower_is_reset(
    kafka: Kafka, orders: str, reset: str
) -> None:
    """The reader seeks beyond the end: the follower refuses, and the position is reset."""
    by = near_reader(kafka, orders, auto_offset_reset=reset)
    by.seek(TopicPartition(orders, 0, 100))
    with kafka.hold("ListOffsets", topic=orders, after_apply=True, times=1) as hold:
        hold.wait()
    if reset == "latest":
        kafka.topic(orders).put(b"new")
    assert take(by, 1) == [b"new" if reset == "latest" else b"0"]


def test_a_follower_that_lags_is_no_reason_for_a_reset(kafka: Kafka, orders: str) -> None:
    """The reader is ahead of the follower: it waits or asks the leader, and keeps its position."""
    by = near_reader(kafka, orders, auto_offset_reset="earliest")
    with kafka.fault("Fetch", node=FOLLOWER, topic=orders, error="OFFSET_NOT_AVAILABLE", times=3):
        nothing_comes(by)
    kafka.topic(orders).put(b"new")
    assert take(by, 1) == [b"new"]


def test_a_replica_that_nobody_knows_does_not_stop_the_reader(kafka: Kafka, orders: str) -> None:
    """The leader names a broker that does not exist: the reader reads in the end."""

    def unknown(_request: Any, response: Any) -> Any:
        for each in response.responses:
            for partition in each.partitions:
                if partition.preferred_read_replica >= 0:
                    partition.preferred_read_replica = 19
        return response

    with kafka.fault("Fetch", node=LEADER, topic=orders, answer=unknown, times=2):
        near_reader(kafka, orders)


@pytest.mark.parametrize(
    "error",
    [
        "NOT_LEADER_OR_FOLLOWER",
        "KAFKA_STORAGE_ERROR",
        "REPLICA_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
    ],
)
def test_an_error_of_the_follower_leads_back_to_the_leader(
    kafka: Kafka, orders: str, error: str
) -> None:
    """A follower that cannot serve: the reader asks the leader again, and misses nothing."""
    by = near_reader(kafka, orders)
    with (
        kafka.record() as log,
        kafka.fault("Fetch", node=FOLLOWER, topic=orders, error=error) as fault,
    ):
        fault.wait()
        kafka.topic(orders).put(b"new")
        assert take(by, 1) == [b"new"]
    assert LEADER in {event.node_id for event in log.requests("Fetch", client_id=orders)}


def test_a_follower_that_is_no_replica_any_more(kafka: Kafka, topic: str) -> None:
    """The partition moves away from the reader's follower: reading goes on at the leader."""
    name = f"{topic}-2"
    kafka.create_topic(name, 1, replication_factor=2)
    partition = kafka.partition(name, 0)
    partition.reassign([1, 2])
    partition.move_to(LEADER)
    kafka.topic(name).put_many([b"%d" % number for number in range(5)])
    by = near_reader(kafka, name)
    partition.reassign([1, 3])
    kafka.topic(name).put(b"new")
    assert take(by, 1) == [b"new"]


def test_a_follower_that_dies(kafka: Kafka, orders: str) -> None:
    """The reader's follower dies: reading goes on at the leader."""
    by = near_reader(kafka, orders)
    kafka.broker(FOLLOWER).kill()
    kafka.topic(orders).put(b"new")
    for _ in range(50):
        message = by.poll(0.4)
        if message is not None and not message.error():
            break
    assert message is not None
    assert message.value() == b"new"


def test_a_seek_with_an_epoch_is_validated(kafka: Kafka, orders: str) -> None:
    """A position behind the end of its leader epoch is truncated to that end."""
    partition = kafka.partition(orders, 0)
    epoch = partition.leader_epoch
    partition.move_to(3)
    kafka.topic(orders).put_many([b"5", b"6", b"7"])
    by = reader(kafka, orders)
    assert take(by, 8)[7] == b"7"
    by.seek(TopicPartition(orders, 0, 7, leader_epoch=epoch))
    assert take(by, 3) == [b"5", b"6", b"7"]
