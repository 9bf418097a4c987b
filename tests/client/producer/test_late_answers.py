"""Answers that arrive after the batch, the topic or the producer has changed."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import errors
from embedlog.client.producer.producer import Producer
from embedlog.errors import KafkaError, TimedOut
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime
from tests.client.held_answers import HeldAnswers
from tests.client.scripted_broker import PASS, ScriptedBroker
from wire.records import RecordBatch
from wire.schemas.init_producer_id import InitProducerIdRequest
from wire.schemas.metadata import MetadataRequest
from wire.schemas.produce import (
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)


@pytest.fixture
def broker() -> ScriptedBroker:
    return ScriptedBroker({"one": 1}, sim_runtime(seed=1))


@pytest.fixture
def late(broker: ScriptedBroker) -> HeldAnswers:
    return HeldAnswers(broker)


def pass_time(broker: ScriptedBroker, delay_ms: int) -> None:
    assert isinstance(broker.runtime, SimRuntime)
    broker.runtime.scheduler.run_for(delay_ms)


def sequence(request: Any) -> int:
    return RecordBatch(bytes(request.topic_data[0].partition_data[0].records)).base_sequence


def refused(request: Any, code: int) -> ProduceResponse:
    answer = PartitionProduceResponse(index=0, error_code=code, base_offset=-1)
    topic = TopicProduceResponse(
        topic_id=request.topic_data[0].topic_id, partition_responses=[answer]
    )
    return ProduceResponse(responses=[topic])


def failed(error: KafkaError) -> Pending[Any]:
    pending: Pending[Any] = Pending()
    pending.fail(error)
    return pending


class RestartedBroker:
    """Writes the next four batches and answers all with an error; then it is started again.

    Afterwards it knows only the last of these batches, like Kafka's broker.
    """

    def __init__(self, broker: ScriptedBroker, error: KafkaError) -> None:
        self._broker = broker
        self._error = error
        self._written: list[int] = []
        self._answers: list[tuple[Any, Pending[Any]]] = []

    def fault(self, request: Any) -> Any:
        if not isinstance(request, ProduceRequest):
            return PASS
        number = sequence(request)
        if number in self._written:
            return refused(request, 46 if number == self._written[-1] else 45)
        if len(self._written) >= 4:
            return PASS
        self._written.append(number)
        self._broker.answer(request)
        self._answers.append((request, Pending()))
        if len(self._written) == 4:
            for written, pending in self._answers:
                if isinstance(self._error, errors.Network):
                    pending.fail(self._error)
                else:
                    pending.complete(refused(written, self._error.code))
        return self._answers[-1][1]


@pytest.mark.parametrize(
    "error",
    [
        errors.Network("gone"),
        errors.RequestTimedOut(),
        errors.NotEnoughReplicasAfterAppend(),
        errors.NotLeaderOrFollower(),
        errors.KafkaStorageError(),
    ],
)
def test_a_batch_that_may_be_in_the_log_is_never_written_again(
    broker: ScriptedBroker, error: KafkaError
) -> None:
    with Producer(broker.transport(), enable_idempotence=True, batch_size=0) as producer:
        producer.send("one", b"first").result()
        broker.faults.append(RestartedBroker(broker, error).fault)
        *earlier, last = [producer.send("one", b"%d" % number) for number in range(4)]
        after = producer.send("one", b"after")
        for future in earlier:
            with pytest.raises(errors.OutOfOrderSequenceNumber) as caught:
                future.result()
            assert "may be in the log" in caught.value.__notes__[0]
        assert last.result().offset == -1, "a duplicate"
        assert after.result().offset == 5
    assert broker.values("one") == [b"first", b"0", b"1", b"2", b"3", b"after"]


def test_parts_of_a_batch_that_may_be_in_the_log_are_not_written_again(
    broker: ScriptedBroker,
) -> None:
    """The first attempt wrote the batch; then the limit of the topic was lowered."""
    attempts: list[int] = []

    def fault(request: Any) -> Any:
        if not isinstance(request, ProduceRequest) or sequence(request) == 0:
            return PASS
        attempts.append(sequence(request))
        if len(attempts) == 1:
            broker.answer(request)
            return failed(errors.Network("gone"))
        return refused(request, 10 if len(attempts) == 2 else 45)

    with Producer(broker.transport(), enable_idempotence=True) as producer:
        producer.send("one", b"first").result()
        broker.faults.append(fault)
        future = producer.send_batch("one", [b"a", b"b"])
        with pytest.raises(errors.OutOfOrderSequenceNumber):
            future.result()
    assert broker.values("one") == [b"first", b"a", b"b"]


def test_a_batch_that_was_given_up_keeps_its_outcome(
    broker: ScriptedBroker, late: HeldAnswers
) -> None:
    settings = {"delivery_timeout_ms": 1_000, "request_timeout_ms": 900, "linger_ms": 0}
    told: list[Exception | None] = []
    with Producer(broker.transport(), enable_idempotence=True, **settings) as producer:
        producer.send("one", b"first").result()
        late.hold(ProduceRequest)
        future = producer.send("one", b"x", on_delivery=lambda _, error: told.append(error))
        with pytest.raises(TimedOut):
            producer.flush(0)
        pass_time(broker, 1_100)
        assert isinstance(future.exception(), TimedOut)
        late.release()
        assert producer.send("one", b"y").result().offset == 2
        assert isinstance(future.exception(), TimedOut)
    assert len(told) == 1
    epochs = [RecordBatch(data).producer_epoch for data in broker.logs["one", 0]]
    assert epochs == [0, 0, 1], "the batch without an answer ends its epoch"


def test_the_answer_about_a_topic_that_was_made_anew_is_known_by_the_old_id(
    broker: ScriptedBroker, late: HeldAnswers
) -> None:
    with Producer(broker.transport(), metadata_max_age_ms=1_000) as producer:
        producer.send("one", b"first").result()
        late.hold(ProduceRequest)
        future = producer.send_batch("one", [b"x"])
        assert not future.done()
        broker.ids["one"] = bytes([77]) * 16
        before = len(broker.of_kind(MetadataRequest))
        pass_time(broker, 2_000)
        assert len(broker.of_kind(MetadataRequest)) > before
        late.release()
        assert future.result()[0].offset == 1


def test_the_leader_of_a_former_topic_is_not_that_of_the_next(
    broker: ScriptedBroker, late: HeldAnswers
) -> None:
    """The leader epochs of a topic that was made anew begin again: a higher one is not newer."""
    with Producer(broker.transport(), metadata_max_age_ms=1_000) as producer:
        producer.send("one", b"first").result()
        late.hold(ProduceRequest)
        future = producer.send_batch("one", [b"x"])
        assert not future.done()
        broker.ids["one"] = bytes([77]) * 16
        pass_time(broker, 2_000)
        request, _, pending = late.held.pop()
        answer = refused(request, 6)
        (moved,) = answer.responses[0].partition_responses
        moved.current_leader = LeaderIdAndEpoch(leader_id=1, leader_epoch=7)
        pending.complete(answer)
        assert future.result()
        assert producer.partitions_for("one")[0].leader_epoch == 0


def test_a_producer_id_that_comes_late_is_used_by_the_next_record(
    broker: ScriptedBroker, late: HeldAnswers
) -> None:
    late.hold(InitProducerIdRequest)
    settings = {"delivery_timeout_ms": 1_000, "request_timeout_ms": 900, "linger_ms": 0}
    with Producer(broker.transport(), enable_idempotence=True, **settings) as producer:
        future = producer.send("one", b"x")
        with pytest.raises(TimedOut):
            producer.flush(0)
        pass_time(broker, 1_100)
        assert isinstance(future.exception(), TimedOut)
        late.release()
        assert producer.send("one", b"y").result().offset == 0
    assert len(broker.of_kind(InitProducerIdRequest)) == 1
    assert RecordBatch(broker.logs["one", 0][0]).base_sequence == 0


def test_answers_after_the_close_change_nothing(broker: ScriptedBroker, late: HeldAnswers) -> None:
    producer = Producer(broker.transport(), enable_idempotence=True)
    producer.send("one", b"first").result()
    late.hold(ProduceRequest)
    future = producer.send("one", b"x")
    with pytest.warns(RuntimeWarning, match="1 records for one-0 were not delivered"):
        producer.close(0)
    late.release()
    assert future.exception() is not None
