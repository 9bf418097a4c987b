"""Interceptors, leader hints, slow leaders, metrics: a producer against a scripted broker."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import errors
from embedlog.client.errors import SerializationError
from embedlog.client.producer.producer import Producer
from embedlog.client.producer.records import ProducerRecord
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime
from tests.client.scripted_broker import PASS, ScriptedBroker
from wire.schemas.metadata import MetadataRequest
from wire.schemas.produce import (
    LeaderIdAndEpoch,
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


class Recorder:
    """An interceptor that marks records and notes their outcomes."""

    def __init__(self, mark: bytes = b"!", heard: list[Any] | None = None) -> None:
        self.mark = mark
        self.heard = heard if heard is not None else []

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self.heard.append(("send", record.topic, record.value))
        return record.replace(value=record.value + self.mark)

    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        self.heard.append(("end", *metadata[:3], type(error)))

    def close(self) -> None:
        self.heard.append(("close",))


NONE = type(None)


def test_interceptors_change_records_and_are_told_before_the_callback(
    broker: ScriptedBroker,
) -> None:
    heard: list[Any] = []
    chain = [Recorder(b"1", heard), Recorder(b"2", heard)]
    with Producer(broker.transport(), interceptor_classes=chain) as producer:
        future = producer.send(
            "one", b"v", on_delivery=lambda metadata, error: heard.append(("callback", error))
        )
        assert future.result().offset == 0
    assert broker.values("one") == [b"v12"]
    assert heard == [
        ("send", "one", b"v"),
        ("send", "one", b"v1"),
        ("end", "one", 0, 0, NONE),
        ("end", "one", 0, 0, NONE),
        ("callback", None),
        ("close",),
        ("close",),
    ]


def test_interceptors_see_records_before_they_are_serialized_and_may_redirect_them(
    broker: ScriptedBroker,
) -> None:
    class Redirects:
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            assert record.value == {"a": 1}
            headers = [("from", record.topic.encode())]
            return record.replace(topic="three", partition=2, headers=headers, value="changed")

    with Producer(
        broker.transport(), interceptor_classes=[Redirects], value_serializer=str.encode
    ) as producer:
        where = producer.send("one", {"a": 1}).result()
    assert (where.topic, where.partition) == ("three", 2)
    assert broker.values("three", 2) == [b"changed"]
    with pytest.raises(TypeError, match="a record has no colour"):
        ProducerRecord(("t", None, None, None, None, None)).replace(colour=1)


def test_interceptors_hear_of_records_that_never_left(broker: ScriptedBroker) -> None:
    def refuses(value: bytes) -> bytes:
        if value.startswith(b"bad"):
            raise ValueError(value)
        return value

    recorder = Recorder(b"")
    with Producer(
        broker.transport(),
        interceptor_classes=[recorder],
        value_serializer=refuses,
        max_request_size=1000,
    ) as producer:
        assert isinstance(producer.send("one", bytes(2000)).exception(), errors.MessageTooLarge)
        with pytest.raises(SerializationError):
            producer.send("one", b"bad", partition=0)
        with pytest.raises(SerializationError):
            producer.send_batch("three", [b"fine", b"bad"])
        (failed,) = [producer.send_batch("one", [bytes(2000)])]
        assert isinstance(failed.exception(), errors.MessageTooLarge)
        assert producer.metrics()["record-error-total"] == 2
    ends = [each[1:] for each in recorder.heard if each[0] == "end"]
    assert ends == [
        ("one", -1, -1, errors.MessageTooLarge),
        ("one", 0, -1, SerializationError),
        ("three", -1, -1, SerializationError),
        ("three", -1, -1, SerializationError),
        ("one", -1, -1, errors.MessageTooLarge),
    ]


def test_interceptors_see_each_record_of_a_batch(broker: ScriptedBroker) -> None:
    recorder = Recorder()

    class ByValue:
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record.replace(topic="three", partition=1) if b"3" in record.value else record

    with Producer(broker.transport(), interceptor_classes=[recorder, ByValue]) as producer:
        future = producer.send_batch(
            "one", [b"1", b"3", b"2"], timestamps=[5, 6, 7], headers=[[("h", b"x")], [], []]
        )
        parts = future.result()
    assert sorted(part[:3] for part in parts) == [("one", 0, 0), ("three", 1, 0)]
    assert broker.values("one") == [b"1!", b"2!"]
    assert broker.values("three", 1) == [b"3!"]
    ends = [each for each in recorder.heard if each[0] == "end"]
    assert ends == [
        ("end", "one", 0, 0, NONE),
        ("end", "one", 0, 1, NONE),
        ("end", "three", 1, 0, NONE),
    ]


def test_after_close_no_interceptor_is_asked(broker: ScriptedBroker) -> None:
    recorder = Recorder()
    producer = Producer(broker.transport(), interceptor_classes=[recorder])
    producer.close()
    for call in (lambda: producer.send("one", b"v"), lambda: producer.send_batch("one", [b"v"])):
        with pytest.raises(errors.ClosedError):
            call()
    assert recorder.heard == [("close",)]


def test_a_broker_that_names_the_new_leader_is_believed_at_once(
    broker: ScriptedBroker, runtime: SimRuntime
) -> None:
    """KIP-951: no back-off, although the first attempt failed."""
    refused: list[int] = []

    def moved(request: Any) -> Any:
        if not isinstance(request, ProduceRequest) or refused:
            return PASS
        refused.append(1)
        answer = PartitionProduceResponse(
            index=0,
            error_code=6,
            base_offset=-1,
            current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=7),
        )
        topic = TopicProduceResponse(
            topic_id=request.topic_data[0].topic_id, partition_responses=[answer]
        )
        return ProduceResponse(responses=[topic])

    broker.faults.append(moved)
    with Producer(broker.transport(), enable_idempotence=True) as producer:
        assert producer.send("one", b"v").result().offset == 0
    assert runtime.clock.monotonic_ms() == 0
    assert len(broker.of_kind(ProduceRequest)) == 2


def test_without_a_hint_the_back_off_is_kept(broker: ScriptedBroker, runtime: SimRuntime) -> None:
    refused: list[int] = []

    def once(request: Any) -> Any:
        if not isinstance(request, ProduceRequest) or refused:
            return PASS
        refused.append(1)
        failed: Pending[Any] = Pending()
        failed.fail(errors.NotLeaderOrFollower())
        return failed

    broker.faults.append(once)
    with Producer(broker.transport()) as producer:
        producer.send("one", b"v").result()
    assert 80 <= runtime.clock.monotonic_ms() <= 120


def test_stale_metadata_is_asked_for_again(broker: ScriptedBroker) -> None:
    """The topic is deleted and created again: records go to the new topic, with another id."""
    with Producer(broker.transport(), enable_idempotence=True) as producer:
        producer.send("one", b"a").result()
        old, broker.ids["one"] = broker.ids["one"], bytes([77]) * 16

        def unknown(request: Any) -> Any:
            if isinstance(request, ProduceRequest) and request.topic_data[0].topic_id == old:
                answer = PartitionProduceResponse(index=0, error_code=100, base_offset=-1)
                topic = TopicProduceResponse(topic_id=old, partition_responses=[answer])
                return ProduceResponse(responses=[topic])
            return PASS

        broker.faults.append(unknown)
        producer.send("one", b"b").result()
    assert broker.values("one") == [b"a", b"b"]


def test_one_expired_batch_does_not_take_its_request_with_it(
    broker: ScriptedBroker, runtime: SimRuntime
) -> None:
    held: list[tuple[Any, Pending[Any]]] = []

    def hold(request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            held.append((request, Pending()))
            return held[-1][1]
        return PASS

    broker.faults.append(hold)
    settings = {"request_timeout_ms": 100, "delivery_timeout_ms": 1100, "linger_ms": 1000}
    with Producer(broker.transport(), **settings) as producer:
        old = producer.send("three", b"old", partition=0)
        runtime.scheduler.run_for(900)
        young = producer.send("three", b"young", partition=1)
        with pytest.raises(errors.TimedOut):
            producer.flush(0)
        assert len(held) == 1
        runtime.scheduler.run_for(300)
        assert old.done() and not young.done()
        assert isinstance(old.exception(), errors.TimedOut)
        held[0][1].complete(broker.answer(held[0][0]))
        assert young.result().offset == 0
        metrics = producer.metrics()
        assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]
        assert (metrics["record-send-total"], metrics["record-error-total"]) == (1, 1)


@pytest.mark.parametrize("timeout_ms", [0, 50])
def test_a_slow_leader_gets_no_records_without_a_key(
    broker: ScriptedBroker, runtime: SimRuntime, timeout_ms: int
) -> None:
    """partitioner.availability.timeout.ms: node 1 leads partition 0 and answers nothing."""
    broker.leaders = {("three", 1): 2, ("three", 2): 2}
    stuck: list[Pending[Any]] = []

    def hold(request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            for topic in request.topic_data:
                if any(data.index == 0 for data in topic.partition_data):
                    stuck.append(Pending())
                    return stuck[-1]
        return PASS

    broker.faults.append(hold)
    settings = {
        "partitioner_availability_timeout_ms": timeout_ms,
        "batch_size": 200,
        "linger_ms": 0,
    }
    producer = Producer(broker.transport(), **settings)
    first = [
        producer.send("three", bytes(200), partition=partition)
        for partition in (0, 0, 0, 0, 0, 0, 1, 2)
    ]
    for _ in range(30):
        runtime.scheduler.run_for(5)
        assert [future.done() for future in first] == 6 * [False] + 2 * [True]
    assert len(stuck) == 5
    futures = []
    for _ in range(60):
        futures.append(producer.send("three", bytes(150)))
        runtime.scheduler.run_for(2)
    assert (0 in {future.batch.partition for future in futures}) == (timeout_ms == 0)
    producer.close(0)
    if timeout_ms:
        assert {future.exception() for future in futures[:-1]} == {None}


def test_metrics_have_kafkas_names_and_count(broker: ScriptedBroker, runtime: SimRuntime) -> None:
    failures = [6, 6]

    def refuse(request: Any) -> Any:
        if not isinstance(request, ProduceRequest) or not failures:
            return PASS
        failed: Pending[Any] = Pending()
        failed.fail(errors.error_for(failures.pop()))
        return failed

    broker.faults.append(refuse)
    with Producer(
        broker.transport(), compression_type="gzip", enable_idempotence=True, linger_ms=20
    ) as producer:
        for _ in range(10):
            producer.send("one", b"again and again " * 50)
        producer.flush()
        metrics = producer.metrics()
    assert metrics["record-send-total"] == 10
    assert metrics["record-retry-total"] == 20
    assert metrics["record-error-total"] == 0
    assert metrics["request-total"] == 3
    assert metrics["records-per-request-avg"] == 10
    assert metrics["byte-total"] == 3 * len(broker.logs["one", 0][0])
    assert metrics["compression-rate-avg"] < 0.1
    assert metrics["batch-size-avg"] == len(broker.logs["one", 0][0])
    assert metrics["record-queue-time-max"] == runtime.clock.monotonic_ms()
    assert metrics["metadata-age"] >= 0
    assert metrics["requests-in-flight"] == metrics["waiting-threads"] == 0
    assert metrics["flush-time-ns-total"] == runtime.clock.monotonic_ms() * 1_000_000
    assert all(isinstance(value, int | float) for value in metrics.values())


def test_only_new_topics_are_asked_for_when_they_are_first_sent_to(broker: ScriptedBroker) -> None:
    with Producer(broker.transport()) as producer:
        producer.send("one", b"v").result()
        producer.send("three", b"v").result()
    asked = [
        [topic.name for topic in request.topics] for request in broker.of_kind(MetadataRequest)
    ]
    assert asked == [["one"], ["three"]]


def test_a_partition_that_is_being_added_is_waited_for_over_the_network() -> None:
    import embedlog
    from embedlog.testing.loopback_transport import LoopbackTransport

    with embedlog.open(num_partitions=1) as cluster:
        cluster.create_topic("t", partitions=1)
        with Producer(LoopbackTransport(cluster), max_block_ms=150, linger_ms=0) as producer:
            error = producer.send("t", b"v", partition=1).exception()
            assert isinstance(error, errors.TimedOut)
            assert "topic 't' has no partition 1, only 1, also after max.block.ms=150" in str(error)
            with cluster.admin() as admin:
                admin.create_partitions({"t": 2}).check()
            assert producer.send("t", b"v", partition=1).result().partition == 1


def test_a_compressed_batch_that_is_too_large_is_split_and_the_next_ones_are_smaller(
    broker: ScriptedBroker, runtime: SimRuntime
) -> None:
    """After values that compress well, values come that do not."""
    noise = runtime.random.bytes

    def refuse_large(request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            (topic,) = request.topic_data
            (data,) = topic.partition_data
            if len(bytes(data.records)) > 1500:
                answer = PartitionProduceResponse(index=0, error_code=10, base_offset=-1)
                refused = TopicProduceResponse(
                    topic_id=topic.topic_id, partition_responses=[answer]
                )
                return ProduceResponse(responses=[refused])
        return PASS

    broker.faults.append(refuse_large)
    with Producer(broker.transport(), compression_type="gzip", batch_size=1000) as producer:
        queues = producer.send("one", b"v").batch.queue.topic
        producer.flush()
        queues.compression_ratio = 0.1
        values = [noise(100) for _ in range(60)]
        futures = [producer.send("one", value) for value in values]
        producer.flush()
        assert [future.result().offset for future in futures] == list(range(1, 61))
        assert queues.compression_ratio >= 0.99
        metrics = producer.metrics()
        assert metrics["batch-split-total"] >= 1
        assert metrics["record-retry-total"] == 0, "to be split is no attempt"
        assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]
        assert producer.send("one", noise(100)).batch.size_limit < 1000
    assert broker.values("one")[1:61] == values
