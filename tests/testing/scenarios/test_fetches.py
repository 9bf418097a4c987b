"""Consumers whose offsets, records or leaders are not as they think."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from embedlog.testing import Kafka, rec
from tests.testing.scenarios.clients import (
    SECONDS,
    consumer,
    failure,
    member,
    next_error,
    nothing_comes,
    reader,
    take,
)

pytestmark = pytest.mark.interop
BROKERS = 3


@pytest.fixture
def orders(kafka: Kafka, topic: str) -> str:
    """A topic with five records."""
    kafka.topic(topic).put_many([b"%d" % number for number in range(5)])
    return topic


def other_leader(kafka: Kafka, topic: str) -> None:
    """Let another broker lead partition 0."""
    partition = kafka.partition(topic, 0)
    partition.move_to(partition.leader % 3 + 1)


# Where reading begins


@pytest.mark.parametrize(("reset", "first"), [("earliest", b"0"), ("latest", b"new")])
def test_an_offset_out_of_range_is_reset(
    kafka: Kafka, orders: str, reset: str, first: bytes
) -> None:
    """A position beyond the end leads to the beginning, or to the records that come from now on."""
    by = reader(kafka, orders, offset=100, auto_offset_reset=reset)
    if reset == "latest":
        with kafka.hold("ListOffsets", after_apply=True, times=1, topic=orders) as hold:
            assert by.poll(0.01) is None
            hold.wait()
        nothing_comes(by)
        kafka.topic(orders).put(b"new")
    assert take(by, 1) == [first]


def test_without_a_reset_an_offset_out_of_range_is_told(kafka: Kafka, orders: str) -> None:
    """auto.offset.reset=error: the application gets the error, and no record."""
    by = reader(kafka, orders, offset=100, auto_offset_reset="error")
    assert next_error(by).name() == "_AUTO_OFFSET_RESET"


def test_without_a_reset_a_group_needs_a_committed_offset(kafka: Kafka, orders: str) -> None:
    """auto.offset.reset=error, and nothing is committed: the error says so."""
    error = next_error(member(kafka, orders, orders, auto_offset_reset="error"))
    assert error.name() == "_AUTO_OFFSET_RESET"
    assert "no previously committed offset" in error.str()


@pytest.mark.parametrize("error", ["TOPIC_AUTHORIZATION_FAILED", "LEADER_NOT_AVAILABLE"])
def test_a_failing_look_up_is_told_or_repeated(kafka: Kafka, orders: str, error: str) -> None:
    """ListOffsets: the client hides a passing error, and `poll` returns a lasting one."""
    with kafka.fault("ListOffsets", topic=orders, error=error):
        by = consumer(kafka, auto_offset_reset="earliest")
        by.assign([TopicPartition(orders, 0, -2)])
        if error == "LEADER_NOT_AVAILABLE":
            assert take(by, 1) == [b"0"]
        else:
            assert next_error(by).name() in (error, "_AUTO_OFFSET_RESET")


def test_deleted_records_are_skipped(kafka: Kafka, orders: str) -> None:
    """After records were deleted, the beginning is the first record that is left."""
    kafka.topic(orders).delete_records(3)
    by = consumer(kafka)
    by.assign([TopicPartition(orders, 0, -2)])
    assert take(by, 2) == [b"3", b"4"]


def test_a_log_whose_records_are_all_deleted_goes_on(kafka: Kafka, orders: str) -> None:
    """Offsets go on after all records were deleted, and the next record is found."""
    kafka.topic(orders).delete_records(-1)
    kafka.topic(orders).put(b"new")
    by = consumer(kafka)
    by.assign([TopicPartition(orders, 0, -2)])
    message = by.poll(SECONDS)
    assert message is not None
    assert (message.offset(), message.value()) == (5, b"new")


def test_a_time_finds_the_first_record_at_or_after_it(kafka: Kafka, topic: str) -> None:
    """`offsets_for_times` includes the time itself, and has no offset after the last record."""
    start = 1_700_000_000_000
    seeds = [rec(value=b"x", timestamp=start + 10 * number) for number in range(3)]
    config = {"retention.ms": -1}
    kafka.create_topic(f"{topic}-t", 1, config=config)
    kafka.topic(f"{topic}-t").put_many(seeds)
    by = consumer(kafka)
    for moment, offset in ((start, 0), (start + 10, 1), (start + 11, 2), (start + 21, -1)):
        places = [TopicPartition(f"{topic}-t", 0, moment)]
        assert by.offsets_for_times(places, SECONDS)[0].offset == offset


# Errors of fetches


@pytest.mark.parametrize(
    "error",
    [
        "NOT_LEADER_OR_FOLLOWER",
        "UNKNOWN_LEADER_EPOCH",
        "FENCED_LEADER_EPOCH",
        "KAFKA_STORAGE_ERROR",
        "REPLICA_NOT_AVAILABLE",
        "OFFSET_NOT_AVAILABLE",
    ],
)
def test_fetches_go_on_after_errors_that_pass(kafka: Kafka, orders: str, error: str) -> None:
    """The consumer asks for the leader, fetches again, and misses and repeats no record."""
    by = reader(kafka, orders)
    with kafka.fault("Fetch", topic=orders, error=error, times=2) as fault:
        assert take(by, 5) == [b"0", b"1", b"2", b"3", b"4"]
    assert fault.hits == 2
    nothing_comes(by)


def test_a_forbidden_topic_is_told(kafka: Kafka, orders: str) -> None:
    """A consumer that may not read gets the error once, and reads when it may."""
    by = reader(kafka, orders)
    with kafka.fault("Fetch", topic=orders, error="TOPIC_AUTHORIZATION_FAILED"):
        assert next_error(by).name() == "TOPIC_AUTHORIZATION_FAILED"
    assert take(by, 1) == [b"0"]


def test_a_deleted_topic_is_told(kafka: Kafka, topic: str) -> None:
    """A reader of a topic that was deleted gets the error that the topic is unknown."""
    kafka.topic(topic).put(b"x")
    assert take(reader(kafka, topic), 1) == [b"x"]
    kafka.admin().delete_topics([topic])
    by = member(kafka, topic, topic, **{"topic.metadata.propagation.max.ms": 50})
    assert next_error(by).name() == "UNKNOWN_TOPIC_OR_PART"


def test_a_damaged_batch_is_told(kafka: Kafka, orders: str) -> None:
    """With check.crcs a batch with a wrong checksum is an error, not a record."""
    by = reader(kafka, orders, check_crcs=True)
    with kafka.fault("Fetch", topic=orders, action="corrupt-crc"):
        assert next_error(by).name() == "_BAD_MSG"


@pytest.mark.parametrize("action", ["cut", "truncate"])
def test_a_broken_answer_is_fetched_again(kafka: Kafka, orders: str, action: Any) -> None:
    """A fetch whose answer is cut gives no record; the next one gives each record once."""
    by = reader(kafka, orders)
    with kafka.fault("Fetch", topic=orders, action=action, times=2):
        assert take(by, 5) == [b"0", b"1", b"2", b"3", b"4"]
    nothing_comes(by)


def test_a_record_that_is_larger_than_the_limit_still_comes(kafka: Kafka, topic: str) -> None:
    """The first record of an answer comes whole, however small fetch.max.bytes is."""
    kafka.topic(topic).put_many([b"x" * 20_000, b"y"])
    by = reader(kafka, topic, fetch_message_max_bytes=1_000, max_partition_fetch_bytes=1_000)
    assert take(by, 2) == [b"x" * 20_000, b"y"]


def test_paused_partitions_give_each_record_once(kafka: Kafka, orders: str) -> None:
    """A resume without a pause, and a pause with records in the queue, repeat nothing."""
    by = reader(kafka, orders)
    place = [TopicPartition(orders, 0)]
    assert take(by, 1) == [b"0"]
    by.resume(place)
    assert take(by, 1) == [b"1"]
    by.pause(place)
    nothing_comes(by)
    by.resume(place)
    assert take(by, 3) == [b"2", b"3", b"4"]
    nothing_comes(by)


def test_an_open_transaction_holds_back_later_records(kafka: Kafka, topic: str) -> None:
    """A committed reader waits before an open transaction, and gets everything at its end."""
    transaction = kafka.topic(topic).transaction()
    transaction.put(b"open")
    kafka.topic(topic).put(b"plain")
    by = reader(kafka, topic)
    nothing_comes(by)
    transaction.commit()
    assert take(by, 2) == [b"open", b"plain"]


def test_overlapping_aborted_transactions_are_skipped(kafka: Kafka, topic: str) -> None:
    """Aborted transactions that overlap with committed ones: only committed records come."""
    orders = kafka.topic(topic)
    one, two, three = (orders.transaction() for _ in range(3))
    for each, name in ((one, b"a"), (two, b"b"), (three, b"c"), (one, b"d"), (two, b"e")):
        each.put(name)
    two.commit()
    one.abort()
    orders.put(b"plain")
    three.abort()
    assert take(reader(kafka, topic), 3) == [b"b", b"e", b"plain"]


# Another leader


def validating(kafka: Kafka, topic: str) -> Consumer:
    """Return a reader that has read two records, and keeps up with the leader."""
    by = reader(kafka, topic)
    assert take(by, 5)[0] == b"0"
    return by


@pytest.mark.parametrize("count", [1, 2])
def test_a_consumer_follows_the_leader(kafka: Kafka, orders: str, count: int) -> None:
    """After one or two changes of the leader the consumer validates its offset, and reads on."""
    by = validating(kafka, orders)
    for _ in range(count):
        other_leader(kafka, orders)
    kafka.topic(orders).put(b"new")
    assert take(by, 1) == [b"new"]
    nothing_comes(by)


@pytest.mark.parametrize(
    "error", ["UNKNOWN_LEADER_EPOCH", "FENCED_LEADER_EPOCH", "TOPIC_AUTHORIZATION_FAILED"]
)
def test_a_failing_validation_is_no_reset(kafka: Kafka, orders: str, error: str) -> None:
    """OffsetForLeaderEpoch fails, even for good: it is repeated, and the position stays."""
    by = validating(kafka, orders)
    with kafka.fault("OffsetForLeaderEpoch", topic=orders, error=error, times=2) as fault:
        other_leader(kafka, orders)
        kafka.topic(orders).put(b"new")
        assert take(by, 1) == [b"new"]
    assert fault.hits == 2


def test_a_fetch_during_the_validation_is_not_delivered_twice(kafka: Kafka, orders: str) -> None:
    """A slow validation: records that were fetched before it come once."""
    by = validating(kafka, orders)
    with kafka.hold("OffsetForLeaderEpoch", topic=orders) as hold:
        other_leader(kafka, orders)
        kafka.topic(orders).put_many([b"5", b"6"])
        by.poll(0)
        hold.wait()
    assert take(by, 2) == [b"5", b"6"]
    nothing_comes(by)


def test_an_unchanged_epoch_needs_no_validation(kafka: Kafka, orders: str) -> None:
    """NOT_LEADER_OR_FOLLOWER without a new epoch: the consumer reads on without validation."""
    by = validating(kafka, orders)
    with kafka.record() as log, kafka.faults.leader_moves(topic=orders) as fault:
        kafka.topic(orders).put(b"new")
        fault.wait()
        assert take(by, 1) == [b"new"]
    assert not log.requests("OffsetForLeaderEpoch", client_id="rdkafka")


def test_stored_offsets_without_an_epoch_are_committed(kafka: Kafka, orders: str) -> None:
    """`store_offsets` takes an offset that does not know its leader epoch."""
    by = member(kafka, orders, orders, enable_auto_offset_store=False)
    assert take(by, 5)[4] == b"4"
    by.store_offsets(offsets=[TopicPartition(orders, 0, 3)])
    by.commit(asynchronous=False)
    assert by.committed([TopicPartition(orders, 0)], SECONDS)[0].offset == 3


def test_a_partition_without_a_leader_is_waited_for(kafka: Kafka, topic: str) -> None:
    """All replicas are down for a while: the consumer keeps its position, and reads on."""
    name = f"{topic}-1"
    kafka.create_topic(name, 1, replication_factor=1)
    kafka.topic(name).put(b"x")
    by = reader(kafka, name)
    assert take(by, 1) == [b"x"]
    leader = kafka.broker(kafka.partition(name, 0).leader)
    leader.kill()
    message = by.poll(0.2)
    assert message is None or message.error().name() in ("_TRANSPORT", "_ALL_BROKERS_DOWN")
    leader.start()
    kafka.topic(name).put(b"y")
    assert take(by, 1) == [b"y"]


# Watermarks


@pytest.mark.parametrize("call", ["get_watermark_offsets", "offsets_for_times"])
def test_offsets_are_asked_of_the_new_leader(kafka: Kafka, orders: str, call: str) -> None:
    """Right after a change of the leader a look-up is refused at most once, then it is right."""
    by = consumer(kafka)

    def ask() -> int:
        if call == "get_watermark_offsets":
            return int(by.get_watermark_offsets(TopicPartition(orders, 0), SECONDS)[1])
        return int(by.offsets_for_times([TopicPartition(orders, 0, 0)], SECONDS)[0].offset)

    first = ask()
    other_leader(kafka, orders)
    try:
        assert ask() == first
    except KafkaException as raised:
        assert raised.args[0].name() in ("NOT_LEADER_FOR_PARTITION", "FENCED_LEADER_EPOCH")
    assert ask() == first


def test_watermarks_keep_their_time_out(kafka: Kafka, orders: str) -> None:
    """Nobody answers: `get_watermark_offsets` fails with its time-out, and works later."""
    by = consumer(kafka)
    place = TopicPartition(orders, 0)
    assert by.get_watermark_offsets(place, SECONDS) == (0, 5)
    with kafka.hold("ListOffsets", topic=orders) as hold:
        assert failure(by.get_watermark_offsets, place, 0.2).name() == "_TIMED_OUT"
        hold.wait()
    assert by.get_watermark_offsets(place, SECONDS) == (0, 5)


def test_polling_without_waiting_gets_records_in_the_end(kafka: Kafka, orders: str) -> None:
    """`poll(0)` in a loop gets everything, although no single call waits."""
    by = reader(kafka, orders)
    found: list[Any] = []
    done = threading.Event()
    while len(found) < 5:
        message = by.poll(0)
        if message is not None:
            found.append(message.value())
        done.wait(0.002)
    assert found == [b"0", b"1", b"2", b"3", b"4"]
