"""A producer and a broker whose faults are scripted."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import errors
from embedlog.client.errors import BufferExhausted
from embedlog.client.producer.producer import Producer
from embedlog.errors import ClosedError, EmbedlogError, TimedOut
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime
from tests.client.scripted_broker import PASS, ScriptedBroker
from wire.records import RecordBatch
from wire.schemas.init_producer_id import InitProducerIdRequest
from wire.schemas.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)


@pytest.fixture
def runtime() -> SimRuntime:
    return sim_runtime(seed=1)


@pytest.fixture
def broker(runtime: SimRuntime) -> ScriptedBroker:
    return ScriptedBroker({"one": 1, "three": 3}, runtime)


def refuse(request: Any, code: int) -> Any:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def refuse_times(broker: ScriptedBroker, code: int, count: int) -> None:
    """Refuse the next `count` produce requests."""
    left = [count]

    def fault(request: Any) -> Any:
        if not isinstance(request, ProduceRequest) or not left[0]:
            return PASS
        left[0] -= 1
        return refuse(request, code)

    broker.faults.append(fault)


def batches(broker: ScriptedBroker, topic: str, partition: int = 0) -> list[RecordBatch]:
    return [RecordBatch(memoryview(data)) for data in broker.logs.get((topic, partition), [])]


def test_a_record_arrives_with_everything_it_had(broker: ScriptedBroker) -> None:
    with Producer(broker.transport()) as producer:
        where = producer.send(
            "one", b"value", b"key", timestamp_ms=123, headers=[("h", b"x"), ("h", None)]
        ).result()
    (record,) = batches(broker, "one")[0].records()
    assert record == (0, 123, b"key", b"value", (("h", b"x"), ("h", None)))
    assert where == ("one", 0, 0, 123, 3, 5)


def test_null_and_empty_stay_apart(broker: ScriptedBroker) -> None:
    with Producer(broker.transport()) as producer:
        producer.send("one", None, b"")
        last = producer.send("one", b"", None)
        assert last.result().serialized_key_size == -1
        assert last.result().serialized_value_size == 0
    records = list(batches(broker, "one")[0].records())
    assert [(record.key, record.value) for record in records] == [(b"", None), (None, b"")]


def test_records_without_a_flush_wait_for_company(
    broker: ScriptedBroker, runtime: SimRuntime
) -> None:
    with Producer(broker.transport()) as producer:
        futures = [producer.send("one", b"%d" % number) for number in range(10)]
        assert not broker.of_kind(ProduceRequest)
        producer.flush()
        assert [future.result().offset for future in futures] == list(range(10))
    assert len(batches(broker, "one")) == 1


def test_whoever_drives_the_scheduler_sends_what_waited_a_millisecond(
    broker: ScriptedBroker, runtime: SimRuntime
) -> None:
    with Producer(broker.transport()) as producer:
        producer.send("one", b"a").result()
        for expected in ([b"a", b"b"], [b"a", b"b", b"c"]):
            producer.send("one", expected[-1])
            runtime.scheduler.run_for(1)
            assert broker.values("one") == expected


def test_linger_keeps_a_batch_open_for_that_long(
    broker: ScriptedBroker, runtime: SimRuntime
) -> None:
    with Producer(broker.transport(), linger_ms=50) as producer:
        producer.send("one", b"a")
        runtime.scheduler.run_for(49)
        assert broker.values("one") == []
        runtime.scheduler.run_for(1)
        assert broker.values("one") == [b"a"]


def test_a_full_batch_is_sent_and_the_next_one_stays_open(broker: ScriptedBroker) -> None:
    with Producer(broker.transport(), batch_size=1000) as producer:
        for _ in range(20):
            producer.send("one", bytes(100))
        sent = batches(broker, "one")
        assert len(sent) == 2
        assert all(900 <= batch.size <= 1000 for batch in sent)
    assert sum(batch.record_count for batch in batches(broker, "one")) == 20


def test_one_key_goes_to_one_partition_and_none_to_a_sticky_one(broker: ScriptedBroker) -> None:
    with Producer(broker.transport()) as producer:
        where = {producer.send("three", b"v", b"foobar").result().partition for _ in range(5)}
        assert where == {0x50E47BBE % 3}
        futures = [producer.send("three", b"v") for _ in range(50)]
        producer.flush()
        assert len({future.result().partition for future in futures}) == 1


def test_the_sticky_partition_changes_after_a_batch_and_wastes_none(
    broker: ScriptedBroker,
) -> None:
    with Producer(broker.transport(), batch_size=1000) as producer:
        for _ in range(200):
            producer.send("three", bytes(100))
    counts = [
        batch.record_count
        for partition in range(3)
        for batch in batches(broker, "three", partition)
    ]
    assert sum(counts) == 200
    assert sorted(counts)[1:] == [8] * (len(counts) - 1)
    assert all(batches(broker, "three", partition) for partition in range(3))


def test_a_partitioner_of_ones_own_decides(broker: ScriptedBroker) -> None:
    with Producer(
        broker.transport(), partitioner_class=lambda topic, key, value: len(topic.partitions) - 1
    ) as producer:
        assert producer.send("three", b"v", b"k").result().partition == 2
        assert producer.send_batch("three", [b"a", b"b"]).result()[0].partition == 2


def test_serializers_make_bytes(broker: ScriptedBroker) -> None:
    with Producer(
        broker.transport(), value_serializer=str.encode, key_serializer=lambda key: b"%d" % key
    ) as producer:
        producer.send("one", "grüße", 7).result()
        producer.send_batch("one", ["a", "b"], keys=[1, 2]).result()
    assert broker.values("one") == ["grüße".encode(), b"a", b"b"]


@pytest.mark.parametrize("value", ["text", 5, 1.5, ["list"]])
def test_a_value_that_is_no_bytes_is_refused_at_once(broker: ScriptedBroker, value: Any) -> None:
    with Producer(broker.transport()) as producer:
        with pytest.raises(TypeError, match="serializer"):
            producer.send("one", value)
        with pytest.raises(TypeError, match="serializer"):
            producer.send_batch("one", [b"fine", value])
        with pytest.raises(TypeError, match="serializer"):
            producer.send("one", b"v", value)


def test_callbacks_run_in_order_and_before_the_future_is_done(broker: ScriptedBroker) -> None:
    seen: list[Any] = []
    futures: list[Any] = []

    def note(metadata: Any, error: Exception | None) -> None:
        seen.append((metadata.offset, error, futures[metadata.offset].done()))

    with Producer(broker.transport()) as producer:
        for _ in range(3):
            futures.append(producer.send("one", b"v", on_delivery=note))
        producer.flush()
    assert seen == [(0, None, False), (1, None, False), (2, None, False)]
    assert all(future.done() for future in futures)


def test_a_callback_that_raises_stops_no_other(broker: ScriptedBroker) -> None:
    seen: list[int] = []

    def fail(metadata: Any, error: Exception | None) -> None:
        seen.append(metadata.offset)
        if metadata.offset == 1:
            raise RuntimeError("from the callback")

    with Producer(broker.transport()) as producer:
        for _ in range(4):
            producer.send("one", b"v", on_delivery=fail)
        with pytest.raises(RuntimeError, match="from the callback"):
            producer.flush()
        producer.flush()
    assert seen == [0, 1, 2, 3]


def test_a_callback_may_send_but_not_wait(broker: ScriptedBroker) -> None:
    problems: list[BaseException] = []

    def chain(metadata: Any, error: Exception | None) -> None:
        future = producer.send("one", b"second")
        try:
            future.result()
        except EmbedlogError as problem:
            problems.append(problem)

    with Producer(broker.transport()) as producer:
        producer.send("one", b"first", on_delivery=chain).result()
        producer.flush()
    assert broker.values("one") == [b"first", b"second"]
    assert "wait for itself" in str(problems[0])


def test_a_retriable_error_is_retried_after_a_growing_pause(
    broker: ScriptedBroker, runtime: SimRuntime
) -> None:
    refuse_times(broker, 6, 3)  # NOT_LEADER_OR_FOLLOWER
    with Producer(broker.transport()) as producer:
        assert producer.send("one", b"v").result().offset == 0
    assert len(broker.of_kind(ProduceRequest)) == 4
    assert 0.8 * 700 <= runtime.clock.monotonic_ms() <= 1.2 * 700


def test_an_error_that_will_not_go_away_fails_at_once(broker: ScriptedBroker) -> None:
    refuse_times(broker, 87, 9)  # INVALID_RECORD
    errors_seen: list[Any] = []
    with Producer(broker.transport()) as producer:
        future = producer.send(
            "one", b"v", on_delivery=lambda metadata, error: errors_seen.append((metadata, error))
        )
        with pytest.raises(errors.InvalidRecord):
            future.result()
        assert isinstance(future.exception(), errors.InvalidRecord)
    ((metadata, error),) = errors_seen
    assert (metadata.offset, metadata.timestamp, metadata.partition) == (-1, -1, 0)
    assert isinstance(error, errors.InvalidRecord)
    assert len(broker.of_kind(ProduceRequest)) == 1


def test_retries_end_with_the_last_error(broker: ScriptedBroker) -> None:
    refuse_times(broker, 6, 9)
    with Producer(broker.transport(), retries=2) as producer:
        error = producer.send("one", b"v").exception()
    assert isinstance(error, errors.NotLeaderOrFollower)
    assert len(broker.of_kind(ProduceRequest)) == 3


@pytest.mark.slow
def test_a_record_is_given_up_after_the_delivery_timeout(
    broker: ScriptedBroker, runtime: SimRuntime
) -> None:
    answer: Pending[Any] = Pending()
    broker.faults.append(lambda request: PASS if _is_not_produce(request) else answer)
    with Producer(broker.transport()) as producer:
        future = producer.send("one", b"v")
        with pytest.raises(TimedOut, match=r"delivery\.timeout\.ms=120000"):
            future.result()
        assert runtime.clock.monotonic_ms() == 120_000
        assert producer.metrics()["requests-in-flight"] == 1
        held = 33_554_432 - producer.metrics()["buffer-available-bytes"]
        assert held == 65_536, "its bytes are on the way still"
        answer.complete(ProduceResponse())
        producer.flush()
        assert producer.metrics()["buffer-available-bytes"] == 33_554_432
        assert producer.metrics()["record-error-total"] == 1


def _is_not_produce(request: Any) -> bool:
    return not isinstance(request, ProduceRequest)


def test_result_in_time_or_timed_out(broker: ScriptedBroker, runtime: SimRuntime) -> None:
    answer: Pending[Any] = Pending()
    held: list[Any] = []

    def hold(request: Any) -> Any:
        if isinstance(request, ProduceRequest) and not held:
            held.append(request)
            return answer
        return PASS

    broker.faults.append(hold)
    with Producer(broker.transport()) as producer:
        future = producer.send("one", b"v")
        with pytest.raises(TimedOut, match="no outcome after 2"):
            future.result(2)
        assert runtime.clock.monotonic_ms() == 2000
        assert not future.done()
        answer.complete(broker.answer(held[0]))
        assert future.done()
        assert future.result().offset == 0


def test_retries_keep_the_order_and_the_numbers(broker: ScriptedBroker) -> None:
    """Five batches are on the way, the broker refuses the second: nothing overtakes it."""
    answers: list[tuple[Any, Pending[Any]]] = []

    def hold(request: Any) -> Any:
        if not isinstance(request, ProduceRequest) or len(answers) >= 5:
            return PASS
        answers.append((request, Pending()))
        return answers[-1][1]

    with Producer(broker.transport(), enable_idempotence=True, batch_size=0) as producer:
        producer.send("one", b"first").result()
        broker.faults.append(hold)
        futures = [producer.send("one", b"%d" % number) for number in range(5)]
        assert not futures[-1].done()
        assert len(answers) == 5
        numbers = [RecordBatch(_records(request)).base_sequence for request, _ in answers]
        assert numbers == [1, 2, 3, 4, 5]
        for index, (request, pending) in enumerate(answers):
            if index == 0:
                pending.complete(broker.answer(request))
            else:
                # The broker finds a gap behind the batch that it refused.
                pending.complete(refuse(request, 7 if index == 1 else 45))
        producer.flush()
        assert [future.result().offset for future in futures] == [1, 2, 3, 4, 5]
    assert broker.values("one") == [b"first", b"0", b"1", b"2", b"3", b"4"]
    stored = batches(broker, "one")
    assert [batch.base_sequence for batch in stored] == [0, 1, 2, 3, 4, 5]
    assert len({(batch.producer_id, batch.producer_epoch) for batch in stored}) == 1


def test_no_second_batch_is_sent_before_the_first_is_acknowledged(broker: ScriptedBroker) -> None:
    """A broker without state takes any number first: it would take the second and not the first."""
    answers: list[tuple[Any, Pending[Any]]] = []

    def hold(request: Any) -> Any:
        if not isinstance(request, ProduceRequest) or answers:
            return PASS
        answers.append((request, Pending()))
        return answers[-1][1]

    broker.faults.append(hold)
    with Producer(broker.transport(), enable_idempotence=True, batch_size=0) as producer:
        futures = [producer.send("one", b"%d" % number) for number in range(3)]
        assert not futures[-1].done()
        assert len(broker.of_kind(ProduceRequest)) == 1
        answers[0][1].complete(refuse(answers[0][0], 3))
        producer.flush()
        assert [future.result().offset for future in futures] == [0, 1, 2]
    assert broker.values("one") == [b"0", b"1", b"2"]


def _records(request: Any) -> Any:
    return bytes(request.topic_data[0].partition_data[0].records)


def test_a_batch_given_up_raises_the_epoch_and_restarts_the_numbers(
    broker: ScriptedBroker,
) -> None:
    with Producer(broker.transport(), enable_idempotence=True) as producer:
        producer.send("one", b"a").result()
        refuse_times(broker, 87, 1)
        with pytest.raises(errors.InvalidRecord):
            producer.send("one", b"b").result()
        producer.send("one", b"c").result()
    first, second = batches(broker, "one")
    assert (first.producer_epoch, first.base_sequence) == (0, 0)
    assert (second.producer_epoch, second.base_sequence) == (1, 0)
    assert first.producer_id == second.producer_id
    assert len(broker.of_kind(InitProducerIdRequest)) == 1


def test_a_duplicate_counts_as_written(broker: ScriptedBroker) -> None:
    refuse_times(broker, 46, 1)
    with Producer(broker.transport(), enable_idempotence=True) as producer:
        assert producer.send("one", b"v").result().offset == -1


def test_a_batch_that_is_too_large_for_the_broker_is_split(broker: ScriptedBroker) -> None:
    def refuse_large(request: Any) -> Any:
        if _is_not_produce(request) or len(_records(request)) <= 600:
            return PASS
        return refuse(request, 10)

    broker.faults.append(refuse_large)
    seen: list[int] = []
    for idempotent in (False, True):
        broker.logs.clear()
        seen.clear()
        with Producer(
            broker.transport(), batch_size=1000, enable_idempotence=idempotent
        ) as producer:
            futures = [
                producer.send(
                    "one",
                    b"%03d" % number + bytes(97),
                    on_delivery=lambda metadata, error: seen.append(metadata.offset),
                )
                for number in range(32)
            ]
            producer.flush()
            assert [future.result().offset for future in futures] == list(range(32))
        values = broker.values("one")
        assert [value[:3] for value in values if value] == [b"%03d" % n for n in range(32)]
        assert seen == list(range(32))
        assert producer.metrics()["buffer-available-bytes"] == 33_554_432
        if idempotent:
            numbers = [batch.base_sequence for batch in batches(broker, "one")]
            assert numbers == [batch.base_offset for batch in batches(broker, "one")]


def test_acks_0_does_not_wait_for_an_offset(broker: ScriptedBroker) -> None:
    with Producer(broker.transport(), acks=0) as producer:
        assert producer.send("one", b"v").result().offset == -1
    assert broker.of_kind(ProduceRequest)[0].acks == 0
    assert broker.values("one") == [b"v"]


def test_a_record_above_a_limit_fails_its_future(broker: ScriptedBroker) -> None:
    with Producer(broker.transport(), max_request_size=1000) as producer:
        with pytest.raises(errors.MessageTooLarge, match=r"max\.request\.size=1000"):
            producer.send("one", bytes(1000)).result()
        with pytest.raises(errors.MessageTooLarge, match=r"max\.request\.size=1000"):
            producer.send_batch("one", [bytes(2000)]).result()
        producer.send("one", bytes(800)).result()


def test_many_values_become_one_batch(broker: ScriptedBroker) -> None:
    values = [b"%d" % number for number in range(1000)]
    with Producer(broker.transport()) as producer:
        before = producer.send("one", b"before")
        (where,) = producer.send_batch("one", values).result()
        assert (where.offset, where.record_count, where.partition) == (1, 1000, 0)
        assert before.result().offset == 0, "what was sent before comes before"
    assert broker.values("one") == [b"before", *values]
    assert len(batches(broker, "one")) == 2


def test_many_values_are_cut_at_the_request_size(broker: ScriptedBroker) -> None:
    values = [bytes([number % 256]) * (number % 700) for number in range(1000)]
    for settings in ({}, {"enable_idempotence": True}, {"compression_type": "gzip"}):
        broker.logs.clear()
        with Producer(broker.transport(), max_request_size=20_000, **settings) as producer:
            parts = producer.send_batch("one", values, timestamps=list(range(1000))).result()
        assert broker.values("one") == values
        assert sum(part.record_count for part in parts) == 1000
        assert all(len(data) <= 20_000 for data in broker.logs["one", 0])
        stamps = [r.timestamp for batch in batches(broker, "one") for r in batch.records()]
        assert stamps == list(range(1000))


def test_many_values_are_spread_by_their_keys(broker: ScriptedBroker) -> None:
    keys = [b"%d" % (number % 10) for number in range(100)]
    values = [b"%d" % number for number in range(100)]
    with Producer(broker.transport()) as producer:
        parts = producer.send_batch("three", values, keys=keys).result()
        single = {key: producer.send("three", b"v", key).result().partition for key in set(keys)}
    assert sum(part.record_count for part in parts) == 100
    for partition in range(3):
        found = [value for value in broker.values("three", partition) if value != b"v"]
        expected = [v for k, v in zip(keys, values, strict=True) if single[k] == partition]
        assert found == expected


def test_columns_of_unlike_length_are_refused(broker: ScriptedBroker) -> None:
    with Producer(broker.transport()) as producer:
        with pytest.raises(ValueError, match="1 keys for 2 values"):
            producer.send_batch("one", [b"a", b"b"], keys=[b"k"])
        assert producer.send_batch("one", []).result() == []


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed(broker: ScriptedBroker, codec: str) -> None:
    with Producer(broker.transport(), compression_type=codec) as producer:
        for _ in range(100):
            producer.send("one", b"again and again " * 10)
        producer.flush()
        producer.send_batch("one", [b"again and again " * 10] * 100).result()
    found = batches(broker, "one")
    assert {batch.codec for batch in found} == {["", "gzip", "snappy", "lz4", "zstd"].index(codec)}
    assert sum(batch.size for batch in found) < 16_000
    assert len(broker.values("one")) == 200


def test_compressed_batches_grow_as_the_ratio_is_learnt(broker: ScriptedBroker) -> None:
    with Producer(broker.transport(), compression_type="gzip", batch_size=2000) as producer:
        for _ in range(3000):
            producer.send("one", b"again and again " * 5)
    counts = [batch.record_count for batch in batches(broker, "one")]
    assert counts[-2] > counts[0], "a batch holds more once it is known to shrink"


def test_a_full_buffer_waits_for_room(broker: ScriptedBroker) -> None:
    with Producer(broker.transport(), buffer_memory=50_000, batch_size=16_384) as producer:
        for number in range(2000):
            producer.send("three", bytes(100), b"%d" % number)
        producer.flush()
        assert producer.metrics()["buffer-available-bytes"] == 50_000
    assert sum(len(broker.values("three", partition)) for partition in range(3)) == 2000


def test_a_buffer_that_stays_full_times_out(broker: ScriptedBroker, runtime: SimRuntime) -> None:
    broker.faults.append(lambda request: PASS if _is_not_produce(request) else Pending())
    with Producer(
        broker.transport(), buffer_memory=20_000, batch_size=16_384, max_block_ms=500
    ) as producer:
        producer.send("one", bytes(10_000))
        seen: list[Any] = []
        future = producer.send(
            "one", bytes(10_000), on_delivery=lambda m, error: seen.append(error)
        )
        assert runtime.clock.monotonic_ms() == 500
        assert future.done()
        with pytest.raises(BufferExhausted, match=r"buffer\.memory=20000 has 3616 bytes free"):
            future.result()
        assert isinstance(seen[0], TimedOut)
        assert producer.metrics()["buffer-exhausted-total"] == 1
        assert producer.metrics()["waiting-threads"] == 0
        producer.close(0)


def test_a_topic_that_does_not_exist_times_out(broker: ScriptedBroker, runtime: SimRuntime) -> None:
    errors_seen: list[Any] = []
    with Producer(broker.transport(), max_block_ms=3000) as producer:
        future = producer.send("nowhere", b"v", on_delivery=lambda m, e: errors_seen.append(e))
        with pytest.raises(TimedOut, match=r"'nowhere'.*max\.block\.ms=3000"):
            future.result()
        assert isinstance(errors_seen[0], TimedOut)
        assert runtime.clock.monotonic_ms() == 3000
        with pytest.raises(TimedOut):
            producer.send_batch("nowhere", [b"v"]).result()


def test_a_topic_made_meanwhile_is_found(broker: ScriptedBroker) -> None:
    def appear(request: Any) -> Any:
        if len(broker.requests) == 3:
            broker.topics["late"] = 1
            broker.ids["late"] = bytes([9]) * 16
        return PASS

    broker.faults.append(appear)
    with Producer(broker.transport()) as producer:
        assert producer.send("late", b"v").result().offset == 0


def test_a_partition_that_does_not_exist_is_named(broker: ScriptedBroker) -> None:
    with Producer(broker.transport()) as producer:
        with pytest.raises(errors.UnknownTopicOrPartition, match="no partition 3, only 3"):
            producer.send("three", b"v", partition=3).result()
        broker.topics["three"] = 4
        assert producer.send("three", b"v", partition=3).result().partition == 3
        assert len(producer.partitions_for("three")) == 4


def test_closing_sends_what_waits_and_refuses_the_rest(broker: ScriptedBroker) -> None:
    producer = Producer(broker.transport())
    future = producer.send("one", b"v")
    producer.close()
    producer.close()
    assert future.result().offset == 0
    with pytest.raises(ClosedError):
        producer.send("one", b"v")
    with pytest.raises(ClosedError):
        producer.flush()


def test_closing_in_no_time_gives_records_up(broker: ScriptedBroker) -> None:
    broker.faults.append(lambda request: PASS if _is_not_produce(request) else Pending())
    seen: list[Any] = []
    producer = Producer(broker.transport())
    future = producer.send("one", b"v", on_delivery=lambda metadata, error: seen.append(error))
    producer.close(0)
    with pytest.raises(ClosedError, match="before the record had an outcome"):
        future.result()
    assert isinstance(seen[0], ClosedError)


def test_a_record_after_a_pause_is_sent_as_soon(
    broker: ScriptedBroker, runtime: SimRuntime
) -> None:
    with Producer(broker.transport()) as producer:
        for number in range(4):
            producer.send("one", b"%d" % number)
            runtime.scheduler.run_for(1)
            assert len(broker.values("one")) == number + 1
            runtime.scheduler.run_for(300 * number)


def test_a_closed_producer_leaves_no_duty(broker: ScriptedBroker, runtime: SimRuntime) -> None:
    before = len(runtime.scheduler.duties())
    with Producer(broker.transport()) as producer:
        producer.send("one", b"v")
        assert len(runtime.scheduler.duties()) == before + 1
    assert len(runtime.scheduler.duties()) == before


def test_a_defect_of_the_broker_reaches_caller_and_waiter(broker: ScriptedBroker) -> None:
    def defect(request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            raise ZeroDivisionError("a defect")
        return PASS

    broker.faults.append(defect)
    with Producer(broker.transport()) as producer:
        future = producer.send("one", b"v")
        with pytest.raises(ZeroDivisionError):
            producer.flush()
        with pytest.raises(errors.UnknownServerError, match="a defect"):
            future.result()
