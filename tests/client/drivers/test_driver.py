"""Threads that share a client: turns, waiting, and a thread of its own."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

import embedlog
from embedlog import Producer
from embedlog.client.drivers.caller_driver import CallerDriver
from embedlog.client.drivers.in_process_driver import InProcessDriver
from embedlog.client.drivers.polling_driver import PollingDriver
from embedlog.client.drivers.threaded_driver import ThreadedDriver
from embedlog.client.drivers.turn_lock import TurnLock
from embedlog.runtime import real_runtime
from embedlog.runtime.scheduler import Scheduler
from tests.support import left_over
from wire.schemas.metadata import MetadataRequest


@pytest.mark.slow
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


def test_ctrl_c_in_the_start_of_the_thread_leaves_one_that_loops(
    cluster: embedlog.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = cluster.listen("127.0.0.1", 0)
    threads = threading.active_count()
    with Producer(listener.address, linger_ms=5) as producer:
        start_thread = Scheduler.start_thread

        def interrupted(*arguments: Any) -> Any:
            start_thread(*arguments)
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(Scheduler, "start_thread", interrupted)
        with pytest.raises(KeyboardInterrupt):
            producer.send("thread", b"never sent")
        for number in range(50):
            assert producer.send("thread", b"v").result(10).offset == number
        assert threading.active_count() == threads + 1
    while threading.active_count() > threads:
        pass  # it is in its last steps


def test_a_forked_child_closes_what_it_inherited(cluster: embedlog.Cluster) -> None:
    address = cluster.listen("127.0.0.1", 0).address
    with Producer(address, linger_ms=5) as producer, embedlog.Admin(address) as admin:
        producer.send("forked", b"a").result(10)
        assert "forked" in admin.list_topics()
        child = os.fork()
        if not child:
            signal.alarm(10)  # ends it, should it hang
            producer.close()
            admin.close()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0
        for offset in range(1, 4):
            assert producer.send("forked", b"b").result(10).offset == offset
        assert "forked" in admin.list_topics()


def test_a_forked_child_makes_connections_of_its_own(cluster: embedlog.Cluster) -> None:
    with embedlog.Admin(cluster.listen("127.0.0.1", 0).address) as admin:
        admin.create_topics(["parents"]).check()
        child = os.fork()
        if not child:
            signal.alarm(10)
            admin.create_topics(["childs"]).check()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0
        assert {"parents", "childs"} <= set(admin.list_topics())


def test_a_callback_may_close_the_producer(connect: Any) -> None:
    before = set(threading.enumerate())
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
    # A thread of the producer that still waits would spin on its closed sockets.
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive(), thread.name


@pytest.mark.slow
def test_a_closed_client_leaves_no_thread_and_no_descriptor(cluster: embedlog.Cluster) -> None:
    listener = cluster.listen("127.0.0.1", 0)
    threads = left_over.threads()
    with Producer(listener.address) as producer:
        producer.send("leak", b"v").result(10)
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with Producer(listener.address) as producer:
            producer.send("leak", b"v").result(10)
        with cluster.consumer() as consumer:
            consumer.assign([("leak", 0)])
            consumer.poll(0)
    assert left_over.threads() <= threads
    # The listener may not have noticed the end of its last connection yet.
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 1


class Sleepy:
    """A transport without connections, for a driver that has a thread."""

    concurrent = in_process = False

    def __init__(self) -> None:
        self.runtime = real_runtime()
        self._woken = threading.Event()

    def poll(self) -> None: ...

    def wake(self) -> None:
        self._woken.set()

    def wait(self, pending: Any, timeout_ms: int | None) -> bool:
        self._woken.wait(None if timeout_ms is None else timeout_ms / 1000)
        self._woken.clear()
        return False


def test_a_thread_and_those_who_wait_do_not_keep_each_other_awake() -> None:
    """Each pass may wake a waiting thread; once, that thread requested another pass each time."""
    passes: list[int] = []
    driver = ThreadedDriver(
        Sleepy(),  # type: ignore[arg-type]
        lambda: passes.append(1),
        name="test",
    )
    assert not driver.wait(lambda: False, 100)
    assert len(passes) <= 3
    driver.close(10_000)


def test_a_pass_wakes_only_for_what_is_news() -> None:
    transport = Sleepy()
    passes: list[int] = []
    looks: list[int] = []

    def step() -> None:
        passes.append(1)
        transport.wake()  # the next pass follows at once

    def is_done() -> bool:
        looks.append(len(passes))
        return len(passes) >= 100

    driver = ThreadedDriver(
        transport,  # type: ignore[arg-type]
        step,
        name="test",
    )
    assert driver.wait(is_done, 60_000, is_news=lambda: len(passes) >= 100)
    assert len(looks) <= 3
    driver.close(10_000)


@pytest.mark.slow
def test_the_impatient_look_themselves() -> None:
    looks: list[int] = []

    def is_done() -> bool:
        looks.append(1)
        return len(looks) == 5

    driver = ThreadedDriver(
        Sleepy(),  # type: ignore[arg-type]
        lambda: None,
        name="test",
    )
    assert driver.wait(is_done, 60_000, is_news=lambda: False, patience_ms=1)
    driver.close(10_000)


def test_who_asks_for_the_turn_ends_a_poll_that_began_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The turn was free when the thread came, and another thread polled before it took the turn."""
    transport = Sleepy()
    asks, polls = threading.Event(), threading.Event()
    passes: list[int] = []
    late: list[int] = []
    was_woken: list[bool] = []
    acquire = TurnLock.acquire

    def acquire_late(lock: TurnLock, *arguments: Any) -> None:
        if threading.get_ident() in late:
            asks.set()
            polls.wait(30)
        acquire(lock, *arguments)

    def wait_for_a_wake(pending: Any, timeout_ms: int | None) -> bool:
        polls.set()
        was_woken.append(transport._woken.wait(10))
        transport._woken.clear()
        return False

    monkeypatch.setattr(TurnLock, "acquire", acquire_late)
    monkeypatch.setattr(transport, "wait", wait_for_a_wake)
    driver = PollingDriver(
        transport,  # type: ignore[arg-type]
        lambda: passes.append(threading.get_ident()),
    )

    def come_late() -> None:
        late.append(threading.get_ident())
        driver.run()

    thread = threading.Thread(target=come_late)
    thread.start()
    assert asks.wait(30)
    assert driver.wait(lambda: late[0] in passes, 30_000)
    assert all(was_woken)
    thread.join(30)


@pytest.mark.slow
@pytest.mark.parametrize("linger_ms", [0, 5])
def test_a_partition_that_is_being_added_is_waited_for(
    cluster: embedlog.Cluster, linger_ms: int
) -> None:
    cluster.create_topic("grows", partitions=1)
    address = cluster.listen("127.0.0.1", 0).address
    where: list[Any] = []
    settings: dict[str, Any] = {
        "linger_ms": linger_ms,
        "retry_backoff_ms": 1,
        "retry_backoff_max_ms": 1,
    }
    with Producer(address, **settings) as producer:
        producer.send("grows", b"v").result(10)
        thread = threading.Thread(
            target=lambda: where.append(producer.send("grows", b"v", partition=1).result(10))
        )
        asked: list[object] = []
        asked_again = threading.Event()

        def count(_context: object, request: object) -> None:
            if isinstance(request, MetadataRequest):
                asked.append(request)
                if len(asked) > 2:
                    asked_again.set()

        cluster.broker().core.interceptor = count
        thread.start()
        assert asked_again.wait(30)
        cluster.broker().core.interceptor = None
        with cluster.admin() as admin:
            admin.create_partitions({"grows": 2}).check()
        thread.join(30)
    assert [metadata.partition for metadata in where] == [1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["in process", "tcp"])
def test_two_producers_whose_callbacks_use_each_other(kind: str) -> None:
    with embedlog.open() as cluster:
        cluster.create_topic("events", 1)
        target = cluster if kind == "in process" else cluster.listen("127.0.0.1", 0).address
        with Producer(target) as one, Producer(target) as two:
            both_in_callbacks = threading.Barrier(2)
            answers: list[Any] = []

            def work(mine: Any, other: Any) -> None:
                def called(_metadata: object, _error: object) -> None:
                    both_in_callbacks.wait(60)
                    answers.append(other.send_batch("events", [b"from a", b"callback"]))

                mine.send("events", b"first", on_delivery=called).result(60)

            threads = [
                threading.Thread(target=work, args=pair, daemon=True)
                for pair in ((one, two), (two, one))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert not any(thread.is_alive() for thread in threads), "they wait for each other"
            for answer in answers:
                answer.result(60)
            assert len(answers) == 2


@pytest.mark.parametrize("kind", [PollingDriver, InProcessDriver])
def test_a_wait_that_ctrl_c_ended_is_recovered_from(
    kind: type[CallerDriver], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(pending: Any, timeout_ms: int | None) -> bool:
        raise KeyboardInterrupt

    transport = Sleepy()
    steps: list[str] = []
    monkeypatch.setattr(transport, "wait", interrupted)
    driver = kind(
        transport,  # type: ignore[arg-type]
        lambda: steps.append("pass"),
        lambda: steps.append("recover"),
    )
    with pytest.raises(KeyboardInterrupt):
        driver.wait(lambda: False, 1_000)
    steps.clear()
    driver.run()
    driver.run()
    assert steps == ["recover", "pass", "pass"]
