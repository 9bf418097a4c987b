"""Transactions on demand: held at a state, fenced, expired, aborted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.client.producer.producer import Producer
from embedlog.errors import (
    ConfigError,
    IllegalState,
    KafkaError,
    TransactionalIdNotFound,
)
from embedlog.testing import Kafka, WaitTimedOut
from tests.testing.members import FAST


@pytest.fixture(params=[1, 3], ids=["one-broker", "three-brokers"])
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    topics = {"orders": {"partitions": 3, "replication_factor": request.param}}
    with Kafka(brokers=request.param, topics=topics, config=FAST) as made:
        yield made


def _begun(kafka: Kafka, transactional_id: str = "tx") -> Producer:
    producer = kafka.producer(transactional_id=transactional_id)
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(3):
        producer.send("orders", b"x", partition=number).result()
    return producer


def test_a_commit_is_held_before_its_markers(kafka: Kafka) -> None:
    producer = _begun(kafka)
    with kafka.transactions.hold("tx", at="PrepareCommit") as held:
        assert not held.is_holding
        producer.commit_transaction()
        held.wait()
        value = kafka.transaction("tx").value
        assert value.state == "PrepareCommit"
        assert len(value.partitions) == 3
        partition = kafka.partition("orders", 0)
        assert (partition.lso, partition.leo) == (0, 1)
        assert partition.producers[0].transaction_start == 0
        with pytest.raises(WaitTimedOut, match="transaction is open"):
            kafka.wait.records("orders", 1, isolation="read_committed", timeout=0.02)
    assert kafka.wait.transaction("tx", "CompleteCommit").epoch >= 0
    assert kafka.wait.records("orders", 3, isolation="read_committed") == 3
    assert kafka.partition("orders", 0).producers[0].transaction_start is None


def test_only_the_named_transaction_and_decision_are_held(kafka: Kafka) -> None:
    producer, other = _begun(kafka), _begun(kafka, "other")
    held = kafka.transactions.hold("tx", at="PrepareAbort")
    other.abort_transaction()
    kafka.wait.transaction("other", "CompleteAbort")
    producer.commit_transaction()
    kafka.wait.transaction("tx", "CompleteCommit")
    assert not held.is_holding
    producer.begin_transaction()
    producer.send("orders", b"x", partition=0).result()
    producer.abort_transaction()
    held.wait()
    assert kafka.transaction("tx").state == "PrepareAbort"
    held.release()
    held.release()
    kafka.wait.transaction("tx", "CompleteAbort")


def test_one_partition_lacks_the_marker_and_the_others_have_it(kafka: Kafka) -> None:
    producer = _begun(kafka)
    with kafka.transactions.hold("tx", partitions=[("orders", 1)]) as held:
        producer.commit_transaction()
        held.wait()
        kafka.wait.records("orders", 1, partition=0, isolation="read_committed")
        kafka.wait.records("orders", 1, partition=2, isolation="read_committed")
        assert kafka.partition("orders", 1).lso == 0
        assert kafka.transaction("tx").state == "PrepareCommit"
    kafka.wait.transaction("tx", "CompleteCommit")
    kafka.wait.records("orders", 3, isolation="read_committed")
    with pytest.raises(ConfigError, match="not at Ongoing"):
        kafka.transactions.hold("tx", at="Ongoing", partitions=[("orders", 1)])


def test_the_end_of_a_transaction_is_held_before_the_decision(kafka: Kafka) -> None:
    from threading import Thread

    producer = _begun(kafka)
    with kafka.transactions.hold("tx", at="Ongoing") as held:
        thread = Thread(target=producer.commit_transaction, daemon=True)
        thread.start()
        held.wait()
        assert kafka.transaction("tx").state == "Ongoing"
    thread.join(10)
    assert not thread.is_alive()
    kafka.wait.transaction("tx", "CompleteCommit")


def test_a_hold_that_nothing_reaches_says_so(kafka: Kafka) -> None:
    with (
        kafka.transactions.hold("tx") as held,
        pytest.raises(WaitTimedOut, match="'tx' held at PrepareCommit\n  seen last: .*not exist"),
    ):
        held.wait(timeout=0.02)
    with pytest.raises(ConfigError, match="did you mean 'PrepareCommit'"):
        kafka.transactions.hold("tx", at="PrepareComit")


def test_a_cluster_closes_with_a_held_transaction() -> None:
    with Kafka(topics={"orders": 3}) as kafka:
        producer = _begun(kafka)
        kafka.transactions.hold("tx").__enter__()
        producer.commit_transaction()


def test_a_fenced_producer_cannot_go_on(kafka: Kafka) -> None:
    producer = _begun(kafka)
    before = kafka.transaction("tx").epoch
    kafka.transaction("tx").fence()
    assert kafka.transaction("tx").epoch > before
    with pytest.raises(KafkaError):
        producer.commit_transaction()
    assert kafka.transaction("tx").state == "Empty"


def test_an_expired_transaction_is_aborted(kafka: Kafka) -> None:
    producer = _begun(kafka)
    kafka.transaction("tx").expire()
    assert kafka.wait.transaction("tx", "CompleteAbort")
    with pytest.raises(KafkaError):
        producer.commit_transaction()
    with pytest.raises(IllegalState, match="has no open transaction: its state is CompleteAbort"):
        kafka.transaction("tx").expire()


def test_a_transaction_is_aborted_in_place_of_its_producer(kafka: Kafka) -> None:
    producer = _begun(kafka)
    kafka.transaction("tx").abort()
    kafka.wait.transaction("tx", "CompleteAbort")
    with pytest.raises(KafkaError):
        producer.commit_transaction()


def test_transactional_ids_are_listed_and_checked(kafka: Kafka) -> None:
    assert kafka.transactions() == []
    assert str(kafka.transaction("payments")) == "transactional id 'payments' does not exist"
    _begun(kafka, "payments")
    (found,) = kafka.transactions()
    assert (found.transactional_id, found.state) == ("payments", "Ongoing")
    assert "'payments': Ongoing, producer" in str(found)
    assert found.timeout_ms == kafka.transaction("payments").timeout_ms > 0
    for name in ("fence", "expire", "abort"):
        with pytest.raises(TransactionalIdNotFound, match="did you mean 'payments'"):
            getattr(kafka.transaction("payment"), name)()
