"""Prepared transactions: another producer may make the second phase of a two-phase commit."""

from __future__ import annotations

import pytest

from embedlog import IllegalState, PreparedTransaction, Producer, TimedOut, errors
from tests.client.faulty_cluster import FaultyCluster
from tests.client.producer.transactions.conftest import MakeProducer, committed
from tests.client.producer.transactions.test_errors import refuse_produce
from wire.error_codes import ErrorCode as E
from wire.schemas.end_txn import EndTxnRequest, EndTxnResponse
from wire.schemas.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

TWO_PHASES = {"transaction.two.phase.commit.enable": True}


@pytest.fixture
def preparer(make: MakeProducer, cluster: FaultyCluster) -> Producer:
    """An initialized producer, at a broker that allows two phases."""
    cluster.cluster.config.set_static("transaction.two.phase.commit.enable", "true")
    made = make(**TWO_PHASES, max_block_ms=500)
    made.init_transactions()
    (begun,) = cluster.of_kind(InitProducerIdRequest)
    assert begun.enable2_pc
    assert begun.transaction_timeout_ms == 2**31 - 1
    return made


@pytest.mark.parametrize(
    "hours",
    [
        pytest.param(1, id="longer than any time-out"),
        pytest.param(48, id="longer than a producer id is kept", marks=pytest.mark.slow),
    ],
)
def test_what_is_prepared_has_no_timeout(
    preparer: Producer, cluster: FaultyCluster, hours: int
) -> None:
    preparer.begin_transaction()
    preparer.send("out", b"prepared", partition=0)
    prepared = preparer.prepare_transaction()
    cluster.runtime.scheduler.run_for(hours * 3_600_000)
    preparer.complete_transaction(prepared)
    assert committed(cluster, "out") == [b"prepared"]


def test_a_broker_may_not_allow_two_phases(make: MakeProducer) -> None:
    with pytest.raises(errors.TransactionalIdAuthorizationFailed):
        make(**TWO_PHASES).init_transactions()


@pytest.mark.parametrize("ends", ["commits", "aborts"])
def test_a_prepared_transaction_ends_as_the_other_side_decides(
    preparer: Producer, cluster: FaultyCluster, ends: str
) -> None:
    preparer.begin_transaction()
    future = preparer.send("out", b"prepared", partition=0)
    prepared = preparer.prepare_transaction()
    assert future.done()
    assert future.result().offset == 0
    for call in (preparer.begin_transaction, preparer.prepare_transaction):
        with pytest.raises(IllegalState, match="a prepared transaction can only be ended"):
            call()
    with pytest.raises(IllegalState, match="a prepared transaction can only be ended"):
        preparer.send("out", b"more")
    assert committed(cluster, "out") == []
    stored = PreparedTransaction.parse(str(prepared) if ends == "commits" else "")
    preparer.complete_transaction(stored)
    assert committed(cluster, "out") == ([b"prepared"] if ends == "commits" else [])
    with pytest.raises(IllegalState, match="no transaction is prepared"):
        preparer.complete_transaction(prepared)
    with preparer.transaction() as transaction:
        transaction.send("out", b"next", partition=0)
    assert committed(cluster, "out")[-1] == b"next"


def test_a_record_that_fails_cannot_be_prepared(preparer: Producer, cluster: FaultyCluster) -> None:
    refuse_produce(cluster, E.INVALID_RECORD)
    preparer.begin_transaction()
    preparer.send("out", b"x", partition=0)
    with pytest.raises(errors.InvalidRecord) as caught:
        preparer.prepare_transaction()
    assert caught.value.remedy == "abort"
    preparer.abort_transaction()


def test_preparing_can_be_tried_again_when_it_took_too_long(
    preparer: Producer, cluster: FaultyCluster
) -> None:
    refuse_produce(cluster, E.NOT_ENOUGH_REPLICAS, count=1_000_000)
    preparer.begin_transaction()
    preparer.send("out", b"x", partition=0)
    with pytest.raises(TimedOut) as caught:
        preparer.prepare_transaction()
    assert caught.value.remedy == "retry"
    cluster.faults.pop()
    preparer.complete_transaction(preparer.prepare_transaction())
    assert committed(cluster, "out") == [b"x"]


def test_closing_leaves_what_is_prepared(preparer: Producer, cluster: FaultyCluster) -> None:
    preparer.begin_transaction()
    preparer.send("out", b"x", partition=0)
    preparer.prepare_transaction()
    preparer.close()
    assert cluster.of_kind(EndTxnRequest) == []


@pytest.mark.parametrize("transaction_version", ["v2"], indirect=True)
@pytest.mark.parametrize("ends", ["commits", "aborts"])
def test_an_heir_ends_what_was_prepared_before_it(
    make: MakeProducer, cluster: FaultyCluster, ends: str
) -> None:
    """The test answers as KIP-939 says: no broker at hand keeps prepared transactions."""
    cluster.answer(
        InitProducerIdRequest,
        lambda _request: InitProducerIdResponse(
            producer_id=1_000,
            producer_epoch=8,
            ongoing_txn_producer_id=1_000,
            ongoing_txn_producer_epoch=7,
        ),
    )
    ended = EndTxnResponse(producer_id=1_000, producer_epoch=9)
    cluster.answer(EndTxnRequest, lambda _request: ended)
    heir = make(**TWO_PHASES)
    heir.init_transactions(keep_prepared=True)
    assert cluster.of_kind(InitProducerIdRequest)[0].keep_prepared_txn
    with pytest.raises(IllegalState, match="a prepared transaction can only be ended"):
        heir.begin_transaction()
    heir.complete_transaction(PreparedTransaction.parse("1000:7" if ends == "commits" else ""))
    (request,) = cluster.of_kind(EndTxnRequest)
    assert (request.producer_id, request.producer_epoch) == (1_000, 8)
    assert request.committed == (ends == "commits")
    heir.begin_transaction()


def test_without_two_phases_nothing_is_prepared(make: MakeProducer) -> None:
    producer = make()
    producer.init_transactions()
    producer.begin_transaction()
    with pytest.raises(IllegalState, match=r"transaction\.two\.phase\.commit\.enable is false"):
        producer.prepare_transaction()
