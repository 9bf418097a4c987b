"""Transactions whose coordinator, partitions or producer fail."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition

from embedlog.testing import Kafka
from tests.testing.scenarios.clients import (
    SECONDS,
    committed,
    consumer,
    failure,
    producer,
    reader,
    send,
    take,
    transactional,
)

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore:Producer abort_transaction failed during close"),
]


@pytest.fixture
def name(topic: str) -> str:
    """A transactional id of the test's own."""
    return f"id-{topic}"


def begun(kafka: Kafka, name: str, topic: str, value: bytes = b"x", **settings: Any) -> Producer:
    """Return a producer with an open transaction that has one record."""
    by = transactional(kafka, name, **settings)
    by.begin_transaction()
    assert send(by, topic, [value])[0].startswith("offset")
    return by


def goes_on(by: Producer, kafka: Kafka, topic: str) -> None:
    """Fail unless the producer can commit one more transaction."""
    with kafka.assert_produces(topic, count=1) as new:
        by.begin_transaction()
        by.produce(topic, b"more")
        by.commit_transaction(SECONDS)
    assert new.values() == [b"more"]


# Errors that the producer hides


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        ("InitProducerId", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("InitProducerId", "NOT_COORDINATOR"),
        ("InitProducerId", "CONCURRENT_TRANSACTIONS"),
        ("AddPartitionsToTxn", "NOT_COORDINATOR"),
        ("AddPartitionsToTxn", "CONCURRENT_TRANSACTIONS"),
        ("AddPartitionsToTxn", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("AddOffsetsToTxn", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("AddOffsetsToTxn", "CONCURRENT_TRANSACTIONS"),
        ("TxnOffsetCommit", "NOT_COORDINATOR"),
        ("TxnOffsetCommit", "COORDINATOR_NOT_AVAILABLE"),
        ("TxnOffsetCommit", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("EndTxn", "COORDINATOR_NOT_AVAILABLE"),
        ("EndTxn", "NOT_COORDINATOR"),
    ],
)
def test_a_transaction_hides_errors_that_pass(
    kafka: Kafka, topic: str, name: str, api: str, error: str
) -> None:
    """The producer repeats the request; records and offsets are committed, without a duplicate."""
    group = consumer(kafka, topic).consumer_group_metadata()
    with kafka.fault(api, client_id=name, error=error, times=2) as fault:
        by = begun(kafka, name, topic, client_id=name)
        by.send_offsets_to_transaction([TopicPartition(topic, 0, 7)], group, SECONDS)
        by.commit_transaction(SECONDS)
    assert fault.hits == 2
    assert kafka.topic(topic).values() == [b"x"]
    assert committed(kafka, topic, topic) == 7


@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_a_lost_answer_to_the_end_is_no_second_end(
    kafka: Kafka, topic: str, name: str, end: str
) -> None:
    """The answer to EndTxn is lost: the producer asks again, and the first decision counts."""
    by = begun(kafka, name, topic, b"first")
    with kafka.fault("EndTxn", transactional_id=name, action="cut-after-apply"):
        getattr(by, end)(SECONDS)
    assert kafka.topic(topic).values() == ([b"first"] if end.startswith("commit") else [])
    goes_on(by, kafka, topic)


def test_partitions_that_are_added_one_by_one_all_arrive(kafka: Kafka, name: str) -> None:
    """Slow answers to AddPartitionsToTxn do not leave a later partition behind."""
    kafka.create_topic(name, 3)
    by = transactional(kafka, name)
    by.begin_transaction()
    delay: Any = {"action": "delay", "seconds": 0.05, "times": 3, "may_miss": True}
    with kafka.fault("AddPartitionsToTxn", transactional_id=name, **delay) as slow:
        for partition in range(3):
            by.produce(name, b"%d" % partition, partition=partition)
            if partition < 2:
                slow.wait(partition + 1)
        by.commit_transaction(SECONDS)
    assert kafka.topic(name).values() == [b"0", b"1", b"2"]


def test_no_offsets_to_send_is_a_success(kafka: Kafka, topic: str, name: str) -> None:
    """A list without a valid offset needs no request, and may be given again."""
    group = consumer(kafka, topic).consumer_group_metadata()
    by = transactional(kafka, name, client_id=name)
    by.begin_transaction()
    with kafka.record() as log:
        for _ in range(2):
            by.send_offsets_to_transaction([TopicPartition(topic, 0)], group, SECONDS)
    assert not log.requests("AddOffsetsToTxn", client_id=name)
    by.commit_transaction(SECONDS)


# Errors after which the application must abort


def lose_a_batch(kafka: Kafka, by: Producer, topic: str) -> None:
    """Let the leader forget the producer, which then needs a new epoch."""
    with kafka.faults.producer_forgotten(topic=topic):
        assert send(by, topic, [b"lost"]) == ["UNKNOWN_PRODUCER_ID"]


def test_a_forgotten_producer_makes_the_transaction_abortable(
    kafka: Kafka, topic: str, name: str
) -> None:
    """UNKNOWN_PRODUCER_ID: the commit asks for an abort, which takes a new epoch and heals."""
    by = begun(kafka, name, topic)
    lose_a_batch(kafka, by, topic)
    raised = failure(by.commit_transaction, SECONDS)
    assert raised.txn_requires_abort()
    by.abort_transaction(SECONDS)
    assert kafka.topic(topic).values() == []
    goes_on(by, kafka, topic)


def test_a_gap_behind_refused_batches_makes_the_transaction_abortable(
    kafka: Kafka, topic: str, name: str
) -> None:
    """Three batches in flight, two refused, the third a gap: no new epoch in the transaction."""
    with kafka.toxic(latency=0.2, direction="to-client"):  # so that all three are in flight
        by = begun(kafka, name, topic, batch_num_messages=1)
        with (
            kafka.fault("Produce", topic=topic, error="NOT_LEADER_OR_FOLLOWER", times=2),
            kafka.fault("Produce", topic=topic, error="OUT_OF_ORDER_SEQUENCE_NUMBER"),
            kafka.record() as log,
        ):
            for value in (b"1", b"2", b"3"):
                by.produce(topic, value, partition=0)
            raised = failure(by.commit_transaction, SECONDS)
    assert raised.txn_requires_abort()
    assert not log.count("InitProducerId")
    by.abort_transaction(SECONDS)
    assert kafka.topic(topic).values() == []
    goes_on(by, kafka, topic)


@pytest.mark.parametrize("error", ["TOPIC_AUTHORIZATION_FAILED", "INVALID_RECORD"])
def test_a_refused_record_makes_the_transaction_abortable(
    kafka: Kafka, topic: str, name: str, error: str
) -> None:
    """A record that the leader will never take: its report and the commit tell the error."""
    by = begun(kafka, name, topic)
    with kafka.fault("Produce", topic=topic, error=error):
        assert send(by, topic, [b"refused"]) == [error]
    raised = failure(by.commit_transaction, SECONDS)
    assert raised.name() == error
    assert raised.txn_requires_abort()
    by.abort_transaction(SECONDS)
    assert kafka.topic(topic).values() == []


@pytest.mark.parametrize("error", ["TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"])
def test_a_forbidden_part_makes_the_transaction_abortable(
    kafka: Kafka, topic: str, name: str, error: str
) -> None:
    """A topic or a group that the producer may not use ends this transaction, not the producer."""
    kafka.create_topic(name, 1)
    by = begun(kafka, name, topic)
    api = "AddPartitionsToTxn" if error.startswith("TOPIC") else "AddOffsetsToTxn"
    with kafka.fault(api, transactional_id=name, error=error):
        if api == "AddPartitionsToTxn":
            by.produce(name, b"x")
            raised = failure(by.commit_transaction, SECONDS)
        else:
            group = consumer(kafka, topic).consumer_group_metadata()
            offsets = [TopicPartition(topic, 0, 1)]
            raised = failure(by.send_offsets_to_transaction, offsets, group, SECONDS)
    assert raised.name() == error
    assert raised.txn_requires_abort()
    by.abort_transaction(SECONDS)
    goes_on(by, kafka, topic)


def test_an_abort_is_sent_although_an_earlier_request_was_repeated(
    kafka: Kafka, topic: str, name: str
) -> None:
    """A repeated AddOffsetsToTxn does not keep the producer from sending EndTxn."""
    group = consumer(kafka, topic).consumer_group_metadata()
    by = begun(kafka, name, topic)
    with kafka.fault("AddOffsetsToTxn", error="NOT_COORDINATOR"), kafka.record() as log:
        by.send_offsets_to_transaction([TopicPartition(topic, 0, 1)], group, SECONDS)
        by.abort_transaction(SECONDS)
    assert log.count("EndTxn") == 1
    assert committed(kafka, topic, topic) == -1001
    goes_on(by, kafka, topic)


def test_a_record_that_timed_out_is_not_committed(kafka: Kafka, topic: str, name: str) -> None:
    """A record that the client gave up before it was sent: the commit must not succeed."""
    by = transactional(kafka, name, message_timeout_ms=300, transaction_timeout_ms=5_000)
    by.begin_transaction()
    with kafka.hold("AddPartitionsToTxn", transactional_id=name):
        assert send(by, topic, [b"x"]) == ["_MSG_TIMED_OUT"]
        raised = failure(by.commit_transaction, SECONDS)
    assert raised.txn_requires_abort()
    by.abort_transaction(SECONDS)
    assert kafka.topic(topic).values() == []
    goes_on(by, kafka, topic)


def test_a_commit_that_waits_for_records_can_be_repeated(
    kafka: Kafka, topic: str, name: str
) -> None:
    """The commit's time passes while records are in flight: it is retriable, and then succeeds."""
    by = transactional(kafka, name)
    by.begin_transaction()
    with kafka.hold("Produce", topic=topic):
        by.produce(topic, b"x")
        raised = failure(by.commit_transaction, 0.2)
        assert raised.retriable(), raised
    by.commit_transaction(SECONDS)
    assert kafka.topic(topic).values() == [b"x"]
    goes_on(by, kafka, topic)


# Errors that end the producer


@pytest.mark.parametrize("error", ["PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"])
@pytest.mark.parametrize("api", ["EndTxn", "AddPartitionsToTxn", "AddOffsetsToTxn"])
def test_a_fenced_producer_is_finished(
    kafka: Kafka, topic: str, name: str, api: str, error: str
) -> None:
    """The coordinator says that another producer has the id: the error is fatal."""
    group = consumer(kafka, topic).consumer_group_metadata()
    by = transactional(kafka, name)
    by.begin_transaction()
    with (
        kafka.fault(api, transactional_id=name, error=error),
        pytest.raises(KafkaException) as raised,
    ):
        by.produce(topic, b"x")
        by.send_offsets_to_transaction([TopicPartition(topic, 0, 1)], group, SECONDS)
        by.commit_transaction(SECONDS)
    assert raised.value.args[0].fatal(), raised.value
    assert raised.value.args[0].name() == "_FENCED"
    assert kafka.topic(topic).values() == []


@pytest.mark.parametrize("error", ["PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"])
def test_a_producer_that_is_fenced_when_it_recovers_is_finished(
    kafka: Kafka, topic: str, name: str, error: str
) -> None:
    """A lost batch needs a new epoch; another producer has taken the id: the error is fatal."""
    by = begun(kafka, name, topic)
    with kafka.fault("InitProducerId", transactional_id=name, error=error):
        lose_a_batch(kafka, by, topic)
        assert failure(by.commit_transaction, SECONDS).txn_requires_abort()
        raised = failure(by.abort_transaction, SECONDS)
    assert raised.fatal(), raised
    assert raised.name() == "_FENCED"


@pytest.mark.parametrize(
    "error", ["TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"]
)
def test_a_forbidden_id_is_told_at_once(kafka: Kafka, name: str, error: str) -> None:
    """`init_transactions` fails with the broker's error, and does not wait for its time-out."""
    by = producer(kafka, transactional_id=name)
    with kafka.fault("InitProducerId", transactional_id=name, error=error):
        raised = failure(by.init_transactions, SECONDS)
    assert raised.name() == error
    assert raised.fatal()


def test_a_newer_producer_fences_the_older(kafka: Kafka, topic: str, name: str) -> None:
    """Two producers with one id: the older cannot commit, and its records stay invisible."""
    old = begun(kafka, name, topic, b"old")
    new = begun(kafka, name, topic, b"new")
    raised = failure(old.commit_transaction, SECONDS)
    assert raised.name() == "_FENCED"
    new.commit_transaction(SECONDS)
    assert kafka.topic(topic).values() == [b"new"]


# Calls that take too long


def test_the_wait_for_an_id_ends_in_time_and_can_be_resumed(kafka: Kafka, name: str) -> None:
    """`init_transactions` keeps its time-out, is retriable, and goes on when it is called again."""
    by = producer(kafka, transactional_id=name)
    with kafka.hold("InitProducerId", transactional_id=name) as hold:
        raised = failure(by.init_transactions, 0.2)
        assert raised.retriable(), raised
        hold.wait()
    by.init_transactions(SECONDS)


@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_an_end_that_timed_out_is_resumed(kafka: Kafka, topic: str, name: str, end: str) -> None:
    """A commit or an abort that timed out goes on when it is called again, with one EndTxn."""
    by = begun(kafka, name, topic)
    with kafka.record() as log:
        with kafka.hold("EndTxn", transactional_id=name) as hold:
            raised = failure(getattr(by, end), 0.2)
            hold.wait()
            assert raised.name() == "_TIMED_OUT"
            assert raised.retriable()
        getattr(by, end)(SECONDS)
    assert log.count("EndTxn") == 1
    assert kafka.topic(topic).values() == ([b"x"] if end.startswith("commit") else [])


def test_an_error_after_the_time_out_reaches_the_resumed_call(
    kafka: Kafka, topic: str, name: str
) -> None:
    """The commit timed out and was then refused: the second call tells the refusal."""
    by = begun(kafka, name, topic)
    with kafka.hold("EndTxn", transactional_id=name) as hold:
        fence = kafka.fault("EndTxn", transactional_id=name, error="PRODUCER_FENCED")
        assert failure(by.commit_transaction, 0.2).retriable()
        hold.wait()
    assert failure(by.commit_transaction, SECONDS).name() == "_FENCED"
    fence.remove()


def test_an_abort_waits_for_a_new_epoch(kafka: Kafka, topic: str, name: str) -> None:
    """The new epoch after a lost batch is slow: the abort times out, and succeeds when resumed."""
    by = begun(kafka, name, topic)
    lose_a_batch(kafka, by, topic)
    with kafka.hold("InitProducerId", transactional_id=name) as hold:
        assert failure(by.abort_transaction, 0.2).retriable()
        hold.wait()
    by.abort_transaction(SECONDS)
    goes_on(by, kafka, topic)


@pytest.mark.parametrize("other", ["commit_transaction", "abort_transaction"])
def test_a_second_call_at_the_same_time_is_refused(
    kafka: Kafka, topic: str, name: str, other: str
) -> None:
    """While one thread commits, a call of another thread fails, and harms nothing."""
    by = begun(kafka, name, topic)
    with kafka.hold("EndTxn", transactional_id=name) as hold:
        first = threading.Thread(target=by.commit_transaction, args=(SECONDS,))
        first.start()
        hold.wait()
        raised = failure(getattr(by, other), SECONDS)
    first.join()
    assert raised.name() in ("_CONFLICT", "_STATE", "_PREV_IN_PROGRESS"), raised
    assert kafka.topic(topic).values() == [b"x"]


# What others see


@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_offsets_of_a_transaction_are_committed_with_it(
    kafka: Kafka, topic: str, name: str, end: str
) -> None:
    """Offsets in a transaction are the group's after a commit, and nobody's after an abort."""
    group = consumer(kafka, topic).consumer_group_metadata()
    by = begun(kafka, name, topic)
    by.send_offsets_to_transaction([TopicPartition(topic, 0, 3)], group, SECONDS)
    getattr(by, end)(SECONDS)
    assert committed(kafka, topic, topic) == (3 if end.startswith("commit") else -1001)


def test_aborted_records_are_for_uncommitted_readers_alone(
    kafka: Kafka, topic: str, name: str
) -> None:
    """A reader with read_committed skips aborted records, one with read_uncommitted gets them."""
    by = begun(kafka, name, topic, b"aborted")
    by.abort_transaction(SECONDS)
    goes_on(by, kafka, topic)
    assert take(reader(kafka, topic), 1) == [b"more"]
    uncommitted = reader(kafka, topic, isolation_level="read_uncommitted")
    assert take(uncommitted, 2) == [b"aborted", b"more"]


def test_the_end_of_the_log_is_the_last_stable_offset(kafka: Kafka, topic: str, name: str) -> None:
    """During a transaction a committed reader's end is before its first record."""
    by = begun(kafka, name, topic)
    place = TopicPartition(topic, 0)
    uncommitted = consumer(kafka, isolation_level="read_uncommitted")
    assert consumer(kafka).get_watermark_offsets(place, SECONDS) == (0, 0)
    assert uncommitted.get_watermark_offsets(place, SECONDS) == (0, 1)
    by.commit_transaction(SECONDS)
    assert consumer(kafka).get_watermark_offsets(place, SECONDS) == (0, 2)


def test_a_restarted_application_ends_the_transaction_of_its_crashed_self(
    kafka: Kafka, topic: str, name: str
) -> None:
    """A new producer with the id waits while the old transaction is aborted, and then works."""
    crashed = kafka.topic(topic).transaction(name)
    crashed.put(b"crashed")
    by = transactional(kafka, name)
    goes_on(by, kafka, topic)
    assert kafka.topic(topic).values() == [b"more"]


def test_offsets_that_are_not_decided_are_waited_for(kafka: Kafka, topic: str, name: str) -> None:
    """`committed` asks again while the group's offsets belong to an open transaction."""
    group = consumer(kafka, topic).consumer_group_metadata()
    by = begun(kafka, name, topic)
    by.send_offsets_to_transaction([TopicPartition(topic, 0, 3)], group, SECONDS)
    found: list[int] = []
    asking = threading.Thread(target=lambda: found.append(committed(kafka, topic, topic)))
    with kafka.fault("OffsetFetch", group=topic, action="delay", seconds=0.01, times=2) as seen:
        asking.start()
        seen.wait(2)
    by.commit_transaction(SECONDS)
    asking.join()
    assert found == [3]


def test_a_partition_begins_only_at_a_decided_offset(kafka: Kafka, topic: str) -> None:
    """UNSTABLE_OFFSET_COMMIT for an assigned partition: the consumer waits, and begins right."""
    kafka.topic(topic).fill(5, make=lambda number: b"%d" % number)
    kafka.commit(topic, {(topic, 0): 3})
    by = consumer(kafka, topic)
    with kafka.faults.offsets_unstable(group=topic, times=3) as fault:
        by.assign([TopicPartition(topic, 0)])
        assert take(by, 2) == [b"3", b"4"]
    assert fault.hits == 3


def test_a_broker_without_transactions_is_told_apart(kafka: Kafka, name: str) -> None:
    """The broker does not offer InitProducerId: the error is fatal, and comes at once."""

    def without_ids(_request: Any, response: Any) -> Any:
        response.api_keys = [each for each in response.api_keys if each.api_key != 22]
        return response

    with kafka.fault("ApiVersions", client_id=name, answer=without_ids, always=True):
        by = producer(kafka, transactional_id=name, client_id=name)
        raised = failure(by.init_transactions, SECONDS)
    assert raised.name() == "_UNSUPPORTED_FEATURE"
    assert raised.fatal()
