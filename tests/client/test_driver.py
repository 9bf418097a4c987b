"""Threads that share a client: turns, waiting, and a thread of its own."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import embedlog
from embedlog import Producer
from embedlog.client.driver import TurnLock


def test_turns_are_given_in_the_order_of_asking() -> None:
    lock = TurnLock()
    lock.acquire()
    order: list[int] = []
    threads = []
    for number in range(5):

        def take(number: int = number) -> None:
            lock.acquire()
            order.append(number)
            lock.release()

        thread = threading.Thread(target=take)
        thread.start()
        while len(lock._gates) <= number:
            pass
        threads.append(thread)
    lock.release()
    for thread in threads:
        thread.join(10)
    assert order == [0, 1, 2, 3, 4]
    assert not lock.is_taken


def test_a_turn_is_held_by_one_thread_at_a_time() -> None:
    lock = TurnLock()
    inside = [0]
    seen: list[int] = []

    def work() -> None:
        for _ in range(300):
            lock.acquire()
            inside[0] += 1
            seen.append(inside[0])
            inside[0] -= 1
            lock.release()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(seen) == 1200
    assert set(seen) == {1}


@pytest.mark.parametrize("linger_ms", [0, 5])
def test_threads_share_a_producer(connect: Any, cluster: embedlog.Cluster, linger_ms: int) -> None:
    counts: list[int] = []
    with Producer(connect(), linger_ms=linger_ms, batch_size=1000) as producer:

        def work(name: int) -> None:
            futures = [
                producer.send("shared", b"%d:%d" % (name, number), partition=0)
                for number in range(200)
            ]
            for number in range(5):
                futures.append(producer.send("shared", b"%d:%d" % (name, 200 + number)))
                futures[-1].result(30)
            counts.append(len({future.result(30).offset for future in futures}))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert counts == [205] * 4
    with cluster.consumer(auto_offset_reset="earliest", max_poll_records=10_000) as consumer:
        consumer.assign([("shared", 0)])
        values = [record.value for record in consumer.poll(1000)]
    for name in range(4):
        mine = [value for value in values if value.startswith(b"%d:" % name)]
        assert mine == [b"%d:%d" % (name, number) for number in range(205)]


def test_a_callback_that_raises_does_not_end_the_senders_thread(
    cluster: embedlog.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda hook: raised.append(hook.exc_value))
    listener = cluster.listen("127.0.0.1", 0)

    def fail(metadata: Any, error: Exception | None) -> None:
        raise RuntimeError("from the callback")

    with Producer(listener.address) as producer:
        producer.send("thread", b"a", on_delivery=fail)
        assert producer.send("thread", b"b").result(10).offset == 1
        assert producer.send("thread", b"c").result(10).offset == 2
    assert [str(error) for error in raised] == ["from the callback"]


def test_a_callback_may_close_the_producer(connect: Any) -> None:
    closed = threading.Event()

    def close(metadata: Any, error: Exception | None) -> None:
        if not closed.is_set():
            closed.set()
            producer.close()

    producer = Producer(connect())
    first = producer.send("close", b"a", on_delivery=close)
    assert first.result(10).offset == 0
    assert closed.is_set()
    with pytest.raises(embedlog.ClosedError):
        producer.send("close", b"b")


def test_a_closed_client_leaves_no_thread_and_no_descriptor(cluster: embedlog.Cluster) -> None:
    import os

    listener = cluster.listen("127.0.0.1", 0)
    threads = threading.active_count()
    with Producer(listener.address) as producer:
        producer.send("leak", b"v").result(10)
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with Producer(listener.address) as producer:
            producer.send("leak", b"v").result(10)
        with cluster.consumer() as consumer:
            consumer.assign([("leak", 0)])
            consumer.poll(0)
    assert threading.active_count() == threads
    # The listener may not have noticed the end of its last connection yet.
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 1
