"""Calls that begin inside other calls of their thread: by handlers, finalizers and callbacks."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import embedlog
from embedlog.errors import ClosedError, IllegalState, NestedCall
from embedlog.runtime.outer_call import INSIDE, LENT, PUT_OFF

_KEY = embedlog.TopicPartition("events", 0)
_WAIT_S = 30

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs Unix signals")


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as made:
        made.create_topic("events", 1)
        yield made
    assert not LENT
    assert not PUT_OFF
    assert threading.get_ident() not in INSIDE


@pytest.fixture
def producer(cluster: embedlog.Cluster) -> Iterator[embedlog.Producer]:
    with cluster.producer() as made:
        yield made


@pytest.fixture
def on_signal() -> Iterator[Callable[[Callable[[], object]], None]]:
    """`on_signal(call)` makes `call` in a signal handler of this thread, a moment later."""
    former = signal.getsignal(signal.SIGALRM)

    def arrange(call: Callable[[], object]) -> None:
        signal.signal(signal.SIGALRM, lambda _number, _frame: call())
        signal.setitimer(signal.ITIMER_REAL, 0.02)

    yield arrange
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, former)


def values(cluster: embedlog.Cluster) -> list[Any]:
    with cluster.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([_KEY])
        found = []
        while records := consumer.poll(0):
            found += [record.value for record in records]
        return found


def waiting(cluster: embedlog.Cluster) -> embedlog.Consumer:
    consumer = cluster.consumer(group_id="g")
    consumer.subscribe(["events"])
    while not consumer.assignment():
        consumer.poll(10)
    return consumer


# Signal handlers


def test_the_error_says_what_to_do(
    cluster: embedlog.Cluster, producer: embedlog.Producer, on_signal: Callable[..., None]
) -> None:
    errors = []

    def handle() -> None:
        with pytest.raises(NestedCall) as caught:
            producer.append("events", b"refused")
        errors.append(str(caught.value))
        consumer.wakeup()

    consumer = waiting(cluster)
    on_signal(handle)
    with pytest.raises(embedlog.WakeupError):
        consumer.poll(600_000)
    (text,) = errors
    assert text.startswith("Producer.append was called inside Consumer.poll of the same thread")
    assert "Set a flag" in text
    assert "Consumer.wakeup" in text
    assert issubclass(NestedCall, IllegalState)
    assert values(cluster) == []
    consumer.close()


@pytest.mark.parametrize("what", ["consumer", "cluster"])
def test_a_close_in_a_handler_ends_the_waiting_poll(
    what: str, cluster: embedlog.Cluster, on_signal: Callable[..., None]
) -> None:
    consumer = waiting(cluster)
    on_signal({"consumer": consumer, "cluster": cluster}[what].close)
    with pytest.raises(ClosedError):
        consumer.poll(600_000)
    with pytest.raises(ClosedError):
        consumer.poll(0)


def test_closes_in_a_handler_happen_although_it_exits(
    tmp_path: os.PathLike[str], on_signal: Callable[..., None]
) -> None:
    cluster = embedlog.open(tmp_path, durability="os")
    cluster.create_topic("events", 1)
    producer = cluster.producer()
    sent = producer.send("events", b"sent")
    consumer = waiting(cluster)

    def handle() -> None:
        consumer.close()
        producer.close()
        cluster.close()
        assert "topics" not in repr(cluster)
        raise SystemExit

    on_signal(handle)
    with pytest.raises(SystemExit):
        while True:
            consumer.poll(600_000)
    assert sent.result().offset == 0
    with pytest.raises(ClosedError):
        cluster.health()
    with embedlog.open(tmp_path) as again:
        assert values(again) == [b"sent"]


# Finalizers, and handlers of log lines


class Garbage:
    """A cycle whose collection makes a call."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.itself = self
        self.call = call

    def __del__(self) -> None:
        self.call()


@pytest.fixture
def eager_collector() -> Iterator[None]:
    former = gc.get_threshold()
    gc.collect()
    gc.freeze()  # the objects of thousands of earlier tests are not searched again and again
    gc.set_threshold(1, 1, 1000)
    yield
    gc.set_threshold(*former)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["finalizer", "weak reference"])
def test_a_finalizer_may_not_append_inside_a_call(
    kind: str, cluster: embedlog.Cluster, producer: embedlog.Producer, eager_collector: None
) -> None:
    outcomes: list[Any] = []
    acknowledged: dict[int, bytes] = {}
    watched: list[object] = []

    def append() -> None:
        try:
            value = b"finalizer %d" % len(outcomes)
            acknowledged[producer.append("events", value).offset] = value
            outcomes.append("made")
        except NestedCall:
            outcomes.append("refused")

    for number in range(200):
        if kind == "finalizer":
            Garbage(append)
        else:
            cycle = Garbage(lambda: None)
            watched.append(weakref.ref(cycle, lambda _reference: append()))
            del cycle
        value = b"%d" % number
        acknowledged[producer.send("events", value).result().offset] = value
    gc.collect()
    assert "refused" in outcomes
    assert dict(enumerate(values(cluster))) == acknowledged
    assert len(acknowledged) == 200 + outcomes.count("made")


def test_a_cluster_that_is_collected_inside_a_call_is_closed_after_it(
    producer: embedlog.Producer, eager_collector: None, tmp_path: os.PathLike[str]
) -> None:
    closed: list[bool] = []
    for number in range(20):
        other = embedlog.open(f"{tmp_path}/{number}", durability="os")
        cycle: list[object] = [Garbage(lambda other=other: closed.append(other.close() is None))]
        cycle.append(cycle)
        del cycle
        producer.append("events", b"x")
        del other
    gc.collect()
    assert len(closed) == 20
    for number in range(20):
        embedlog.open(f"{tmp_path}/{number}").close()


def test_a_log_handler_may_not_send_the_line_to_the_log_inside_a_call(
    cluster: embedlog.Cluster, producer: embedlog.Producer
) -> None:
    outcomes: list[str] = []

    class ToTheLog(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                producer.append("events", record.getMessage().encode())
                outcomes.append("made")
            except NestedCall:
                outcomes.append("refused")

    handler, logger = ToTheLog(), logging.getLogger("embedlog")
    logger.addHandler(handler)
    former = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        cluster.create_topic("another", 1)
        cluster.maintain()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(former)
    assert outcomes
    assert set(outcomes) == {"refused"}
    assert producer.append("events", b"after").offset == 0


# Callbacks, which may make calls


def test_callbacks_of_a_producer_may_make_calls(cluster: embedlog.Cluster) -> None:
    other = cluster.producer()

    def serialize(value: str) -> bytes:
        other.append("events", b"by the serializer")
        return value.encode()

    def choose(_topic: object, _key: object, _value: object) -> int:
        other.append("events", b"by the partitioner")
        return 0

    class Interceptor:
        def on_send(self, record: Any) -> Any:
            other.append("events", b"by the interceptor")
            return record

    producer = cluster.producer(
        value_serializer=serialize, partitioner_class=choose, interceptor_classes=[Interceptor]
    )
    told: list[int] = []

    def delivered(metadata: Any, _error: object) -> None:
        told.append(metadata.offset)
        if len(told) == 1:
            producer.send("events", "by the callback", on_delivery=delivered)

    producer.send("events", "first", on_delivery=delivered).result()
    producer.flush()
    assert len(told) == 2
    assert sorted(values(cluster)) == sorted(
        2 * [b"by the interceptor", b"by the partitioner", b"by the serializer"]
        + [b"by the callback", b"first"]
    )


def test_callbacks_of_a_consumer_may_make_calls(
    cluster: embedlog.Cluster, producer: embedlog.Producer
) -> None:
    producer.append("events", b"1")
    committed: list[object] = []

    class Listener(embedlog.ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: Any) -> None:
            assert consumer.position(_KEY) == 0
            consumer.seek(_KEY, 0)
            producer.append("events", b"by the listener")

        def on_partitions_revoked(self, partitions: Any) -> None:
            consumer.commit()

    def deserialize(data: bytes) -> bytes:
        if data == b"1":
            producer.append("events", b"by the deserializer")
        return data

    consumer = cluster.consumer(
        group_id="g",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        value_deserializer=deserialize,
    )
    consumer.subscribe(["events"], listener=Listener())
    found: list[Any] = []
    while len(found) < 3:
        found += [record.value for record in consumer.poll(10)]
    assert found == [b"1", b"by the listener", b"by the deserializer"]
    consumer.commit_async(callback=lambda *news: committed.append(consumer.committed([_KEY])))
    consumer.poll(0)
    consumer.commit()
    assert len(committed) == 1
    consumer.close()
    with cluster.admin() as admin:
        stored = admin.list_group_offsets(["g"])["g"][_KEY]
    assert stored is not None
    assert stored.offset == 3


@pytest.mark.parametrize("what", ["consumer", "cluster"])
def test_a_close_in_a_rebalance_listener_happens_after_the_poll(
    what: str, cluster: embedlog.Cluster
) -> None:
    consumer = cluster.consumer(group_id="g")

    class Listener(embedlog.ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: Any) -> None:
            {"consumer": consumer, "cluster": cluster}[what].close()
            assert consumer.assignment() == {_KEY}

    consumer.subscribe(["events"], listener=Listener())
    with pytest.raises(ClosedError):
        while True:
            consumer.poll(600_000)


def test_a_delivery_callback_in_the_producers_thread_may_close_the_cluster(
    cluster: embedlog.Cluster,
) -> None:
    address = cluster.listen("127.0.0.1", 0).address
    is_called = threading.Event()

    def delivered(_metadata: object, _error: object) -> None:
        cluster.close()
        is_called.set()

    with embedlog.Producer(address) as producer:
        producer.send("events", b"1", on_delivery=delivered)
        assert is_called.wait(_WAIT_S)
        while True:  # the close happens in a thread of its own
            try:
                cluster.health()
            except ClosedError:
                break
        producer.close(0)


def test_an_own_thread_makes_no_calls_of_finalizers(
    cluster: embedlog.Cluster, producer: embedlog.Producer
) -> None:
    outcomes: list[str] = []

    def run() -> None:
        try:
            producer.append("events", b"x")
            outcomes.append("made")
        except NestedCall:
            outcomes.append("refused")

    cluster.runtime.scheduler.start_thread(run, "embedlog-test").join(_WAIT_S * 1000)
    assert outcomes == ["refused"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_in_a_callback_may_make_calls(cluster: embedlog.Cluster) -> None:
    statuses: list[int] = []

    def fork(value: bytes) -> bytes:
        child = os.fork()
        if child == 0:
            try:
                with embedlog.open() as own:
                    own.create_topic("events", 1)
                    own.producer().append("events", b"x")
            except BaseException:
                os._exit(1)
            os._exit(0)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return value

    with cluster.producer(value_serializer=fork) as producer:
        producer.append("events", b"x")
    assert statuses == [0]
