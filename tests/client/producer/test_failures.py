"""Failed deliveries must not go unnoticed."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import embedlog
import embedlog.aio
from embedlog import errors


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open(auto_create_topics_enable=False) as opened:
        opened.create_topic("t", config={"max.message.bytes": 1000})
        yield opened


@pytest.fixture(params=["in process", "tcp"])
def target(request: pytest.FixtureRequest, cluster: embedlog.Cluster) -> Any:
    return cluster if request.param == "in process" else cluster.listen().address


LARGE = bytes(5_000)


@pytest.mark.slow
def test_leaving_a_with_raises_what_nobody_looked_at(target: Any) -> None:
    with pytest.raises(errors.MessageTooLarge) as raised, embedlog.Producer(target) as producer:
        producer.send("t", b"fine")
        producer.flush()
        producer.send("t", LARGE)
        producer.flush()
        producer.send("t", LARGE)
    (note,) = raised.value.__notes__
    assert "2 records for t-0 were not delivered, and nobody looked at their futures" in note


@pytest.mark.slow
def test_it_raises_for_batches_too(target: Any) -> None:
    with pytest.raises(errors.MessageTooLarge), embedlog.Producer(target) as producer:
        producer.send_batch("t", [LARGE])


@pytest.mark.slow
def test_nothing_is_raised_for_what_was_looked_at(target: Any) -> None:
    heard: list[Any] = []
    with embedlog.Producer(target) as producer:
        assert producer.send("t", LARGE).exception() is not None
        with pytest.raises(errors.MessageTooLarge):
            producer.send("t", LARGE).result()
        producer.send("t", LARGE, on_delivery=lambda _, error: heard.append(error))
        assert producer.send_batch("t", [LARGE]).exception() is not None
    assert len(heard) == 1


@pytest.mark.slow
def test_one_look_at_a_batch_is_a_look_at_all_of_it(target: Any) -> None:
    """Even if it became several batches that all failed, and only the first error is raised."""
    with embedlog.Producer(target, max_request_size=20_000) as producer:
        future = producer.send_batch("t", [LARGE] * 10)
        assert len(future.batches) > 1
        with pytest.raises(errors.MessageTooLarge):
            future.result()


@pytest.mark.slow
def test_an_exception_of_the_user_is_not_replaced(target: Any) -> None:
    with pytest.raises(ZeroDivisionError), embedlog.Producer(target) as producer:
        producer.send("t", LARGE)
        raise ZeroDivisionError


@pytest.mark.slow
def test_an_interceptor_that_is_told_is_not_the_user(target: Any) -> None:
    class Interceptor:
        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            heard.append(error)

    heard: list[Any] = []
    for size in (5_000, 2 << 20):  # refused by the broker, refused by the client
        producer = embedlog.Producer(target, interceptor_classes=[Interceptor])
        with pytest.raises(embedlog.KafkaError), producer:
            producer.send("t", bytes(size))
    assert len(heard) == 2


@pytest.mark.slow
def test_close_warns(target: Any) -> None:
    producer = embedlog.Producer(target)
    producer.send("t", LARGE)
    with pytest.warns(RuntimeWarning, match="1 records for t-0 were not delivered") as warned:
        producer.close()
    assert warned[0].filename == __file__


def test_a_cluster_that_is_closed_first_warns() -> None:
    cluster = embedlog.open()
    cluster.create_topic("t", config={"max.message.bytes": 1000})
    producer = cluster.producer()
    producer.send("t", LARGE)
    with pytest.warns(RuntimeWarning, match="1 records for t-0 were not delivered"):
        cluster.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        producer.close()


@pytest.mark.slow
def test_what_is_told_is_told_once(target: Any) -> None:
    producer = embedlog.Producer(target)
    with pytest.raises(errors.MessageTooLarge), producer:
        producer.send("t", LARGE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        producer.close()


def test_a_topic_that_cannot_appear_is_refused_at_once(cluster: embedlog.Cluster) -> None:
    with cluster.producer() as producer:
        for _ in range(2):
            with pytest.raises(errors.UnknownTopicOrPartition, match="no topic 'elsewhere'"):
                producer.send("elsewhere", b"v").result()
        with pytest.raises(errors.UnknownTopicOrPartition):
            producer.send_batch("elsewhere", [b"v"]).result()
        with pytest.raises(errors.UnknownTopicOrPartition):
            producer.partitions_for("elsewhere")
        cluster.create_topic("elsewhere")
        assert producer.send("elsewhere", b"v").result().offset == 0


def test_it_is_refused_to_the_asyncio_producer_too(cluster: embedlog.Cluster) -> None:
    async def main() -> None:
        async with embedlog.aio.Producer(cluster) as producer:
            with pytest.raises(errors.UnknownTopicOrPartition):
                await producer.send("elsewhere", b"v")

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "keywords", "expected"),
    [
        ((b"t", b"v"), {}, "send(topic=b't'): expected a topic's name as str, got bytes"),
        ((["t"], b"v"), {}, "send(topic=['t']): expected a topic's name as str, got list"),
        (("", b"v"), {}, "a topic's name must not be empty"),
        (("t", b"v"), {"partition": 0.0}, "send(partition=0.0): expected a partition's number"),
        (("t", b"v"), {"partition": "0"}, "send(partition='0'): expected a partition's number"),
        (("t", b"v"), {"partition": True}, "send(partition=True): expected a partition's number"),
        (("t", b"v"), {"timestamp_ms": 1.5}, "send(timestamp_ms=1.5): expected milliseconds"),
        (("t", b"v"), {"headers": {"a": b"1"}}, "write list(headers.items())"),
        (("t", b"v"), {"headers": {}}, "write list(headers.items())"),
        (("t", b"v"), {"headers": [("a", 1)]}, "header 'a': its value is int, not bytes"),
        (("t", b"v"), {"on_delivery": 5}, "send(on_delivery=5): expected a function"),
        (("t", 1.5), {}, "value is float, not bytes"),
    ],
)
def test_a_wrong_argument_is_named_and_breaks_nothing(
    target: Any, arguments: Any, keywords: Any, expected: str
) -> None:
    with embedlog.Producer(target) as producer:
        for _ in range(2):  # before the topic is known, and when it is
            with pytest.raises((TypeError, ValueError)) as raised:
                producer.send(*arguments, **keywords)
            assert expected in str(raised.value)
            producer.send("t", b"v").result(10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        ({"topic": b"t", "values": [b"v"]}, "send_batch(topic=b't')"),
        ({"values": b"abc"}, "send_batch(values=b'abc'): expected a list of values"),
        ({"values": "abc"}, "send_batch(values='abc'): expected a list of values"),
        ({"values": 5}, "send_batch(values=5): expected a list of values"),
        ({"values": [b"v"], "keys": b"k"}, "send_batch(keys=b'k'): expected a list of keys"),
        ({"values": [b"v"], "timestamps": 1.5}, "send_batch(timestamps=1.5)"),
        ({"values": [b"v"], "timestamps": [1.5]}, "send_batch(timestamps[0]=1.5)"),
        ({"values": [b"v"], "timestamps": [-1]}, "send_batch(timestamps[0]=-1)"),
        ({"values": [b"v"], "headers": [{"a": b""}]}, "write list(headers.items())"),
        ({"values": [b"v"], "partition": "0"}, "send_batch(partition='0')"),
        ({"values": [1]}, "value is int, not bytes"),
    ],
)
def test_a_wrong_argument_of_a_batch_too(target: Any, keywords: Any, expected: str) -> None:
    async def main() -> None:
        async with embedlog.aio.Producer(target) as producer:
            with pytest.raises((TypeError, ValueError)) as raised:
                await producer.send_batch(**{"topic": "t", **keywords})
            assert expected in str(raised.value)

    with embedlog.Producer(target) as producer:
        with pytest.raises((TypeError, ValueError)) as raised:
            producer.send_batch(**{"topic": "t", **keywords})
        assert expected in str(raised.value)
        producer.send("t", b"v").result(10)
    asyncio.run(main())


@pytest.mark.slow
def test_records_of_a_partition_that_is_gone_time_out() -> None:
    with embedlog.open() as cluster, cluster.admin() as admin:
        cluster.create_topic("t", 4)
        limits = {"delivery_timeout_ms": 500, "request_timeout_ms": 400}
        with cluster.producer(**limits) as producer:
            assert producer.send("t", b"x", partition=3).result().offset == 0
            admin.delete_topics(["t"]).check()
            cluster.create_topic("t", 1)
            lost = producer.send("t", b"y", partition=3)
            with pytest.raises(errors.TimedOut):
                lost.result(30_000)
            assert producer.send("t", b"z", partition=0).result().offset == 0
