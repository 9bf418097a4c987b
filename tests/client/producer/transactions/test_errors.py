"""Every error of every request of a transaction: retried, to be aborted, or to be closed."""

from __future__ import annotations

from typing import Any

import pytest

import embedlog
from embedlog import (
    ConsumerGroupMetadata,
    Producer,
    ProducerRecord,
    TransactionAborted,
    errors,
)
from embedlog.errors import KafkaError, error_for
from tests.client.faulty_cluster import FaultyCluster
from tests.client.producer.transactions.conftest import MakeProducer, committed, names
from wire.error_codes import ErrorCode as E
from wire.schemas.add_offsets_to_txn import AddOffsetsToTxnRequest
from wire.schemas.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from wire.schemas.end_txn import EndTxnRequest
from wire.schemas.find_coordinator import Coordinator, FindCoordinatorRequest
from wire.schemas.find_coordinator import FindCoordinatorResponse as Found
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

RETRIED = (E.COORDINATOR_LOAD_IN_PROGRESS, E.CONCURRENT_TRANSACTIONS)
LOOKED_UP = (E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR)
FENCED = (E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH)
FATAL = (*FENCED, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, E.INVALID_TXN_STATE)
FORGOTTEN = (E.UNKNOWN_PRODUCER_ID, E.INVALID_PRODUCER_ID_MAPPING)

GROUP = ConsumerGroupMetadata("readers")


def send_offsets(producer: Producer) -> None:
    producer.send_offsets_to_transaction({("other", 0): 3}, GROUP)


def check(producer: Producer, call: Any, remedy: str | None, code: int) -> None:
    """Check that `call` works in the end, or raises an error whose remedy helps."""
    if remedy is None:
        call()
        return
    with pytest.raises(KafkaError) as caught:
        call()
    assert caught.value.remedy == remedy
    expected = E.PRODUCER_FENCED if code in FENCED else code
    assert caught.value.code == expected
    with pytest.raises(KafkaError) as again:
        producer.commit_transaction()
    assert (again.value.code, again.value.remedy) == (expected, remedy)
    if remedy == "close":
        with pytest.raises(type(caught.value)):
            producer.abort_transaction()
    else:
        producer.abort_transaction()
        with producer.transaction() as transaction:
            transaction.send("out", b"afterwards", partition=0)


@pytest.mark.parametrize(
    ("code", "is_fatal"),
    [
        *((code, False) for code in (*RETRIED, *LOOKED_UP)),
        *((code, True) for code in FATAL),
        (E.CLUSTER_AUTHORIZATION_FAILED, True),
        (E.INVALID_TRANSACTION_TIMEOUT, True),
        (E.UNKNOWN_SERVER_ERROR, True),
    ],
)
def test_errors_of_init_producer_id(
    make: MakeProducer, cluster: FaultyCluster, code: int, is_fatal: bool
) -> None:
    producer = make()
    cluster.refuse(InitProducerIdRequest, code)
    if not is_fatal:
        producer.init_transactions()
        lookups = len(cluster.of_kind(FindCoordinatorRequest))
        assert lookups == (2 if code in LOOKED_UP else 1)
        return
    with pytest.raises(KafkaError) as caught:
        producer.init_transactions()
    assert caught.value.remedy == "close"
    with pytest.raises(type(caught.value)):
        producer.begin_transaction()


@pytest.mark.parametrize("transaction_version", ["v1"], indirect=True)
@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        *((code, None) for code in (*RETRIED, *LOOKED_UP, E.UNKNOWN_TOPIC_OR_PARTITION)),
        *((code, "close") for code in FATAL),
        *((code, "abort") for code in FORGOTTEN),
        (E.TRANSACTION_ABORTABLE, "abort"),
        (E.TOPIC_AUTHORIZATION_FAILED, "abort"),
        (E.UNKNOWN_SERVER_ERROR, "abort"),
    ],
)
def test_errors_of_add_partitions_to_txn(
    producer: Producer, cluster: FaultyCluster, code: int, remedy: str | None
) -> None:
    def refuse(_request: Any) -> AddPartitionsToTxnResponse:
        results = [
            AddPartitionsToTxnPartitionResult(
                partition_index=0, partition_error_code=E.OPERATION_NOT_ATTEMPTED
            ),
            AddPartitionsToTxnPartitionResult(partition_index=1, partition_error_code=code),
        ]
        topic = AddPartitionsToTxnTopicResult(name="out", results_by_partition=results)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[topic])

    cluster.answer(AddPartitionsToTxnRequest, refuse)
    producer.begin_transaction()
    futures = [producer.send("out", b"x", partition=each) for each in (0, 1)]
    check(producer, producer.commit_transaction, remedy, code)
    assert ([each.exception() for each in futures] == [None, None]) == (remedy is None)
    if remedy == "abort":
        assert committed(cluster, "out") == [b"afterwards"]


@pytest.mark.parametrize("transaction_version", ["v1"], indirect=True)
@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        *((code, None) for code in (*RETRIED, *LOOKED_UP)),
        *((code, "close") for code in FATAL),
        *((code, "abort") for code in FORGOTTEN),
        (E.TRANSACTION_ABORTABLE, "abort"),
        (E.GROUP_AUTHORIZATION_FAILED, "abort"),
        (E.UNKNOWN_SERVER_ERROR, "close"),
    ],
)
@pytest.mark.usefixtures("has_groups")
def test_errors_of_add_offsets_to_txn(
    producer: Producer, cluster: FaultyCluster, code: int, remedy: str | None
) -> None:
    cluster.refuse(AddOffsetsToTxnRequest, code)
    producer.begin_transaction()
    check(producer, lambda: send_offsets(producer), remedy, code)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        *((code, None) for code in (*RETRIED, *LOOKED_UP, E.UNKNOWN_TOPIC_OR_PARTITION)),
        (E.REQUEST_TIMED_OUT, None),
        *((code, "close") for code in FENCED),
        (E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "close"),
        (E.UNSUPPORTED_FOR_MESSAGE_FORMAT, "close"),
        (E.TRANSACTION_ABORTABLE, "abort"),
        (E.GROUP_AUTHORIZATION_FAILED, "abort"),
        (E.UNKNOWN_MEMBER_ID, "abort"),
        (E.ILLEGAL_GENERATION, "abort"),
        (E.FENCED_INSTANCE_ID, "abort"),
        (E.UNKNOWN_SERVER_ERROR, "close"),
    ],
)
@pytest.mark.usefixtures("has_groups")
def test_errors_of_txn_offset_commit(
    producer: Producer, cluster: FaultyCluster, code: int, remedy: str | None
) -> None:
    def refuse(_request: Any) -> TxnOffsetCommitResponse:
        each = TxnOffsetCommitResponsePartition(partition_index=0, error_code=code)
        topic = TxnOffsetCommitResponseTopic(name="other", partitions=[each])
        return TxnOffsetCommitResponse(topics=[topic])

    cluster.answer(TxnOffsetCommitRequest, refuse)
    producer.begin_transaction()
    check(producer, lambda: send_offsets(producer), remedy, code)
    if remedy is None:
        producer.commit_transaction()


@pytest.mark.parametrize("ends", ["commit_transaction", "abort_transaction"])
@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        *((code, None) for code in (*RETRIED, *LOOKED_UP)),
        *((code, "close") for code in FATAL),
        (E.UNKNOWN_SERVER_ERROR, "close"),
    ],
)
def test_errors_of_end_txn(
    producer: Producer, cluster: FaultyCluster, code: int, remedy: str | None, ends: str
) -> None:
    producer.begin_transaction()
    producer.send("out", b"x", partition=0).result()
    cluster.refuse(EndTxnRequest, code)
    check(producer, getattr(producer, ends), remedy, code)
    if remedy is None:
        with producer.transaction() as transaction:
            transaction.send("out", b"afterwards", partition=0)
        assert b"afterwards" in committed(cluster, "out")


@pytest.mark.parametrize("code", [*FORGOTTEN, E.TRANSACTION_ABORTABLE])
def test_a_commit_that_cannot_be_is_to_be_aborted(
    producer: Producer, cluster: FaultyCluster, code: int
) -> None:
    producer.begin_transaction()
    producer.send("out", b"x", partition=0).result()
    cluster.refuse(EndTxnRequest, code)
    check(producer, producer.commit_transaction, "abort", code)
    assert committed(cluster, "out") == [b"afterwards"]


@pytest.mark.parametrize("code", FORGOTTEN)
def test_a_producer_that_the_coordinator_forgot_gets_another_id_with_the_abort(
    producer: Producer, cluster: FaultyCluster, code: int
) -> None:
    producer.begin_transaction()
    producer.send("out", b"x", partition=0).result()
    cluster.refuse(EndTxnRequest, code)
    producer.abort_transaction()
    found = names(cluster)
    assert found[found.index("EndTxn") :][:2] == ["EndTxn", "InitProducerId"]
    for request in cluster.of_kind(InitProducerIdRequest):
        assert (request.producer_id, request.producer_epoch) == (-1, -1)
    with producer.transaction() as transaction:
        transaction.send("out", b"afterwards", partition=0)
    assert committed(cluster, "out") == [b"afterwards"]


def test_what_cannot_be_aborted_leaves_only_to_close(
    producer: Producer, cluster: FaultyCluster
) -> None:
    producer.begin_transaction()
    producer.send("out", b"x", partition=0).result()
    cluster.refuse(EndTxnRequest, E.TRANSACTION_ABORTABLE)
    with pytest.raises(errors.TransactionAbortable) as caught:
        producer.abort_transaction()
    assert caught.value.remedy == "close"


def refuse_produce(cluster: FaultyCluster, code: int, count: int = 1) -> None:
    def refuse(request: ProduceRequest) -> ProduceResponse:
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        PartitionProduceResponse(index=each.index, error_code=code)
                        for each in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )

    cluster.answer(ProduceRequest, refuse, count)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (E.CONCURRENT_TRANSACTIONS, None),
        (E.NOT_ENOUGH_REPLICAS, None),
        (E.NOT_LEADER_OR_FOLLOWER, None),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, "abort"),
        (E.UNKNOWN_PRODUCER_ID, "abort"),
        (E.INVALID_PRODUCER_ID_MAPPING, "abort"),
        (E.INVALID_PRODUCER_EPOCH, "abort"),
        (E.INVALID_TXN_STATE, "abort"),
        (E.TRANSACTION_ABORTABLE, "abort"),
        (E.TOPIC_AUTHORIZATION_FAILED, "abort"),
        (E.INVALID_RECORD, "abort"),
        (E.UNKNOWN_SERVER_ERROR, "abort"),
        (E.PRODUCER_FENCED, "close"),
        (E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "close"),
        (E.CLUSTER_AUTHORIZATION_FAILED, "close"),
        (E.UNSUPPORTED_VERSION, "close"),
    ],
)
def test_errors_of_produce(
    producer: Producer, cluster: FaultyCluster, code: int, remedy: str | None
) -> None:
    refuse_produce(cluster, code)
    producer.begin_transaction()
    future = producer.send("out", b"x", partition=0)
    producer.flush()
    error = future.exception()
    assert (error is None) == (remedy is None)
    if remedy is None:
        producer.commit_transaction()
        assert committed(cluster, "out") == [b"x"]
        return
    assert isinstance(error, KafkaError)
    assert error.code == code
    with pytest.raises(type(error)):
        producer.send("out", b"y")
    with pytest.raises(type(error)) as caught:
        producer.commit_transaction()
    assert caught.value.remedy == remedy
    if remedy == "abort":
        producer.abort_transaction()
        with producer.transaction() as transaction:
            transaction.send("out", b"afterwards", partition=0)
        assert committed(cluster, "out") == [b"afterwards"]


def test_a_batch_that_times_out_takes_its_transaction_with_it(
    make: MakeProducer, cluster: FaultyCluster
) -> None:
    producer = make(delivery_timeout_ms=100, request_timeout_ms=50, linger_ms=0)
    producer.init_transactions()
    producer.begin_transaction()
    refuse_produce(cluster, E.NOT_ENOUGH_REPLICAS, count=1_000)
    future = producer.send("out", b"x", partition=0)
    with pytest.raises(errors.EmbedlogError) as caught:
        producer.commit_transaction()
    assert caught.value.remedy == "abort"
    assert type(future.exception()) is type(caught.value)
    cluster.faults.pop()
    producer.abort_transaction()
    with producer.transaction() as transaction:
        transaction.send("out", b"y", partition=0)
    assert committed(cluster, "out") == [b"y"]


def test_a_record_that_is_refused_at_once_takes_its_transaction_with_it(
    producer: Producer, cluster: FaultyCluster
) -> None:
    producer.begin_transaction()
    producer.send("out", b"x")
    refused = producer.send_batch("out", [bytes(2_000_000)])
    assert isinstance(refused.exception(), errors.MessageTooLarge)
    with pytest.raises(errors.MessageTooLarge):
        producer.commit_transaction()
    producer.abort_transaction()
    assert committed(cluster, "out") == []


class _ToAWrongTopic:
    """An interceptor that sends the records with the value "bad" to a topic that cannot exist."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return record.replace(topic="bad name!") if record.value == b"bad" else record


@pytest.mark.parametrize("values", [[b"bad", b"good"], [b"good", b"bad"]])
def test_a_transaction_fails_if_any_batch_of_a_call_was_refused(values: list[bytes]) -> None:
    with embedlog.open() as cluster:
        cluster.create_topic("one", 1)
        with cluster.producer(
            transactional_id="t", interceptor_classes=[_ToAWrongTopic]
        ) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send_batch("one", values)
            with pytest.raises(errors.InvalidTopic):
                producer.commit_transaction()
            producer.abort_transaction()


@pytest.mark.parametrize("code", [E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS])
def test_the_coordinator_is_looked_for_until_it_is_found(
    make: MakeProducer, cluster: FaultyCluster, code: int
) -> None:
    def refuse(request: FindCoordinatorRequest) -> Found:
        return Found(coordinators=[Coordinator(key=request.coordinator_keys[0], error_code=code)])

    cluster.answer(FindCoordinatorRequest, refuse, count=3)
    make().init_transactions()
    asked = cluster.of_kind(FindCoordinatorRequest)
    assert [(each.key_type, each.coordinator_keys) for each in asked] == [(1, ["me"])] * 4


def test_a_coordinator_that_may_not_be_known_ends_the_producer(
    make: MakeProducer, cluster: FaultyCluster
) -> None:
    code = E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    cluster.answer(
        FindCoordinatorRequest,
        lambda _request: Found(coordinators=[Coordinator(key="me", error_code=code)]),
    )
    with pytest.raises(errors.TransactionalIdAuthorizationFailed) as caught:
        make().init_transactions()
    assert caught.value.remedy == "close"


@pytest.mark.parametrize("kind", [InitProducerIdRequest, EndTxnRequest, TxnOffsetCommitRequest])
@pytest.mark.usefixtures("has_groups")
def test_a_connection_that_ends_has_the_coordinator_looked_for_again(
    make: MakeProducer, cluster: FaultyCluster, kind: type[Any]
) -> None:
    cluster.fail(kind, errors.Network("gone"))
    producer = make()
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("out", b"x", partition=0)
    send_offsets(producer)
    producer.commit_transaction()
    groups = [each.coordinator_keys for each in cluster.of_kind(FindCoordinatorRequest)]
    assert sorted(groups) == sorted(
        [["me"], ["readers"], ["readers"] if kind is TxnOffsetCommitRequest else ["me"]]
    )
    assert committed(cluster, "out") == [b"x"]


@pytest.mark.parametrize("transaction_version", ["v1"], indirect=True)
@pytest.mark.parametrize("error", [errors.Network("gone"), errors.RequestTimedOut("late")])
def test_before_version_2_a_request_without_an_answer_costs_an_epoch(
    producer: Producer, cluster: FaultyCluster, error: KafkaError
) -> None:
    for number in range(4):
        with producer.transaction() as transaction:
            transaction.send("out", b"%d" % number, partition=0)
            if number == 1:
                cluster.fail(EndTxnRequest, error)
    first, tried, again, *later = [each.producer_epoch for each in cluster.of_kind(EndTxnRequest)]
    assert first == tried == again
    assert later == [first + 1] * 2, "what arrives late belongs to an epoch that is over"


@pytest.mark.parametrize("transaction_version", ["v1"], indirect=True)
def test_the_first_partitions_are_tried_again_after_20_ms(
    make: MakeProducer, cluster: FaultyCluster
) -> None:
    producer = make(retry_backoff_ms=1_000)
    producer.init_transactions()
    producer.begin_transaction()

    def refuse(_request: Any) -> AddPartitionsToTxnResponse:
        code = E.CONCURRENT_TRANSACTIONS
        each = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=code)
        topic = AddPartitionsToTxnTopicResult(name="out", results_by_partition=[each])
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[topic])

    cluster.answer(AddPartitionsToTxnRequest, refuse)
    began_ms = cluster.runtime.clock.monotonic_ms()
    producer.send("out", b"x", partition=0)
    producer.commit_transaction()
    assert 20 <= cluster.runtime.clock.monotonic_ms() - began_ms < 100


def test_an_error_is_told_anew_to_each_who_asks(producer: Producer, make: MakeProducer) -> None:
    producer.begin_transaction()
    producer.send("out", b"x", partition=0).result()
    make().init_transactions()
    told = []
    for _ in range(2):
        with pytest.raises(errors.ProducerFenced) as caught:
            producer.commit_transaction()
        told.append(caught.value)
    assert told[0] is not told[1]
    assert str(told[0]) == str(told[1])
    assert "another producer with transactional.id='me' has begun" in str(told[0])
    assert told[0].__notes__ == ["This producer can do no more: close it."]
    assert error_for(E.PRODUCER_FENCED).remedy is None


def test_an_abort_does_not_wait_for_a_leader_that_is_gone(
    producer: Producer, cluster: FaultyCluster
) -> None:
    refuse_produce(cluster, E.NOT_LEADER_OR_FOLLOWER, count=1_000_000)
    producer.begin_transaction()
    future = producer.send("out", b"x", partition=0)
    assert not future.done()
    began_ms = cluster.runtime.clock.monotonic_ms()
    producer.abort_transaction()
    assert cluster.runtime.clock.monotonic_ms() - began_ms < 1_000
    assert isinstance(future.exception(), TransactionAborted)
    cluster.faults.pop()
    with producer.transaction() as transaction:
        transaction.send("out", b"y", partition=0)
    assert committed(cluster, "out") == [b"y"]
