"""The calls about transactions: their order, their requests, and their refusals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import embedlog
from embedlog import (
    IllegalState,
    PreparedTransaction,
    Producer,
    TimedOut,
    TransactionAborted,
    errors,
)
from embedlog.client.producer.transactions.status import VALID_PREVIOUS, TransactionState
from embedlog.runtime.pending import Pending
from tests.client.faulty_cluster import FaultyCluster
from tests.client.producer.transactions.conftest import (
    MakeProducer,
    committed,
    names,
    tell_version,
)
from wire.schemas.end_txn import EndTxnRequest, EndTxnResponse
from wire.schemas.init_producer_id import InitProducerIdRequest
from wire.schemas.produce import ProduceRequest

S = TransactionState


def test_what_is_committed_is_seen_and_what_is_aborted_is_not(
    producer: Producer, cluster: FaultyCluster
) -> None:
    producer.begin_transaction()
    producer.send("out", b"one", partition=0)
    producer.send("out", b"two", partition=1)
    assert committed(cluster, "out") == []
    producer.commit_transaction()
    producer.begin_transaction()
    written = producer.send("out", b"three", partition=0)
    producer.flush()
    producer.abort_transaction()
    assert written.result().offset == 2
    assert sorted(committed(cluster, "out")) == [b"one", b"two"]
    assert sorted(committed(cluster, "out", "read_uncommitted")) == [b"one", b"three", b"two"]


def test_partitions_are_added_once_before_version_2_and_never_since(
    producer: Producer, cluster: FaultyCluster, transaction_version: int
) -> None:
    producer.begin_transaction()
    for number in range(3):
        producer.send("out", b"%d" % number, partition=number % 2)
    producer.send("other", b"x")
    producer.commit_transaction()
    added = ["AddPartitionsToTxn"] if transaction_version == 1 else []
    found = names(cluster)
    assert found[0] == ("AddPartitionsToTxn" if added else "Produce")
    assert set(found[:-1]) == {"Produce", *added}
    assert found[-1] == "EndTxn"
    assert found.count("AddPartitionsToTxn") == len(added)


def test_every_end_brings_an_epoch_since_version_2(
    producer: Producer, cluster: FaultyCluster, transaction_version: int
) -> None:
    for ends in (producer.commit_transaction, producer.abort_transaction) * 2:
        producer.begin_transaction()
        producer.send("out", b"x", partition=0).result()
        ends()
    ended = cluster.of_kind(EndTxnRequest)
    epochs = [each.producer_epoch for each in ended]
    assert [epoch - epochs[0] for epoch in epochs] == (
        [0, 1, 2, 3] if transaction_version == 2 else [0] * 4
    )
    assert [each.committed for each in ended] == [True, False, True, False]


def test_a_transaction_of_nothing_asks_nobody(producer: Producer, cluster: FaultyCluster) -> None:
    for ends in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        ends()
    assert names(cluster) == []


def test_records_that_were_not_sent_are_dropped_by_an_abort(
    producer: Producer, cluster: FaultyCluster
) -> None:
    producer.begin_transaction()
    told: list[Any] = []
    future = producer.send("out", b"x", on_delivery=lambda metadata, error: told.append(error))
    producer.abort_transaction()
    with pytest.raises(TransactionAborted):
        future.result()
    assert [type(each) for each in told] == [TransactionAborted]
    assert "Produce" not in names(cluster)


def test_offsets_count_with_the_transaction(producer: Producer, cluster: FaultyCluster) -> None:
    with cluster.cluster.producer() as plain:
        for number in range(3):
            plain.send("other", b"%d" % number).result()
    with cluster.cluster.consumer(
        group_id="readers", auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        consumer.subscribe(["other"])
        while not consumer.poll(100, max_records=2):
            pass
        for ends, stored in ((producer.abort_transaction, None), (producer.commit_transaction, 2)):
            producer.begin_transaction()
            producer.send("out", b"x")
            producer.send_offsets_to_transaction(
                consumer.consumed_offsets(), consumer.group_metadata()
            )
            ends()
            found = consumer.committed([("other", 0)])[embedlog.TopicPartition("other", 0)]
            assert (found and found.offset) == stored


def test_a_consumer_that_commits_by_itself_is_refused(
    producer: Producer, cluster: FaultyCluster
) -> None:
    with (
        cluster.cluster.consumer(group_id="readers") as consumer,
        cluster.cluster.consumer() as lone,
    ):
        producer.begin_transaction()
        with pytest.raises(IllegalState, match=r"enable\.auto\.commit is on"):
            consumer.consumed_offsets()
        with pytest.raises(errors.InvalidGroupId):
            lone.consumed_offsets()


def test_no_offsets_at_all_are_nothing_to_send(producer: Producer, cluster: FaultyCluster) -> None:
    producer.begin_transaction()
    producer.send_offsets_to_transaction({}, embedlog.ConsumerGroupMetadata("readers"))
    producer.commit_transaction()
    assert names(cluster) == []


def test_a_with_commits_at_its_end_and_aborts_when_an_exception_leaves(
    producer: Producer, cluster: FaultyCluster
) -> None:
    with producer.transaction() as transaction:
        transaction.send("out", b"kept")
    with pytest.raises(ZeroDivisionError), producer.transaction() as transaction:
        transaction.send_batch("out", [b"a", b"b"])
        producer.flush()
        1 / 0  # noqa: B018
    with producer.transaction() as again:
        again.send("out", b"kept too")
    assert sorted(committed(cluster, "out")) == [b"kept", b"kept too"]
    with pytest.raises(IllegalState, match="the transaction has ended"):
        transaction.send("out", b"late")


def test_a_with_that_cannot_commit_aborts_and_the_next_one_works(
    producer: Producer, cluster: FaultyCluster
) -> None:
    with pytest.raises(errors.MessageTooLarge) as caught, producer.transaction() as transaction:
        transaction.send("out", b"lost")
        transaction.send("out", bytes(2_000_000))
    assert caught.value.remedy == "abort"
    with producer.transaction() as transaction:
        transaction.send("out", b"kept")
    assert committed(cluster, "out") == [b"kept"]


def test_an_exception_that_cannot_be_followed_by_an_abort_still_leaves(
    producer: Producer, make: MakeProducer
) -> None:
    with pytest.raises(ZeroDivisionError) as caught, producer.transaction() as transaction:
        transaction.send("out", b"x", partition=0).result()
        make().init_transactions()
        1 / 0  # noqa: B018
    assert "could not be aborted" in caught.value.__notes__[0]


CALLS: dict[str, Callable[[Producer], Any]] = {
    "init_transactions": lambda p: p.init_transactions(),
    "begin_transaction": lambda p: p.begin_transaction(),
    "send": lambda p: p.send("out", b"x"),
    "send_batch": lambda p: p.send_batch("out", [b"x"]),
    "append": lambda p: p.append("out", b"x"),
    "send_offsets_to_transaction": lambda p: p.send_offsets_to_transaction(
        {("out", 0): 1}, embedlog.ConsumerGroupMetadata("g")
    ),
    "commit_transaction": lambda p: p.commit_transaction(),
    "abort_transaction": lambda p: p.abort_transaction(),
    "prepare_transaction": lambda p: p.prepare_transaction(),
    "complete_transaction": lambda p: p.complete_transaction(PreparedTransaction(1, 1)),
    "transaction": lambda p: p.transaction().__enter__(),
}


@pytest.mark.parametrize("transaction_version", ["v2"], indirect=True)
@pytest.mark.parametrize("call", [each for each in CALLS if each != "init_transactions"])
def test_nothing_can_be_done_before_init_transactions(make: MakeProducer, call: str) -> None:
    with pytest.raises(IllegalState, match=r"init_transactions first|phase|no transaction is prep"):
        CALLS[call](make())


@pytest.mark.parametrize("transaction_version", ["v2"], indirect=True)
@pytest.mark.parametrize("call", [each for each in CALLS if "begin" not in each])
def test_what_needs_a_transaction_says_so(producer: Producer, call: str) -> None:
    if call == "transaction":
        return
    with pytest.raises(IllegalState, match=r"begin_transaction first|before|phase|is prepared"):
        CALLS[call](producer)


@pytest.mark.parametrize("transaction_version", ["v2"], indirect=True)
@pytest.mark.parametrize("call", ["begin_transaction", "transaction"])
def test_transactions_do_not_nest(producer: Producer, call: str) -> None:
    with producer.transaction() as outer:
        outer.send("out", b"x")
        with pytest.raises(IllegalState, match="they do not nest"):
            CALLS[call](producer)


@pytest.mark.parametrize(
    "call", [each for each in CALLS if each not in {"send", "send_batch", "append"}]
)
def test_a_producer_without_a_transactional_id_says_so(cluster: FaultyCluster, call: str) -> None:
    with Producer(cluster) as plain, pytest.raises(IllegalState, match=r"no transactional\.id"):
        CALLS[call](plain)


def test_arguments_of_the_wrong_kind_are_refused(producer: Producer) -> None:
    producer.begin_transaction()
    with pytest.raises(TypeError, match="expected what consumer"):
        producer.send_offsets_to_transaction({("out", 0): 1}, "readers")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="names nobody"):
        producer.send_offsets_to_transaction(
            {("out", 0): 1}, embedlog.ConsumerGroupMetadata("readers", 3)
        )
    with pytest.raises(TypeError, match="expected a PreparedTransaction"):
        producer.complete_transaction("1:1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is no prepared transaction"):
        PreparedTransaction.parse("one")
    assert PreparedTransaction.parse("7:3") == (7, 3)
    assert str(PreparedTransaction.parse("")) == ""


@pytest.mark.parametrize(
    ("call", "kind"),
    [("init_transactions", InitProducerIdRequest), ("commit_transaction", EndTxnRequest),
     ("abort_transaction", EndTxnRequest)],
)  # fmt: skip
def test_a_call_that_timed_out_is_called_again_for_the_same_outcome(
    make: MakeProducer, cluster: FaultyCluster, call: str, kind: type[Any]
) -> None:
    producer = make(max_block_ms=50, retry_backoff_ms=10, retry_backoff_max_ms=10)
    if call != "init_transactions":
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("out", b"x", partition=0).result()
    held: Pending[Any] = Pending()
    cluster.answer(kind, lambda _request: held)
    with pytest.raises(TimedOut) as caught:
        CALLS[call](producer)
    assert caught.value.remedy == "retry"
    asked = len(cluster.of_kind(kind))
    for other, refused in CALLS.items():
        if other not in {call, "prepare_transaction", "complete_transaction"}:
            with pytest.raises(IllegalState, match=f"{call} has timed out"):
                refused(producer)
    held.fail(errors.Network("gone"))
    CALLS[call](producer)
    assert len(cluster.of_kind(kind)) == asked + 1
    with producer.transaction() as transaction:
        transaction.send("out", b"next", partition=0)
    assert committed(cluster, "out")[-1] == b"next"


def test_a_new_producer_fences_the_one_before(producer: Producer, make: MakeProducer) -> None:
    producer.begin_transaction()
    producer.send("out", b"zombie", partition=0).result()
    make().init_transactions()
    with pytest.raises(errors.ProducerFenced) as caught:
        producer.commit_transaction()
    assert caught.value.remedy == "close"
    for call in ("begin_transaction", "abort_transaction", "send", "commit_transaction"):
        with pytest.raises(errors.ProducerFenced):
            CALLS[call](producer)


def test_what_a_predecessor_left_open_is_aborted(
    producer: Producer, make: MakeProducer, cluster: FaultyCluster
) -> None:
    producer.begin_transaction()
    producer.send("out", b"zombie", partition=0).result()
    heir = make()
    heir.init_transactions()
    with heir.transaction() as transaction:
        transaction.send("out", b"heir", partition=0)
    assert committed(cluster, "out") == [b"heir"]


def test_closing_aborts_what_is_open(make: MakeProducer, cluster: FaultyCluster) -> None:
    producer = make()
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("out", b"x", partition=0).result()
    producer.close()
    assert [each.committed for each in cluster.of_kind(EndTxnRequest)] == [False]


def test_the_first_transaction_after_an_upgrade_has_another_epoch(
    cluster: FaultyCluster,
) -> None:
    tell_version(cluster, 1)
    with Producer(cluster, transactional_id="me") as producer:
        producer.init_transactions()
        cluster.faults.clear()
        tell_version(cluster, 2)
        cluster.refuse(EndTxnRequest, errors.NotCoordinator.code)
        for number in range(3):
            with producer.transaction() as transaction:
                transaction.send("out", b"%d" % number, partition=0)
    epochs = [each.producer_epoch for each in cluster.of_kind(EndTxnRequest)]
    assert len(set(epochs)) == 3
    assert len(cluster.of_kind(InitProducerIdRequest)) == 2
    assert names(cluster).count("AddPartitionsToTxn") == 1


def test_in_process_a_transaction_takes_no_thread() -> None:
    with embedlog.open() as cluster, cluster.producer(transactional_id="me") as producer:
        before = threading.enumerate()
        producer.init_transactions()
        for number in range(3):
            with producer.transaction() as transaction:
                transaction.send("out", b"%d" % number)
                assert threading.enumerate() == before
        assert threading.enumerate() == before


def test_records_go_out_as_transactional_ones_of_the_id(
    producer: Producer, cluster: FaultyCluster, transaction_version: int
) -> None:
    with producer.transaction() as transaction:
        transaction.send("out", b"x", partition=0)
    (request,) = cluster.of_kind(ProduceRequest)
    assert request.transactional_id == "me"
    (batch,) = request.topic_data[0].partition_data
    assert bytes(batch.records)[22] & 0x10, "the transactional bit of the attributes"


def test_only_the_states_of_the_table_follow_each_other() -> None:
    states = {value for name, value in vars(S).items() if name.isupper()}
    assert set(VALID_PREVIOUS) == states - {S.UNINITIALIZED}
    followed = {
        state: {each for each in states if state in VALID_PREVIOUS.get(each, ())}
        for state in states
    }
    assert followed[S.FATAL_ERROR] == {S.FATAL_ERROR}
    assert followed[S.READY] == {S.IN_TRANSACTION, S.FATAL_ERROR}
    assert followed[S.ABORTABLE_ERROR] == {S.ABORTING, S.ABORTABLE_ERROR, S.FATAL_ERROR}
    assert all(S.FATAL_ERROR in each for each in followed.values())


def test_metrics_tell_what_the_calls_took(make: MakeProducer, cluster: FaultyCluster) -> None:
    producer = make()
    cluster.refuse(InitProducerIdRequest, errors.CoordinatorLoadInProgress.code)
    producer.init_transactions()
    metrics = producer.metrics()
    assert metrics["txn-init-time-ns-total"] >= 80_000_000, "the back-off"
    producer.begin_transaction()
    producer.commit_transaction()
    metrics = producer.metrics()
    names = ("begin", "send-offsets", "commit", "abort")
    assert [metrics[f"txn-{name}-time-ns-total"] for name in names] == [0] * 4


@pytest.mark.parametrize("transaction_version", ["v2"], indirect=True)
def test_batches_of_a_new_epoch_follow_each_other_without_waiting_for_the_first(
    make: MakeProducer, cluster: FaultyCluster
) -> None:
    producer = make(batch_size=300)
    producer.init_transactions()
    held: list[Pending[Any]] = []

    def hold(_request: Any) -> Pending[Any]:
        held.append(Pending())
        return held[-1]

    cluster.answer(ProduceRequest, hold, count=2)
    producer.begin_transaction()
    for number in range(2):
        producer.send_batch("out", [b"%d" % number * 200], partition=0)
    assert len(held) == 2
    for each in reversed(held):
        each.fail(errors.NotEnoughReplicas())
    producer.commit_transaction()
    assert [value[:1] for value in committed(cluster, "out")] == [b"0", b"1"]


def test_a_transaction_that_was_left_open_is_seen_by_nobody_in_time(
    make: MakeProducer, cluster: FaultyCluster
) -> None:
    producer = make(transaction_timeout_ms=1_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("out", b"x", partition=0).result()
    cluster.pass_time(20_000)
    with pytest.raises(errors.KafkaError, match=r"transaction\.timeout\.ms=1000") as caught:
        producer.commit_transaction()
    assert caught.value.remedy == "close"
    assert committed(cluster, "out") == []


@pytest.mark.parametrize("transaction_version", ["v2"], indirect=True)
def test_a_transaction_that_took_too_long_can_be_aborted_since_version_2(
    make: MakeProducer, cluster: FaultyCluster
) -> None:
    producer = make(transaction_timeout_ms=1_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("out", b"x", partition=0).result()
    cluster.pass_time(20_000)
    producer.abort_transaction()
    with producer.transaction() as transaction:
        transaction.send("out", b"y", partition=0)
    assert committed(cluster, "out") == [b"y"]


def test_an_interrupted_answer_leaves_a_producer_to_close(
    producer: Producer, cluster: FaultyCluster
) -> None:
    class Interrupting(EndTxnResponse):
        @property
        def error_code(self) -> int:  # type: ignore[override]
            raise KeyboardInterrupt

    producer.begin_transaction()
    producer.send("out", b"x", partition=0).result()
    cluster.answer(EndTxnRequest, lambda _request: Interrupting.__new__(Interrupting))
    with pytest.raises(KeyboardInterrupt):
        producer.commit_transaction()
    with pytest.raises(errors.UnknownServerError) as caught:
        producer.commit_transaction()
    assert caught.value.remedy == "close"


def test_a_record_that_is_sent_while_its_transaction_ends_is_in_none(
    make: MakeProducer, cluster: FaultyCluster
) -> None:
    def serialize(value: bytes) -> bytes:
        if value == b"late":
            producer.commit_transaction()  # as another thread might, just then
        return value

    producer = make(value_serializer=serialize)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("out", b"in time", partition=0)
    late = producer.send("out", b"late", partition=0)
    producer.begin_transaction()
    producer.send("out", b"next", partition=0)
    producer.commit_transaction()
    with pytest.raises(TransactionAborted, match="was ended while the record was sent"):
        late.result()
    assert committed(cluster, "out") == [b"in time", b"next"]


def test_small_records_are_taken_unseen_only_inside_a_transaction(
    producer: Producer, cluster: FaultyCluster
) -> None:
    for number in range(3):
        with pytest.raises(IllegalState, match="begin_transaction first"):
            producer.send("out", b"x", b"key")
        with producer.transaction() as transaction:
            for each in range(4):
                transaction.send("out", b"%d-%d" % (number, each), b"key")
    assert committed(cluster, "out") == [
        b"%d-%d" % (n, each) for n in range(3) for each in range(4)
    ]
