"""The sender of a producer whose broker is in this process: appends, or requests if intercepted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest

import embedlog
from embedlog.client.producer.batch import ProducerBatch
from embedlog.errors import NotEnoughReplicas, UnknownTopicOrPartition, error_for
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from wire.error_codes import ErrorCode
from wire.schemas.produce import ProduceRequest, ProduceResponse, TopicProduceResponse


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as cluster:
        cluster.create_topic("one", 1)
        yield cluster


class Interceptor:
    """Sees produce requests, and can answer the next one instead of the broker."""

    def __init__(self, cluster: embedlog.Cluster) -> None:
        self.seen: list[ProduceRequest] = []
        self.answers: list[Any] = []
        cluster.broker().core.interceptor = self._look

    def _look(self, _context: Any, request: Any) -> Any:
        if not isinstance(request, ProduceRequest):
            return None
        self.seen.append(request)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


def refused(code: int) -> ProduceResponse:
    answer = ProduceResponse(responses=[TopicProduceResponse(name="one")])
    answer.responses[0].partition_responses.append(_partition(code))
    return answer


def _partition(code: int) -> Any:
    from wire.schemas.produce import PartitionProduceResponse

    return PartitionProduceResponse(index=0, error_code=code, base_offset=-1)


def values(cluster: embedlog.Cluster) -> list[Any]:
    with cluster.consumer() as consumer:
        consumer.assign([("one", 0)])
        consumer.seek_to_beginning()
        return [record.value for record in consumer.poll(0)]


@pytest.mark.parametrize(
    "settings",
    [{}, {"compression_type": "gzip"}, {"enable_idempotence": True}, {"linger_ms": 1000}],
)
def test_every_kind_of_record_gets_there(
    cluster: embedlog.Cluster, settings: dict[str, Any]
) -> None:
    with cluster.producer(**settings) as producer:
        assert producer.send("one", b"a").result().offset == 0
        assert producer.send("one", b"b", headers=[("h", b"v")]).result().offset == 1
        producer.send_batch("one", [bytearray(b"c"), b"dd"]).result()
        producer.send_batch("one", [b"e", None]).result()
    assert values(cluster) == [b"a", b"b", b"c", b"dd", b"e", None]


def test_who_intercepts_requests_sees_what_is_sent_in_process(cluster: embedlog.Cluster) -> None:
    with cluster.producer() as producer:
        producer.send("one", b"unseen").result()
        interceptor = Interceptor(cluster)
        assert producer.send("one", b"seen").result().offset == 1
        cluster.broker().core.interceptor = None
        assert producer.send("one", b"unseen again").result().offset == 2
    (request,) = interceptor.seen
    (topic,) = request.topic_data
    assert topic.name == "one"
    assert type(topic.partition_data[0].records) is bytes
    assert values(cluster) == [b"unseen", b"seen", b"unseen again"]


def test_what_is_answered_later_keeps_its_place(cluster: embedlog.Cluster) -> None:
    interceptor = Interceptor(cluster)
    late: Pending[Any] = Pending()
    interceptor.answers.append(late)
    told: list[int] = []
    with cluster.producer() as producer:
        first = producer.send_batch("one", [b"first"])
        assert not first.done()
        cluster.broker().core.interceptor = None
        second = producer.send("one", b"second", on_delivery=lambda where, _: told.append(1))
        assert second.result().offset == 0
        answer = refused(0)
        answer.responses[0].partition_responses[0].base_offset = 7
        answer.responses[0].topic_id = interceptor.seen[0].topic_data[0].topic_id
        late.complete(answer)
        assert first.result()[0].offset == 7
    assert told == [1]


def test_a_refusal_that_may_pass_is_tried_again_and_another_fails_the_record(
    cluster: embedlog.Cluster,
) -> None:
    interceptor = Interceptor(cluster)
    interceptor.answers += [refused(ErrorCode.NOT_ENOUGH_REPLICAS), None]
    with cluster.producer(retry_backoff_ms=1) as producer:
        assert producer.send("one", b"a").result().offset == 0
        assert len(interceptor.seen) == 2
        interceptor.answers.append(refused(ErrorCode.INVALID_RECORD))
        assert producer.send("one", b"b").exception() is not None
    assert values(cluster) == [b"a"]


def test_what_the_broker_itself_refuses_is_tried_again(
    cluster: embedlog.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = cluster.broker().core.replica_manager.partition("one", 0)
    partition.min_isr = 2
    with cluster.producer(retry_backoff_ms=1, acks="all", retries=2) as producer:
        with pytest.raises(NotEnoughReplicas):
            producer.send("one", b"a").result()
        assert producer.metrics()["record-retry-total"] == 2
        partition.min_isr = 1
        assert producer.send("one", b"b").result().offset == 0


def test_a_topic_that_was_made_anew_is_found(cluster: embedlog.Cluster) -> None:
    with cluster.producer(retry_backoff_ms=1) as producer, cluster.admin() as admin:
        producer.send("one", b"old").result()
        admin.delete_topics(["one"]).check()
        cluster.create_topic("one", 1)
        assert producer.send("one", b"new").result().offset == 0
    assert values(cluster) == [b"new"]


def test_a_topic_that_is_gone_fails_the_record_in_time() -> None:
    with embedlog.open(config={"auto.create.topics.enable": "false"}) as cluster:
        cluster.create_topic("one", 1)
        settings = {"delivery.timeout.ms": 60, "request.timeout.ms": 50, "max.block.ms": 50}
        with cluster.producer(config=settings) as producer, cluster.admin() as admin:
            producer.send("one", b"old").result()
            admin.delete_topics(["one"]).check()
            error = producer.send("one", b"new").exception()
            assert isinstance(error, embedlog.TimedOut | UnknownTopicOrPartition)


def test_a_defect_of_the_broker_is_seen_and_the_next_record_goes_on(
    cluster: embedlog.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster.producer() as producer:
        producer.send("one", b"a").result()
        with monkeypatch.context() as patch:
            patch.setattr(
                type(cluster.broker().core.replica_manager), "append", lambda *_, **__: 1 // 0
            )
            with pytest.raises(ZeroDivisionError):
                producer.send("one", b"b").result()
        assert producer.send("one", b"c").result().offset == 1


def test_an_awaited_record_is_synced_when_its_result_is_there(tmp_path: Any) -> None:
    with embedlog.open(tmp_path, durability="fsync") as cluster:
        cluster.admin().create_topics({"one": 1})
        producer = cluster.producer()
        for offset in range(3):
            assert producer.send("one", b"v").result().offset == offset
            log = cluster.broker().core.replica_manager.partition("one", 0).log
            assert log.durability.synced_offset == log.offsets.high_watermark == offset + 1


def test_records_of_a_batch_that_waits_for_the_disk_are_told_when_it_is_synced(
    tmp_path: Any,
) -> None:
    with embedlog.open(tmp_path, durability="fsync") as cluster:
        cluster.create_topic("one", 1)
        told: list[int] = []
        with cluster.producer() as producer:
            for _ in range(10):
                producer.send("one", b"v", on_delivery=lambda where, _: told.append(where.offset))
            producer.flush()
            assert told == [*range(10)]
            assert producer.send_batch("one", [b"v"] * 5).result()[0].offset == 10


def test_without_acknowledgements_nobody_tells_the_offset(cluster: embedlog.Cluster) -> None:
    with cluster.producer(acks=0) as producer:
        assert producer.send("one", b"a").result().offset == -1
    assert values(cluster) == [b"a"]


def test_a_batch_larger_than_a_request_may_be_goes_in_parts(cluster: embedlog.Cluster) -> None:
    chosen = {"max_request_size": 2_000, "batch_size": 20_000, "linger_ms": 60_000}
    with cluster.producer(**chosen) as producer:
        futures = [producer.send("one", bytes(500)) for _ in range(12)]
        producer.flush()
        assert [future.result().offset for future in futures] == [*range(12)]


def test_the_sticky_partition_changes_after_one_batch_size_of_awaited_records() -> None:
    with (
        embedlog.Cluster(runtime=sim_runtime(seed=1)) as cluster,
        cluster.producer(batch_size=1000) as producer,
    ):
        cluster.create_topic("three", 3)
        partitions = [producer.send("three", bytes(88)).result().partition for _ in range(200)]
    runs = [len(list(run)) for _, run in groupby(partitions)]
    # An awaited record goes alone; ten of 100 bytes make up batch.size. Random draws may remain.
    assert {run % 10 for run in runs} == {0}, runs
    assert 10 in runs


def test_the_error_of_a_refusal_says_what_the_broker_says(cluster: embedlog.Cluster) -> None:
    with cluster.producer() as producer:
        error = producer.send("one", b"v", timestamp_ms=2**62).exception()
    assert isinstance(error, type(error_for(ErrorCode.INVALID_TIMESTAMP)))
    assert error.record_errors


def test_one_batch_at_a_time_waits_for_the_one_before(cluster: embedlog.Cluster) -> None:
    interceptor = Interceptor(cluster)
    late: Pending[Any] = Pending()
    interceptor.answers.append(late)
    settings = {"max_in_flight_requests_per_connection": 1, "enable_idempotence": False}
    with cluster.producer(retry_backoff_ms=1, **settings) as producer:
        producer.send_batch("one", [b"first"])
        producer.send_batch("one", [b"second"])
        assert len(interceptor.seen) == 1
        answer = refused(ErrorCode.NOT_ENOUGH_REPLICAS)
        answer.responses[0].topic_id = interceptor.seen[0].topic_data[0].topic_id
        late.complete(answer)
        producer.flush()
    assert values(cluster) == [b"first", b"second"]


def test_records_are_not_lost_by_an_interrupt_before_they_are_appended(
    cluster: embedlog.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = ProducerBatch.encode_built

    def interrupt(batch: ProducerBatch) -> Any:
        monkeypatch.setattr(ProducerBatch, "encode_built", encode)
        raise KeyboardInterrupt

    with cluster.producer(enable_idempotence=False, linger_ms=60_000) as producer:
        future = producer.send("one", b"a")
        monkeypatch.setattr(ProducerBatch, "encode_built", interrupt)
        with pytest.raises(KeyboardInterrupt):
            producer.flush()
        assert future.result().offset == 0
    assert values(cluster) == [b"a"]
