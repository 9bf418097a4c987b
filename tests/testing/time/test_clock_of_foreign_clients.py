"""Jumps and leaps with confluent-kafka and kafka-python, which have clocks of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from kafka import KafkaConsumer

from embedlog.errors import GroupIdNotFound
from embedlog.testing import Kafka

pytestmark = [pytest.mark.interop, pytest.mark.slow]

DEADLINE_S = 60


def until(condition: Callable[[], Any], what: str) -> Any:
    """Call the condition, which takes a moment, until its result is true."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if found := condition():
            return found
    raise AssertionError(f"not within {DEADLINE_S} s: {what}")


def members(kafka: Kafka, group: str = "g") -> list[str]:
    with kafka.cluster.admin() as admin:
        try:
            found = admin.describe_groups([group])[group]
        except GroupIdNotFound:  # without members and offsets there is no group
            return []
        return sorted(each.member_id for each in found.members)


def joined(kafka: Kafka, protocol: str) -> Consumer:
    """Return a consumer that has read the topic's one record."""
    kafka.cluster.producer().send("t", b"first").result()
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "g",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.1), "the first record")
    return consumer


def has_got(consumer: Consumer, value: bytes) -> bool:
    message = consumer.poll(0.1)
    return message is not None and message.value() == value


@pytest.fixture(params=["classic", "consumer"])
def protocol(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(params=[1, 3])
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    with Kafka(clock="manual", brokers=request.param, topics={"t": 1}) as made:
        yield made


def test_a_jump_ends_the_session_and_the_client_joins_again(kafka: Kafka, protocol: str) -> None:
    consumer = joined(kafka, protocol)
    before = members(kafka)
    kafka.clock.jump(minutes=2)
    assert before != members(kafka)

    def is_back() -> list[str]:
        consumer.poll(0.1)
        return members(kafka)

    assert len(until(is_back, "the consumer joins again")) == 1
    kafka.cluster.producer().send("t", b"second").result()
    # The offset of the first record was not committed, so the consumer may get it again.
    until(lambda: has_got(consumer, b"second"), "the second record")
    consumer.close()


def test_a_jump_of_a_day_keeps_a_live_member(kafka: Kafka, protocol: str) -> None:
    consumer = joined(kafka, protocol)
    (member,) = members(kafka)
    kafka.clock.jump(days=1, keep_members=True)
    assert members(kafka) == [member]
    kafka.cluster.producer().send("t", b"second").result()
    assert until(lambda: consumer.poll(0.1), "the second record").value() == b"second"
    consumer.close()
    assert members(kafka) == []


def test_a_member_whose_connection_is_closed_is_not_kept(protocol: str) -> None:
    with Kafka(clock="manual", topics={"t": 1}) as kafka:
        consumer = joined(kafka, protocol)
        assert len(members(kafka)) == 1
        address = kafka.bootstrap_servers
        kafka.restore(kafka.snapshot())  # breaks the connections
        assert kafka.bootstrap_servers == address
        kafka.clock.jump(minutes=5, keep_members=True)
        consumer.close()
        until(lambda: not members(kafka), "the group is empty")


def test_time_leaps_beside_a_live_member(protocol: str) -> None:
    with Kafka(clock="auto", topics={"t": 1}) as kafka:
        consumer = joined(kafka, protocol)
        (member,) = members(kafka)
        before = kafka.clock.now()

        def has_passed() -> bool:
            assert consumer.poll(0.1) is None
            return (kafka.clock.now() - before).total_seconds() > 180  # four sessions

        until(has_passed, "three minutes")
        assert members(kafka) == [member]
        consumer.close()


def test_time_does_not_leap_over_a_rebalance(protocol: str) -> None:
    with Kafka(clock="auto", topics={"t": 2}) as kafka:
        first = joined(kafka, protocol)
        second = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": "g",
                "group.protocol": protocol,
            }
        )
        second.subscribe(["t"])

        def is_shared() -> bool:
            first.poll(0.05)
            second.poll(0.05)
            return len(first.assignment()) == len(second.assignment()) == 1

        until(is_shared, "each has a partition")
        assert len(members(kafka)) == 2
        first.close()
        second.close()


def test_retention_by_a_jump_moves_a_consumer_on() -> None:
    topics = {"t": {"partitions": 1, "config": {"retention.ms": 3_600_000}}}
    with Kafka(clock="manual", topics=topics) as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        producer.produce("t", b"old")
        assert producer.flush(30) == 0
        kafka.clock.jump(hours=2)
        producer.produce("t", b"stamped by the client")  # 2 hours old for the brokers
        assert producer.flush(30) == 0
        consumer = KafkaConsumer(
            "t",
            bootstrap_servers=kafka.bootstrap_servers,
            auto_offset_reset="earliest",
            consumer_timeout_ms=20_000,
        )
        assert next(consumer).value == b"stamped by the client"
        kafka.maintain()
        assert consumer.beginning_offsets(
            dict.fromkeys(consumer.assignment(), 0).keys()
        ) == dict.fromkeys(consumer.assignment(), 2)
        consumer.close()


def test_log_append_time_follows_the_clusters_clock() -> None:
    topics = {"t": {"partitions": 1, "config": {"message.timestamp.type": "LogAppendTime"}}}
    with Kafka(clock="manual", topics=topics) as kafka:
        kafka.clock.jump(days=3)
        stamps: list[int] = []
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        producer.produce("t", b"x", callback=lambda _, made: stamps.append(made.timestamp()[1]))
        assert producer.flush(30) == 0
        assert abs(stamps[0] - kafka.clock.now_ms) < 60_000


def test_a_transaction_times_out_by_a_jump() -> None:
    with Kafka(clock="manual", topics={"t": 1}) as kafka:
        producer = Producer(
            {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "tx"}
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("t", b"x")
        assert producer.flush(30) == 0
        kafka.clock.jump(minutes=2)
        with pytest.raises(KafkaException) as caught:
            producer.commit_transaction(30)
        error = caught.value.args[0]
        assert error.fatal() or error.txn_requires_abort(), error
        fenced = {"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE"}
        assert error.name() in fenced


def test_a_waiting_fetch_of_a_client_is_answered_by_a_jump() -> None:
    with Kafka(clock="manual", topics={"t": 1}) as kafka:
        consumer = KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers,
            fetch_max_wait_ms=20_000,
            request_timeout_ms=40_000,
        )
        consumer.assign([kafka_partition()])
        consumer.seek_to_beginning()
        until(lambda: consumer.poll(10) or _fetches(kafka), "a fetch waits")
        kafka.clock.jump(seconds=21)
        assert kafka.clock.now()
        kafka.cluster.producer().send("t", b"x").result()
        found = until(lambda: consumer.poll(100), "the record")
        assert [each.value for each in found[kafka_partition()]] == [b"x"]
        consumer.close()


def kafka_partition() -> Any:
    from kafka import TopicPartition

    return TopicPartition("t", 0)


def _fetches(kafka: Kafka) -> list[str]:
    return [each.what for each in kafka.clock.timers() if each.what == "a waiting Fetch"]
