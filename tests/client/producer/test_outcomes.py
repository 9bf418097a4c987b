"""Outcomes of batches that were split, expired, interrupted or written twice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from embedlog import errors
from embedlog.client.producer.producer import Producer
from embedlog.errors import TimedOut
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime
from tests.client.held_answers import HeldAnswers
from tests.client.producer.test_producer import refuse, refuse_times
from tests.client.scripted_broker import PASS, ScriptedBroker
from wire.schemas.metadata import MetadataRequest
from wire.schemas.produce import ProduceRequest

TOO_LARGE = 10
NOT_ENOUGH_REPLICAS = 19
DUPLICATE = 46


@pytest.fixture
def runtime() -> SimRuntime:
    return sim_runtime(seed=1)


@pytest.fixture
def broker(runtime: SimRuntime) -> ScriptedBroker:
    return ScriptedBroker({"one": 1, "three": 3}, runtime)


def make_pass(producer: Producer) -> None:
    """Send everything; the answers do not come in time."""
    with pytest.raises(TimedOut):
        producer.flush(0)


def all_is_free(producer: Producer) -> bool:
    metrics = producer.metrics()
    return bool(metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"])


def script(broker: ScriptedBroker, codes: list[int]) -> None:
    """Answer the next produce requests with these errors; 0 writes the batch."""

    def fault(request: Any) -> Any:
        if not isinstance(request, ProduceRequest) or not codes:
            return PASS
        code = codes.pop(0)
        return refuse(request, code) if code else PASS

    broker.faults.append(fault)


def test_the_parts_of_a_batch_have_no_more_attempts_than_the_batch(broker: ScriptedBroker) -> None:
    script(broker, [NOT_ENOUGH_REPLICAS, TOO_LARGE, NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS])
    with Producer(broker.transport(), retries=1, enable_idempotence=False) as producer:
        futures = [producer.send("one", b"%d" % number) for number in range(2)]
        producer.flush()
        assert [type(each.exception()) for each in futures] == [errors.NotEnoughReplicas] * 2
    assert broker.values("one") == []


def test_no_record_of_a_duplicate_has_an_offset(broker: ScriptedBroker) -> None:
    refuse_times(broker, DUPLICATE, 1)
    with Producer(broker.transport(), enable_idempotence=True) as producer:
        futures = [producer.send("one", b"%d" % number) for number in range(3)]
        producer.flush()
        assert [each.result().offset for each in futures] == [-1] * 3


def test_a_batch_is_done_when_its_last_part_is(broker: ScriptedBroker) -> None:
    late = HeldAnswers(broker)
    script(broker, [TOO_LARGE])
    settings = {"enable_idempotence": False, "max_in_flight_requests_per_connection": 1}
    with Producer(broker.transport(), settings) as producer:
        futures = [producer.send("one", b"%d" % number) for number in range(2)]
        late.hold(ProduceRequest, which=lambda _request: bool(broker.values("one")))
        make_pass(producer)
        assert broker.values("one")[:1] == [b"0"]
        assert not futures[1].done()
        late.release()
        producer.flush()
        assert [each.result().offset for each in futures] == [0, 1]


def test_batches_that_expire_in_one_request_give_all_memory_back(
    broker: ScriptedBroker, runtime: SimRuntime
) -> None:
    late = HeldAnswers(broker)
    settings = {"request_timeout_ms": 900, "delivery_timeout_ms": 1000, "linger_ms": 0}
    with Producer(broker.transport(), **settings) as producer:
        late.hold(ProduceRequest)
        futures = [producer.send("three", b"v", partition=each) for each in range(2)]
        make_pass(producer)
        assert len(late.held) == 1
        runtime.scheduler.run_for(1_100)
        assert [type(each.exception()) for each in futures] == [TimedOut] * 2
        late.release()
        producer.send("three", b"v", partition=2).result()
        assert all_is_free(producer)


def test_a_batch_in_flight_expires_in_time_though_an_earlier_one_was_answered(
    broker: ScriptedBroker, runtime: SimRuntime
) -> None:
    late = HeldAnswers(broker)
    settings = {"request_timeout_ms": 900, "delivery_timeout_ms": 1000, "linger_ms": 0}
    with Producer(broker.transport(), **settings) as producer:
        producer.send("one", b"v").result()
        runtime.scheduler.run_for(500)
        late.hold(ProduceRequest)
        future = producer.send("one", b"v")
        make_pass(producer)
        runtime.scheduler.run_for(1_100)
        assert future.done()
        assert isinstance(future.exception(), TimedOut)


def test_a_broken_connection_makes_the_producer_ask_for_leaders(broker: ScriptedBroker) -> None:
    transport: Any = broker.transport()
    link = SimpleNamespace(
        handle=broker.handle,
        failure_count=0,
        loses_answers=True,
        is_ready=lambda _: True,
        prepare=lambda _: None,
    )
    transport.go_through(link)
    with Producer(transport) as producer:
        producer.send("one", b"v").result()
        asked = len(broker.of_kind(MetadataRequest))
        link.failure_count += 1
        producer.send("one", b"v").result()
        assert len(broker.of_kind(MetadataRequest)) == asked + 1


def test_a_partition_goes_on_after_a_batch_that_was_cut_before_it_was_sent(
    broker: ScriptedBroker,
) -> None:
    settings = {"max_in_flight_requests_per_connection": 1, "enable_idempotence": False}
    with Producer(broker.transport(), settings, batch_size=4000, max_request_size=1500) as producer:
        futures = [producer.send("one", b"%02d" % number * 50) for number in range(40)]
        producer.flush(5)
        assert [each.result(0).offset for each in futures] == list(range(40))


def test_requests_in_flight_count_once_after_an_interrupt(broker: ScriptedBroker) -> None:
    def interrupt(request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            broker.faults.remove(interrupt)
            raise KeyboardInterrupt
        return PASS

    answers: list[tuple[Any, Pending[Any]]] = []

    def hold(request: Any) -> Any:
        if not isinstance(request, ProduceRequest):
            return PASS
        answers.append((request, Pending()))
        return answers[-1][1]

    settings = {"max_in_flight_requests_per_connection": 2, "enable_idempotence": False}
    with Producer(broker.transport(), settings) as producer:
        producer.partitions_for("three")
        broker.faults.append(hold)
        producer.send("three", b"held", partition=0)
        make_pass(producer)
        broker.faults.insert(0, interrupt)
        lost = producer.send("three", b"interrupted", partition=1)
        with pytest.raises(KeyboardInterrupt):
            producer.flush(0)
        assert lost.exception() is not None
        producer.send("three", b"after", partition=2)
        make_pass(producer)
        assert len(answers) == 2, "one more may be in flight"
        broker.faults.clear()
        for request, pending in answers:
            pending.complete(broker.answer(request))
        producer.flush()
