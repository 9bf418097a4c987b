"""`Producer.append`: one record, acknowledged; in process without a future."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog.errors import ClosedError, InvalidTimestamp, MessageTooLarge
from embedlog.testing.loopback_transport import LoopbackTransport
from wire.schemas.produce import ProduceRequest

TIME_MS = 1_700_000_000_000


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as cluster:
        cluster.create_topic("one", 1)
        cluster.create_topic("four", 4)
        yield cluster


@pytest.fixture(params=["in process", "loopback", "tcp"])
def target(request: pytest.FixtureRequest, cluster: embedlog.Cluster) -> Any:
    if request.param == "tcp":
        return cluster.listen().address
    return cluster if request.param == "in process" else LoopbackTransport(cluster)


def records(cluster: embedlog.Cluster, topic: str) -> list[Any]:
    with cluster.consumer() as consumer:
        consumer.assign([(topic, each.partition) for each in consumer.partitions_for(topic)])
        consumer.seek_to_beginning()
        found: list[Any] = []
        while batch := consumer.poll(0):
            found += batch
        return found


def test_it_returns_where_the_record_is(target: Any, cluster: embedlog.Cluster) -> None:
    with embedlog.Producer(target) as producer:
        for offset in range(3):
            where = producer.append("one", b"value", key=b"key", timestamp_ms=TIME_MS + offset)
            assert where == ("one", 0, offset, TIME_MS + offset, 3, 5)
        assert producer.append("one").offset == 3
        assert producer.append("one", b"v", headers=[("h", b"x")], partition=0).offset == 4
        assert producer.metrics()["record-send-total"] == 5
    found = records(cluster, "one")
    assert [(each.key, each.value) for each in found] == [
        *[(b"key", b"value")] * 3,
        (None, None),
        (None, b"v"),
    ]


def test_it_comes_behind_all_that_was_sent_before(target: Any, cluster: embedlog.Cluster) -> None:
    with embedlog.Producer(target, linger_ms=60_000) as producer:
        for number in range(0, 60, 3):
            producer.send("one", b"%d" % number)
            producer.send("one", b"%d" % (number + 1))
            assert producer.append("one", b"%d" % (number + 2)).offset == number + 2
    assert [each.value for each in records(cluster, "one")] == [b"%d" % n for n in range(60)]


def test_a_key_goes_where_send_puts_it(target: Any) -> None:
    with embedlog.Producer(target) as producer:
        for number in range(50):
            key = b"key %d" % number
            where = producer.append("four", b"v", key=key)
            assert where.partition == producer.send("four", b"v", key=key).result().partition


def test_records_without_a_key_change_the_partition_after_batch_size(
    cluster: embedlog.Cluster,
) -> None:
    with cluster.producer(batch_size=1_000) as producer:
        seen = {producer.append("four", bytes(200)).partition for _ in range(400)}
    assert seen == {0, 1, 2, 3}


def test_what_is_refused_is_raised(target: Any) -> None:
    with embedlog.Producer(target, max_request_size=10_000) as producer:
        producer.append("one", b"known")
        with pytest.raises(MessageTooLarge):
            producer.append("one", bytes(20_000))
        with pytest.raises(InvalidTimestamp):
            producer.append("one", b"v", timestamp_ms=2**62)
        with pytest.raises(TypeError):
            producer.append("one", "text")
        with pytest.raises(ValueError, match="timestamp_ms=-1"):
            producer.append("one", b"v", timestamp_ms=-1)
        assert producer.append("one", b"next").offset == 1
    with pytest.raises(ClosedError):
        producer.append("one", b"late")


def test_it_is_on_the_disk_when_it_returns(tmp_path: Path) -> None:
    with embedlog.open(tmp_path, durability="fsync") as cluster, cluster.producer() as producer:
        cluster.create_topic("one", 1)
        log = cluster.broker().core.replica_manager.partition("one", 0).log
        for offset in range(3):
            assert producer.append("one", b"v").offset == offset
            assert log.durability.synced_offset == log.offsets.high_watermark == offset + 1


def test_a_topic_that_was_made_anew_takes_it(cluster: embedlog.Cluster) -> None:
    with cluster.producer(retry_backoff_ms=1) as producer, cluster.admin() as admin:
        producer.append("one", b"old")
        admin.delete_topics(["one"]).check()
        cluster.create_topic("one", 1)
        assert producer.append("one", b"new").offset == 0


def test_who_intercepts_requests_sees_it(cluster: embedlog.Cluster) -> None:
    seen: list[Any] = []
    with cluster.producer() as producer:
        producer.append("one", b"unseen")
        cluster.broker().core.interceptor = lambda _context, request: seen.append(request)
        assert producer.append("one", b"seen").offset == 1
    assert [type(request) for request in seen if isinstance(request, ProduceRequest)]


@pytest.mark.parametrize(
    "settings",
    [
        {"compression_type": "lz4"},
        {"enable_idempotence": True},
        {"acks": 0},
        {"value_serializer": bytes.upper, "key_serializer": bytes.upper},
        {"partitioner_ignore_keys": True},
    ],
)
def test_every_setting_holds_for_it_too(
    cluster: embedlog.Cluster, settings: dict[str, Any]
) -> None:
    with cluster.producer(**settings) as producer:
        offsets = [producer.append("one", b"value", key=b"key").offset for _ in range(3)]
    assert offsets == ([-1] * 3 if "acks" in settings else [0, 1, 2])
    shown = b"VALUE" if "value_serializer" in settings else b"value"
    assert [each.value for each in records(cluster, "one")] == [shown] * 3


def test_threads_may_append_side_by_side(cluster: embedlog.Cluster) -> None:
    found: list[int] = []
    with cluster.producer() as producer:

        def work() -> None:
            found.extend([producer.append("one", b"v").offset for _ in range(200)])

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert producer.metrics()["record-send-total"] == 800
    assert sorted(found) == [*range(800)]
