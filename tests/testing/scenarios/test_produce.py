"""Producers whose records a broker refuses, loses or delays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from embedlog.testing import Kafka
from tests.testing.scenarios.clients import SENDERS, failure, producer, reader, send, take

pytestmark = pytest.mark.interop

PLAIN = {"enable.idempotence": False}
IDEMPOTENT = {"enable.idempotence": True}

senders = pytest.mark.parametrize("sender", SENDERS.values(), ids=SENDERS)
Sender = Callable[..., int]


@senders
def test_a_retriable_error_is_repeated(kafka: Kafka, topic: str, sender: Sender) -> None:
    """A producer sends a refused record again until the leader takes it."""
    with kafka.fault("Produce", topic=topic, error="NOT_ENOUGH_REPLICAS", times=3) as fault:
        assert sender(kafka, topic, b"x", enable_idempotence=True) == 0
    assert fault.hits == 3
    assert kafka.topic(topic).values() == [b"x"]


def test_the_last_retry_fails_with_the_brokers_error(kafka: Kafka, topic: str) -> None:
    """Without a retry left, the delivery report has the broker's error, and nothing is written."""
    by = producer(kafka, **PLAIN, retries=1)
    with kafka.fault("Produce", topic=topic, error="NOT_ENOUGH_REPLICAS", always=True) as fault:
        assert send(by, topic, [b"x"]) == ["NOT_ENOUGH_REPLICAS"]
    assert fault.hits == 2
    assert kafka.topic(topic).values() == []


@senders
def test_a_cut_connection_is_opened_again(kafka: Kafka, topic: str, sender: Sender) -> None:
    """A producer connects and sends again if its connection breaks with the request."""
    with kafka.fault("Produce", topic=topic, action="cut", times=2) as fault:
        assert sender(kafka, topic, b"x", enable_idempotence=True) == 0
    assert fault.hits == 2
    assert kafka.topic(topic).values() == [b"x"]


def test_without_retries_a_lost_answer_is_an_error_although_the_record_is_there(
    kafka: Kafka, topic: str
) -> None:
    """Without retries the producer reports the lost connection, and does not send again."""
    by = producer(kafka, **PLAIN, retries=0)
    with kafka.fault("Produce", topic=topic, action="cut-after-apply"):
        assert send(by, topic, [b"x"]) == ["_TRANSPORT"]
    assert kafka.topic(topic).values() == [b"x"]


@pytest.mark.parametrize("error", ["CORRUPT_MESSAGE", "KAFKA_STORAGE_ERROR"])
def test_damaged_records_and_failing_disks_are_retried(
    kafka: Kafka, topic: str, error: str
) -> None:
    """A checksum that fails at the broker, or a failing disk of it, costs no record."""
    with kafka.fault("Produce", topic=topic, error=error, times=2) as fault:
        assert send(producer(kafka, **PLAIN), topic, [b"x"]) == ["offset 0"]
    assert fault.hits == 2


def test_a_disk_that_fails_longer_than_the_retries_is_reported(kafka: Kafka, topic: str) -> None:
    """With too few retries the storage error reaches the application."""
    by = producer(kafka, **PLAIN, retries=1)
    with kafka.faults.disk_fails(topic=topic, always=True):
        assert send(by, topic, [b"x"]) == ["KAFKA_STORAGE_ERROR"]


def test_records_time_out_while_the_broker_is_silent(kafka: Kafka, topic: str) -> None:
    """Records that get no answer within message.timeout.ms fail with a time-out of the client."""
    by = producer(kafka, **PLAIN, message_timeout_ms=300)
    with kafka.hold("Produce", topic=topic):
        assert send(by, topic, [b"x", b"y"]) == ["_MSG_TIMED_OUT"] * 2


def test_pauses_between_retries_grow(kafka: Kafka, topic: str) -> None:
    """The pause doubles from retry.backoff.ms to retry.backoff.max.ms, give or take a fifth."""
    by = producer(kafka, **PLAIN, retry_backoff_ms=20, retry_backoff_max_ms=80)
    with (
        kafka.record() as log,
        kafka.fault("Produce", topic=topic, error="NOT_ENOUGH_REPLICAS", times=5),
    ):
        assert send(by, topic, [b"x"]) == ["offset 0"]
    at = [event.at_us / 1000 for event in log.requests("Produce", topic=topic)]
    pauses = [later - earlier for earlier, later in zip(at, at[1:], strict=False)]
    for pause, wanted in zip(pauses, (20, 40, 80, 80, 80), strict=True):
        assert pause >= 0.75 * wanted, pauses


def test_a_record_that_was_perhaps_appended_is_acknowledged_once(kafka: Kafka, topic: str) -> None:
    """NOT_ENOUGH_REPLICAS_AFTER_APPEND: the retry of an idempotent producer is no second record."""
    error = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
    by = producer(kafka, **IDEMPOTENT, batch_num_messages=1)
    values = [b"%d" % number for number in range(5)]
    with kafka.fault("Produce", topic=topic, error=error) as fault:
        reports = send(by, topic, values)
    assert fault.hits == 1
    assert kafka.topic(topic).values() == values
    assert not [each for each in reports if not each.startswith("offset")], reports


def test_a_timed_out_append_is_never_given_up_as_unsent(kafka: Kafka, topic: str) -> None:
    """REQUEST_TIMED_OUT three times for an appended batch: one record, reported as delivered."""
    with kafka.faults.append_timed_out(topic=topic, times=3) as fault:
        reports = send(producer(kafka, **IDEMPOTENT), topic, [b"x"])
    assert fault.hits == 3
    assert reports[0].startswith("offset")
    assert kafka.topic(topic).values() == [b"x"]


@senders
def test_a_repeated_batch_gets_the_first_offset(kafka: Kafka, topic: str, sender: Sender) -> None:
    """The answer to a batch that was appended before has the offset of its first append."""
    kafka.topic(topic).put(b"before")
    with kafka.faults.lost_acknowledgement(topic=topic):
        assert sender(kafka, topic, b"x", enable_idempotence=True) == 1
    assert kafka.topic(topic).values() == [b"before", b"x"]


def test_a_forgotten_producer_loses_and_doubles_nothing(kafka: Kafka, topic: str) -> None:
    """UNKNOWN_PRODUCER_ID: the producer sends the batch again, and the order stays."""
    by = producer(kafka, **IDEMPOTENT)
    assert send(by, topic, [b"1"]) == ["offset 0"]
    with kafka.faults.producer_forgotten(topic=topic):
        assert send(by, topic, [b"2"]) == ["offset 1"]
    assert send(by, topic, [b"3"]) == ["offset 2"]
    assert kafka.topic(topic).values() == [b"1", b"2", b"3"]


def test_a_gap_of_sequences_that_nothing_explains_is_fatal(kafka: Kafka, topic: str) -> None:
    """OUT_OF_ORDER_SEQUENCE_NUMBER for the oldest batch: the producer stops, loud."""
    by = producer(kafka, **IDEMPOTENT)
    assert send(by, topic, [b"1"]) == ["offset 0"]
    with kafka.fault("Produce", topic=topic, error="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        raised = failure(send, by, topic, [b"2"])
    assert raised.fatal()
    assert kafka.topic(topic).values() == [b"1"]


def test_batches_behind_a_refused_batch_keep_their_order(kafka: Kafka, topic: str) -> None:
    """Five requests in flight, the first refused: the leader refuses the gap, and the order stays.

    The first record makes the producer known to the leader. A leader takes any sequence from an
    unknown producer.
    """
    by = producer(kafka, **IDEMPOTENT, batch_num_messages=1)
    values = [b"%d" % number for number in range(20)]
    send(by, topic, values[:1])
    with kafka.fault("Produce", topic=topic, error="NOT_ENOUGH_REPLICAS", times=2):
        send(by, topic, values[1:])
    assert kafka.topic(topic).values() == values


def test_an_authorization_error_is_final(kafka: Kafka, topic: str) -> None:
    """A producer does not repeat a request that it is not allowed to make."""
    with kafka.fault("Produce", topic=topic, error="TOPIC_AUTHORIZATION_FAILED") as fault:
        assert send(producer(kafka), topic, [b"x"]) == ["TOPIC_AUTHORIZATION_FAILED"]
    assert fault.seen == 1


def test_a_flush_does_not_linger(kafka: Kafka, topic: str) -> None:
    """`flush` sends at once, although linger.ms is longer than the test may take."""
    by = producer(kafka, linger_ms=60_000, message_timeout_ms=120_000)
    assert send(by, topic, [b"x"]) == ["offset 0"]


def test_the_first_record_of_many_topics_waits_for_no_refresh(kafka: Kafka) -> None:
    """A producer learns of a new topic when it first sends to it: one Metadata for each topic."""
    names = [f"first-{number}" for number in range(10)]
    for name in names:
        kafka.create_topic(name, 1)
    by = producer(kafka)
    with kafka.record() as log:
        for name in names:
            assert send(by, name, [b"x"]) == ["offset 0"]
        assert log[-1].at_us < 5_000_000
    assert all(log.count("Metadata", topic=name) <= 2 for name in names)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_survive_a_retry(kafka: Kafka, topic: str, codec: str) -> None:
    """A compressed batch that is sent twice is stored once, and its reader gets each record."""
    by = producer(kafka, **IDEMPOTENT, compression_type=codec, linger_ms=20)
    values: list[Any] = [b"%d" % number * 100 for number in range(10)]
    with kafka.faults.lost_acknowledgement(topic=topic):
        send(by, topic, values)
    assert take(reader(kafka, topic), 10) == values


def test_fire_and_forget_goes_on_after_a_cut(kafka: Kafka, topic: str) -> None:
    """With acks=0 a lost request is a lost record, and later records arrive."""
    by = producer(kafka, acks=0)
    with kafka.fault("Produce", topic=topic, action="cut") as fault:
        send(by, topic, [b"lost"])
        fault.wait()
    for _ in range(500):
        send(by, topic, [b"x"])  # it may go to the connection that is broken
        if kafka.topic(topic).values():
            break
        by.poll(0.02)
    assert set(kafka.topic(topic).values()) == {b"x"}
