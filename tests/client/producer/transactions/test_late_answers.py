"""Answers that arrive after the transaction that asked was aborted, or the producer closed."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import Producer
from embedlog.errors import KafkaError, TimedOut
from tests.client.faulty_cluster import FaultyCluster
from tests.client.held_answers import HeldAnswers
from tests.client.producer.transactions.conftest import MakeProducer, committed
from tests.client.producer.transactions.test_errors import GROUP, send_offsets
from wire.schemas.add_offsets_to_txn import AddOffsetsToTxnRequest
from wire.schemas.add_partitions_to_txn import AddPartitionsToTxnRequest
from wire.schemas.end_txn import EndTxnRequest
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.init_producer_id import InitProducerIdRequest
from wire.schemas.produce import ProduceRequest
from wire.schemas.txn_offset_commit import TxnOffsetCommitRequest

pytestmark = pytest.mark.usefixtures("has_groups")


@pytest.fixture
def late(cluster: FaultyCluster) -> HeldAnswers:
    return HeldAnswers(cluster)


def started(make: MakeProducer, **settings: Any) -> Producer:
    """A producer that waits at most 50 ms, in a transaction."""
    producer = make(max_block_ms=50, **settings)
    producer.init_transactions()
    producer.begin_transaction()
    return producer


def stored(cluster: FaultyCluster) -> int:
    with cluster.cluster.consumer(group_id=GROUP.group_id) as consumer:
        found = consumer.committed([("other", 0)])["other", 0]
    return -1 if found is None else found.offset


def abort_late(producer: Producer, late: HeldAnswers) -> None:
    """Abort while an answer is under way, let it arrive, then wait for the abort."""
    with pytest.raises(TimedOut):
        producer.abort_transaction()
    late.release()
    producer.abort_transaction()


def check_next(producer: Producer, cluster: FaultyCluster) -> None:
    """Check that the next transaction has its own records and offsets, and no others."""
    before = stored(cluster)
    with producer.transaction() as transaction:
        transaction.send("out", b"next", partition=1)
    assert committed(cluster, "out") == [b"next"]
    assert stored(cluster) == before == -1
    producer.begin_transaction()
    send_offsets(producer)
    producer.commit_transaction()
    assert stored(cluster) == 3


@pytest.mark.parametrize("transaction_version", ["v1"], indirect=True)
def test_partitions_that_are_added_during_an_abort_are_aborted(
    make: MakeProducer, cluster: FaultyCluster, late: HeldAnswers
) -> None:
    producer = started(make)
    late.hold(AddPartitionsToTxnRequest)
    future = producer.send("out", b"x", partition=0)
    with pytest.raises(TimedOut):
        producer.flush(0)
    abort_late(producer, late)
    assert future.exception() is not None
    check_next(producer, cluster)
    added = [
        [partition for topic in each.v3_and_below_topics for partition in topic.partitions]
        for each in cluster.of_kind(AddPartitionsToTxnRequest)
    ]
    assert added == [[0], [1]], "each transaction adds its own partitions"


@pytest.mark.parametrize(
    ("transaction_version", "kind"),
    [
        ("v1", AddOffsetsToTxnRequest),
        ("v1", TxnOffsetCommitRequest),
        ("v2", TxnOffsetCommitRequest),
    ],
    indirect=["transaction_version"],
)
def test_offsets_that_are_stored_during_an_abort_do_not_count(
    make: MakeProducer, cluster: FaultyCluster, late: HeldAnswers, kind: type[Any]
) -> None:
    producer = started(make)
    late.hold(kind)
    with pytest.raises(TimedOut):
        send_offsets(producer)
    abort_late(producer, late)
    check_next(producer, cluster)


def test_records_that_are_written_during_an_abort_do_not_count(
    make: MakeProducer, cluster: FaultyCluster, late: HeldAnswers
) -> None:
    producer = started(make)
    late.hold(ProduceRequest)
    future = producer.send("out", b"x", partition=0)
    with pytest.raises(TimedOut):
        producer.flush(0)
    abort_late(producer, late)
    assert future.result().offset == 0
    check_next(producer, cluster)


def test_the_answer_about_a_given_up_batch_does_not_touch_the_next_transaction(
    make: MakeProducer, cluster: FaultyCluster, late: HeldAnswers
) -> None:
    settings = {"delivery_timeout_ms": 1_000, "request_timeout_ms": 900, "linger_ms": 0}
    producer = started(make, **settings)
    late.hold(ProduceRequest)
    future = producer.send("out", b"x", partition=0)
    with pytest.raises(TimedOut):
        producer.flush(0)
    cluster.pass_time(1_100)
    assert isinstance(future.exception(), TimedOut)
    with pytest.raises(TimedOut):
        producer.commit_transaction()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send("out", b"y", partition=0)
    late.release()
    producer.commit_transaction()
    assert isinstance(future.exception(), TimedOut)
    assert committed(cluster, "out") == [b"y"]


@pytest.mark.parametrize(
    "kind", [FindCoordinatorRequest, InitProducerIdRequest, ProduceRequest, EndTxnRequest]
)
def test_answers_after_the_close_change_nothing(
    make: MakeProducer, cluster: FaultyCluster, late: HeldAnswers, kind: type[Any]
) -> None:
    late.hold(kind)
    producer = make(max_block_ms=50)
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("out", b"x", partition=0)
        producer.commit_transaction()
    except (KafkaError, TimedOut):
        assert len(late.held) == 1
    producer.close(0)
    count = len(cluster.requests)
    late.release()
    cluster.pass_time(1_000)
    assert len(cluster.requests) == count
