"""clock="auto": time leaps while somebody waits, and not otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from embedlog.runtime.pending import Pending
from embedlog.testing import Kafka
from embedlog.testing.time.real_waits import wait_in_real_time
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka(clock="auto", topics={"t": 1}) as made:
        yield made


def fetch(kafka: Kafka, max_wait_ms: int) -> Pending[object]:
    """Send a fetch that waits for a record, as a remote client."""
    topic_id = kafka.broker().core.image.topics_by_name["t"].topic_id
    topics = [FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition=0)])]
    request = FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=topics)
    return kafka.cluster.connect(None).send(-1, request)  # type: ignore[return-value]


def test_time_leaps_to_the_end_of_a_waiting_request(kafka: Kafka) -> None:
    before = kafka.clock.now()
    pending = fetch(kafka, 3_600_000)
    assert wait_in_real_time(kafka.cluster.runtime, pending, 30_000)
    passed = kafka.clock.now() - before
    in_ms = timedelta(milliseconds=2)  # both times are rounded
    assert timedelta(hours=1) - in_ms <= passed < timedelta(hours=1, minutes=1)
    assert kafka.clock.leap_count >= 1


def test_time_leaps_to_the_end_of_a_poll_of_this_process(kafka: Kafka) -> None:
    consumer = kafka.consumer(auto_offset_reset="earliest")
    consumer.assign([("t", 0)])
    before = kafka.clock.now()
    assert len(consumer.poll(20_000)) == 0
    assert timedelta(seconds=19) <= kafka.clock.now() - before


def test_time_does_not_leap_while_nobody_waits(kafka: Kafka) -> None:
    before = kafka.clock.now()
    for _ in range(20):
        kafka.producer().send("t", b"x").result()
    assert kafka.clock.now() - before < timedelta(minutes=1)


def test_time_does_not_leap_while_a_test_holds_it(kafka: Kafka) -> None:
    with kafka.clock.hold():
        pending = fetch(kafka, 3_600_000)
        assert not wait_in_real_time(kafka.cluster.runtime, pending, 60)
        assert kafka.clock.leap_count == 0
    assert wait_in_real_time(kafka.cluster.runtime, pending, 30_000)


def test_a_wait_of_a_test_ends_by_the_machines_clock(kafka: Kafka) -> None:
    before = kafka.clock.now()
    assert not wait_in_real_time(kafka.cluster.runtime, Pending(), 50)
    assert kafka.clock.now() - before > timedelta(seconds=5)  # time leapt to the next due duty


@pytest.mark.slow
def test_a_transaction_that_nobody_ends_times_out_by_itself(kafka: Kafka) -> None:
    producer = kafka.producer(transactional_id="tx", transaction_timeout_ms=60_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"open").result()
    kafka.producer().send("t", b"plain").result()
    consumer = kafka.consumer(isolation_level="read_committed", auto_offset_reset="earliest")
    consumer.assign([("t", 0)])
    values: list[bytes | None] = []
    while not values:  # the open transaction hides the plain record
        values += [each.value for each in consumer.poll(600_000)]
    assert values == [b"plain"]


@pytest.mark.slow
def test_leaps_go_on_with_several_brokers() -> None:
    topics = {"t": {"partitions": 1, "replication_factor": 3}}
    with Kafka(clock="auto", brokers=3, topics=topics) as kafka:
        consumer = kafka.consumer(auto_offset_reset="earliest")
        consumer.assign([("t", 0)])
        before = kafka.clock.now()
        assert len(consumer.poll(20_000)) == 0
        assert timedelta(seconds=19) <= kafka.clock.now() - before
        kafka.producer().send("t", b"x").result()
        assert [each.value for each in consumer.poll(20_000)] == [b"x"]
