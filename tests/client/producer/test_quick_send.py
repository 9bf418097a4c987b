"""The straight line through `send` for small records equals the general way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import embedlog
from embedlog.client.producer.batch import RecordMetadata
from embedlog.client.producer.partitioners import murmur2
from embedlog.client.producer.producer import Producer
from embedlog.runtime import Clock, Random, Runtime, Scheduler
from embedlog.testing import sim_runtime
from embedlog.testing.loopback_transport import LoopbackTransport


@pytest.fixture
def cluster_address() -> Iterator[str]:
    with embedlog.open() as cluster:
        cluster.create_topic("t", 1)
        yield cluster.listen("127.0.0.1", 0).address


Way = Callable[[embedlog.Cluster], Any]

WAYS: dict[str, Way] = {"in process": lambda cluster: cluster, "loopback": LoopbackTransport}
OURS = {"linger_ms": 600_000, "batch_size": 16_384, "enable_idempotence": False}


class StoppedClock(Clock):
    """A clock that stands still, so that no size depends on the duration of the sends."""

    __slots__ = ()

    def wall_ms(self) -> int:
        return 1_700_000_000_000


def _runtime() -> Runtime:
    clock = StoppedClock()
    return Runtime(
        clock=clock, files=sim_runtime().files, scheduler=Scheduler(clock), random=Random()
    )


Record = tuple[int, bytes | None]
"""The size of a value and, now and then, a key."""

records = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 140), st.integers(900, 1100), st.integers(7990, 17_000)),
        st.one_of(st.none(), st.none(), st.none(), st.sampled_from([b"", b"key"])),
    ),
    min_size=1,
    max_size=60,
)


def _batches(way: Way, sent: list[Record], **settings: Any) -> list[Any]:
    """Return the place of each record, the values in the log, and the size of a batch."""
    with embedlog.Cluster(runtime=_runtime()) as cluster:
        cluster.create_topic("t", 1)
        with Producer(way(cluster), OURS) as producer:
            producer.partitions_for("t")
            futures = [
                producer.send("t", bytes(size), key, timestamp_ms=None, **settings)
                for size, key in sent
            ]
            producer.flush()
            sizes = producer.metrics()["batch-size-avg"]
            places = [(future.result()[:3], future.result()[4:]) for future in futures]
        with cluster.consumer() as consumer:
            consumer.assign([("t", 0)])
            consumer.seek_to_beginning()
            found: list[Any] = []
            while sum(map(len, found)) < len(sent):
                found += [
                    [(offset, key, value) for offset, _, key, value, _ in batch]
                    for batch in consumer.poll_batches(1000)
                ]
        return [places, found, sizes]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=25, deadline=None)
@given(sent=records)
@example(sent=[(0, None), (7990, None), (8289, None)])
def test_batches_are_those_of_the_general_way(way: str, sent: list[Record]) -> None:
    quick = _batches(WAYS[way], sent)
    general = _batches(WAYS[way], sent, headers=())
    assert quick == general


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [1, 63, 64, 100, 1024, 8000])
def test_many_records_of_one_size_fill_the_same_batches(way: str, size: int) -> None:
    sent: list[Record] = [(size, None)] * (100_000 // (size + 10) + 20)
    quick = _batches(WAYS[way], sent)
    assert quick == _batches(WAYS[way], sent, headers=())


def test_a_key_serializer_is_not_asked_about_no_key() -> None:
    asked: list[Any] = []

    def serialize(key: str) -> bytes:
        asked.append(key)
        return key.encode()

    with embedlog.open() as cluster, Producer(cluster, key_serializer=serialize) as producer:
        for size in (10, 9000):
            producer.send("t", bytes(size)).result()
        producer.send("t", b"v", "key").result()
        producer.send_batch("t", [b"v", b"w"], keys=[None, "other"]).result()
    assert asked == ["key", "other"]


def test_records_with_keys_go_elsewhere_once_the_topic_has_more_partitions() -> None:
    keys = [b"key-%d" % number for number in range(40)]
    with (
        embedlog.open() as cluster,
        embedlog.Admin(cluster) as admin,
        Producer(cluster) as producer,
    ):
        cluster.create_topic("t", 1)
        for _ in range(2):
            assert {producer.send("t", b"v", key).result().partition for key in keys} == {0}
        admin.create_partitions({"t": 4}).check()
        named = [murmur2(key) & 0x7FFF_FFFF for key in keys]
        producer.send("t", b"v", partition=3).result()  # which tells it the partitions
        for _ in range(2):
            found = [producer.send("t", b"v", key).result().partition for key in keys]
        assert found == [number % 4 for number in named]


def test_a_callback_hears_of_each_record_with_and_without_a_key() -> None:
    heard: list[tuple[int, int, int]] = []
    with embedlog.open() as cluster, Producer(cluster, OURS) as producer:
        cluster.create_topic("t", 1)
        for number in range(300):
            key = b"k" * (number % 3) if number % 2 else None
            producer.send(
                "t",
                bytes(number),
                key,
                on_delivery=lambda metadata, error: heard.append(metadata[2:3] + metadata[4:]),
            )
        producer.flush()
    assert heard == [(number, number % 3 if number % 2 else -1, number) for number in range(300)]


def test_a_callback_that_raises_is_passed_over(cluster_address: str) -> None:
    """Delivery goes on with the next callback, and none is called twice."""
    heard: list[int] = []
    reported = threading.Semaphore(0)
    hook, threading.excepthook = threading.excepthook, lambda _: reported.release()

    def hear(metadata: RecordMetadata, error: Exception | None) -> None:
        heard.append(metadata.offset)
        if metadata.offset in {3, 4}:
            raise RuntimeError(metadata.offset)

    try:
        with Producer(cluster_address) as producer:
            for _ in range(10):
                producer.send("t", b"v", on_delivery=hear)
            producer.flush(30)
        for _ in range(2):  # each by a thread that ends with it, after another thread has gone on
            assert reported.acquire(timeout=10)
    finally:
        threading.excepthook = hook
    assert heard == list(range(10))
