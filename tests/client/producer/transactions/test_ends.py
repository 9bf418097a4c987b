"""The end of a transaction: repeated, interrupted, refused, or asked of an older broker."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import Producer, TimedOut, TransactionAborted, errors
from embedlog.client.parse_settings import parse
from embedlog.client.producer.batch import ProducerBatch
from embedlog.client.producer.columns import Columns
from embedlog.client.producer.settings import complete
from embedlog.client.producer.transactions.coordinators import Coordinators
from embedlog.client.producer.transactions.status import TransactionState, TransactionStatus
from embedlog.client.producer.transactions.transactional_sequences import TransactionalSequences
from embedlog.client.settings import PRODUCER
from embedlog.errors import KafkaError
from embedlog.runtime.pending import Pending
from tests.client.faulty_cluster import PASS, FaultyCluster
from tests.client.held_answers import HeldAnswers
from tests.client.producer.transactions.conftest import MakeProducer, committed, tell_version
from tests.client.producer.transactions.test_errors import (
    FORGOTTEN,
    refuse_produce,
    send_offsets,
)
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode as E
from wire.schemas.add_offsets_to_txn import AddOffsetsToTxnRequest
from wire.schemas.end_txn import EndTxnRequest, EndTxnResponse
from wire.schemas.init_producer_id import InitProducerIdRequest
from wire.schemas.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from wire.schemas.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


def versions_of(cluster: FaultyCluster) -> dict[type[Any], int]:
    """Return a dict that will hold the version of the last request of each kind."""
    seen: dict[type[Any], int] = {}

    def note(request: Any) -> Any:
        assert cluster.context is not None
        seen[type(request)] = cluster.context.api_version
        return PASS

    cluster.faults.insert(0, note)
    return seen


def test_closing_aborts_a_transaction_that_has_failed(
    make: MakeProducer, cluster: FaultyCluster
) -> None:
    producer = make()
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("out", b"x", partition=0).result()
    refuse_produce(cluster, E.INVALID_RECORD)
    assert producer.send("out", b"y", partition=1).exception() is not None
    producer.close()
    assert [each.committed for each in cluster.of_kind(EndTxnRequest)] == [False]


def test_a_batch_that_is_fenced_during_an_abort_ends_the_producer(
    make: MakeProducer, cluster: FaultyCluster
) -> None:
    producer = make(max_block_ms=50)
    producer.init_transactions()
    producer.begin_transaction()
    held: Pending[Any] = Pending()
    cluster.answer(ProduceRequest, lambda _request: held)
    producer.send("out", b"x", partition=0)
    with pytest.raises(TimedOut):
        producer.flush(0)
    with pytest.raises(TimedOut):
        producer.abort_transaction()
    (topic,) = cluster.of_kind(ProduceRequest)[0].topic_data
    each = PartitionProduceResponse(index=0, error_code=E.PRODUCER_FENCED)
    refused = TopicProduceResponse(
        name=topic.name, topic_id=topic.topic_id, partition_responses=[each]
    )
    held.complete(ProduceResponse(responses=[refused]))
    with pytest.raises(errors.ProducerFenced) as caught:
        producer.abort_transaction()
    assert caught.value.remedy == "close"
    assert cluster.of_kind(EndTxnRequest) == []


def test_a_record_of_the_moment_of_the_end_does_not_hold_the_end_up(
    make: MakeProducer, cluster: FaultyCluster
) -> None:
    held: Pending[Any] = Pending()

    def serialize(value: bytes) -> bytes:
        if value == b"late":
            cluster.answer(EndTxnRequest, lambda _request: held)
            with pytest.raises(TimedOut):
                producer.commit_transaction()  # as another thread might, just then
        return value

    producer = make(value_serializer=serialize, max_block_ms=300)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("out", b"in time", partition=0)
    late = producer.send("out", b"late", partition=0)
    held.complete(EndTxnResponse(error_code=E.NOT_COORDINATOR))
    producer.commit_transaction()
    with pytest.raises(TransactionAborted, match="was ended while the record was sent"):
        late.result()
    assert committed(cluster, "out") == [b"in time"]


def test_a_batch_is_not_sent_once_the_end_was_asked_for(cluster: FaultyCluster) -> None:
    settings = complete(parse(PRODUCER, {"transactional.id": "me"}), in_process=False)
    status = TransactionStatus(settings)
    sequences = TransactionalSequences(status, Coordinators(cluster.connect()))
    sequences.producer_id, sequences.producer_epoch = 1, 0
    for state in (TransactionState.INITIALIZING, TransactionState.READY):
        status.transition_to(state)
    status.transition_to(TransactionState.IN_TRANSACTION)
    status.open.is_v2 = True
    records = Columns([b""], [0])
    delivery: Any = None
    batch = ProducerBatch("out", 0, delivery, records, created_ms=0, size=0, size_limit=0)
    batch.close()
    status.transition_to(TransactionState.COMMITTING)
    assert sequences.may_drain(batch)
    status.open.is_ending = True
    assert not sequences.may_drain(batch)


@pytest.mark.parametrize("transaction_version", ["v1"], indirect=True)
def test_a_producer_asks_for_the_next_epoch_of_its_own(
    producer: Producer, cluster: FaultyCluster
) -> None:
    """Without its id it would fence a younger producer instead of being refused."""
    producer.begin_transaction()
    producer.send("out", b"x", partition=1).result()
    refuse_produce(cluster, E.INVALID_RECORD)
    assert producer.send("out", b"x", partition=0).exception() is not None
    producer.abort_transaction()
    (ended,), (asked,) = cluster.of_kind(EndTxnRequest), cluster.of_kind(InitProducerIdRequest)
    assert asked.producer_id == ended.producer_id >= 0
    assert asked.producer_epoch == ended.producer_epoch


def test_two_phases_are_asked_for_in_a_version_that_has_them(
    make: MakeProducer, cluster: FaultyCluster
) -> None:
    cluster.cluster.config.set_static("transaction.two.phase.commit.enable", "true")
    cluster.versions[ApiKey.INIT_PRODUCER_ID] = (0, 6)
    seen = versions_of(cluster)
    make(**{"transaction.two.phase.commit.enable": True}).init_transactions()
    assert seen[InitProducerIdRequest] == 6


def test_an_older_coordinator_gets_versions_that_it_serves(cluster: FaultyCluster) -> None:
    cluster.versions.update({ApiKey.END_TXN: (0, 2), ApiKey.INIT_PRODUCER_ID: (0, 4)})
    tell_version(cluster, 1)
    seen = versions_of(cluster)
    with Producer(cluster, transactional_id="me") as producer:
        producer.init_transactions()
        with producer.transaction() as transaction:
            transaction.send("out", b"x", partition=0)
    assert (seen[EndTxnRequest], seen[InitProducerIdRequest]) == (2, 4)


def test_a_broker_that_cannot_raise_epochs_is_not_asked_to(cluster: FaultyCluster) -> None:
    cluster.versions[ApiKey.INIT_PRODUCER_ID] = (0, 2)
    tell_version(cluster, 1)
    with Producer(cluster, transactional_id="me") as producer:
        producer.init_transactions()
        cluster.fail(EndTxnRequest, errors.Network("gone"))
        for number in range(2):
            with producer.transaction() as transaction:
                transaction.send("out", b"%d" % number, partition=0)
    assert len(cluster.of_kind(InitProducerIdRequest)) == 1
    assert committed(cluster, "out") == [b"0", b"1"]


@pytest.mark.usefixtures("has_groups")
def test_offsets_that_no_retry_can_store_are_not_sent_again(
    producer: Producer, cluster: FaultyCluster
) -> None:
    codes = (E.COORDINATOR_LOAD_IN_PROGRESS, E.GROUP_AUTHORIZATION_FAILED)

    def refuse(_request: Any) -> TxnOffsetCommitResponse:
        topic = TxnOffsetCommitResponseTopic(
            name="other",
            partitions=[
                TxnOffsetCommitResponsePartition(partition_index=index, error_code=code)
                for index, code in enumerate(codes)
            ],
        )
        return TxnOffsetCommitResponse(topics=[topic])

    cluster.answer(TxnOffsetCommitRequest, refuse, count=2)
    producer.begin_transaction()
    with pytest.raises(errors.GroupAuthorizationFailed):
        send_offsets(producer)
    assert len(cluster.of_kind(TxnOffsetCommitRequest)) == 1


def test_a_request_that_is_refused_again_and_again_is_sent_less_often(
    make: MakeProducer, cluster: FaultyCluster
) -> None:
    cluster.refuse(InitProducerIdRequest, E.COORDINATOR_LOAD_IN_PROGRESS, count=4)
    began_ms = cluster.runtime.clock.monotonic_ms()
    make(retry_backoff_ms=100, retry_backoff_max_ms=1_000).init_transactions()
    took_ms = cluster.runtime.clock.monotonic_ms() - began_ms
    assert took_ms >= 0.8 * (100 + 200 + 400 + 800)


def test_a_close_waits_no_longer_than_a_call_for_its_abort(
    make: MakeProducer, cluster: FaultyCluster
) -> None:
    producer = make(max_block_ms=50)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("out", b"x", partition=0).result()
    cluster.silence(EndTxnRequest)
    began_ms = cluster.runtime.clock.monotonic_ms()
    producer.close(20)
    assert cluster.runtime.clock.monotonic_ms() - began_ms < 1_000


@pytest.mark.parametrize("transaction_version", ["v1"], indirect=True)
@pytest.mark.parametrize("code", FORGOTTEN)
def test_a_forgotten_producer_asks_for_another_id_after_the_abort(
    producer: Producer, cluster: FaultyCluster, code: int
) -> None:
    cluster.refuse(AddOffsetsToTxnRequest, code)
    producer.begin_transaction()
    with pytest.raises(KafkaError):
        send_offsets(producer)
    producer.abort_transaction()
    assert len(cluster.of_kind(InitProducerIdRequest)) == 1


def test_a_record_that_is_refused_during_a_commit_does_not_end_it(
    make: MakeProducer, cluster: FaultyCluster
) -> None:
    late = HeldAnswers(cluster)

    def serialize(value: bytes) -> bytes:
        if value != b"late":
            return value
        late.hold(EndTxnRequest)
        with pytest.raises(TimedOut):
            producer.commit_transaction()  # as another thread might, just then
        return bytes(2_000_000)

    producer = make(value_serializer=serialize, max_block_ms=300)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("out", b"in time", partition=0)
    refused = producer.send("out", b"late", partition=0)
    assert isinstance(refused.exception(), errors.MessageTooLarge)
    late.release()
    producer.commit_transaction()
    assert committed(cluster, "out") == [b"in time"]
