"""A forked child gets a clear error at its first use of its parent's cluster."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import embedlog
import embedlog.aio
from embedlog.runtime.lock_order import held_here
from embedlog.runtime.locks import PROCESS_WIDE, Rank

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")

_PROMPT_S = 1.0


def _in_child(work: Callable[[], None]) -> str:
    """Run `work` in a forked child and return its error as text; empty if it succeeded."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(10)  # ends a child that hangs
        said = ""
        try:
            work()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answers:
        said = answers.read().decode()
    _, status = os.waitpid(child, 0)
    assert status == 0, said
    return said


def _refused(*calls: Callable[[], Any]) -> None:
    """Check that each of `calls` raises the one clear error, at once."""
    for number, call in enumerate(calls):
        began = time.monotonic()
        try:
            call()
        except embedlog.ClosedError as error:
            assert "before the process forked" in str(error), error
            assert "in the child open" in str(error), error
        else:
            raise AssertionError(f"call {number} went through")
        assert time.monotonic() - began < _PROMPT_S, number


@pytest.fixture(params=["memory", "directory"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    path = None if request.param == "memory" else tmp_path / "data"
    with embedlog.open(path) as cluster:
        cluster.create_topic("events")
        yield cluster


@pytest.mark.parametrize("has_faults", [False, True])
def test_handles_of_an_only_broker_refuse(cluster: embedlog.Cluster, has_faults: bool) -> None:
    broker, listener = cluster.broker(1), cluster.listen("127.0.0.1", 0)
    if has_faults:
        broker.disk.slow(0)
    disk = broker.disk

    def child() -> None:
        _refused(
            broker.kill,
            broker.stop,
            broker.pause,
            broker.hide,
            disk.fill,
            lambda: disk.slow(5),
            lambda: broker.core,
            lambda: broker.is_running,
            lambda: broker.address,
        )

    assert _in_child(child) == ""
    broker.kill()
    broker.start()
    with embedlog.Producer(listener.address) as producer:
        producer.send("events", b"a").result(30)


def test_every_inherited_object_of_the_cluster_refuses(cluster: embedlog.Cluster) -> None:
    with (
        cluster.producer() as producer,
        cluster.consumer(group_id="g") as consumer,
        cluster.admin() as admin,
    ):
        producer.send("events", b"a").result()
        consumer.subscribe(["events"])
        future = producer.send("events", b"waits")
        transport = cluster.connect()

        def child() -> None:
            _refused(
                lambda: producer.send("events", b"child"),
                lambda: producer.send_batch("events", [b"child"]),
                producer.flush,
                lambda: producer.partitions_for("events"),
                producer.metrics,
                future.result,
                lambda: consumer.poll(10),
                consumer.poll_batches,
                consumer.commit,
                lambda: next(iter(consumer)),
                admin.list_topics,
                lambda: admin.create_topics({"childs": 1}),
                lambda: transport.send(-1, None),
                lambda: cluster.create_topic("childs"),
                lambda: cluster.topics,
                lambda: cluster.cluster_id,
                cluster.listen,
                cluster.producer,
                cluster.consumer,
                cluster.admin,
                lambda: embedlog.Producer(cluster),
                cluster.__enter__,
            )
            assert isinstance(producer, embedlog.Producer)
            assert "forked" in repr(cluster)

        assert not _in_child(child)
        assert future.result().offset == 1
        assert cluster.topics == ["events"]


def test_bound_methods_from_before_the_fork_refuse(
    cluster: embedlog.Cluster,
) -> None:
    with cluster.producer() as producer, cluster.consumer() as consumer:
        producer.send_batch("events", [b"a", b"b", b"c"]).result()
        consumer.assign([("events", 0)])
        consumer.seek_to_beginning()
        records = iter(consumer)
        next(records)
        send, poll, create = producer.send, consumer.poll, cluster.create_topic

        def child() -> None:
            _refused(
                lambda: send("events", b"child"),
                poll,
                lambda: create("childs"),
                lambda: next(records),
            )

        assert not _in_child(child)
        assert next(records).value == b"b"


def test_closing_inherited_objects_is_harmless(cluster: embedlog.Cluster) -> None:
    listener = cluster.listen()
    producer, consumer, admin = cluster.producer(), cluster.consumer(), cluster.admin()
    producer.send("events", b"parent's")

    def child() -> None:
        with cluster_in_a_with(cluster):
            pass
        for each in (producer, consumer, admin, listener, cluster):
            each.close()
        with embedlog.open() as own, own.producer() as sends:
            assert sends.send("events", b"own").result().offset == 0

    assert not _in_child(child)
    producer.close()
    with embedlog.Producer(listener.address) as remote:
        assert remote.send("events", b"b").result(10).offset == 1
    consumer.close()
    admin.close()


class cluster_in_a_with:  # noqa: N801
    """A `with` block that begins in the parent and ends in the child."""

    def __init__(self, cluster: embedlog.Cluster) -> None:
        self._leave = cluster.__exit__

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        self._leave(None, None, None)


@pytest.mark.parametrize("rank", [Rank.DRIVER, Rank.ACCUMULATOR], ids=["turn", "accumulator"])
def test_a_call_is_refused_even_if_another_thread_of_the_parent_held_a_lock(
    cluster: embedlog.Cluster, rank: int
) -> None:
    is_held, may_go_on = threading.Event(), threading.Event()

    def stop_with_the_lock(frame: FrameType, _event: str, _argument: Any) -> Any:
        if any(lock.rank == rank for lock in held_here()):
            sys.settrace(None)
            is_held.set()
            assert may_go_on.wait(10)
        return stop_with_the_lock

    def send(producer: embedlog.Producer) -> None:
        sys.settrace(stop_with_the_lock)
        producer.send("events", b"a").result()

    with cluster.producer() as producer:
        producer.send("events", b"a").result()
        other = threading.Thread(target=send, args=[producer])
        other.start()
        assert is_held.wait(10)
        try:
            assert not _in_child(lambda: _refused(lambda: producer.send("events", b"b").result()))
        finally:
            may_go_on.set()
            other.join()


def test_the_asyncio_clients_refuse(cluster: embedlog.Cluster) -> None:
    async def child(producer: Any, consumer: Any, admin: Any) -> None:
        for call in (
            lambda: producer.send("events", b"b"),
            lambda: producer.flush(),  # noqa: PLW0108  in the child
            lambda: consumer.poll(10),
            admin.list_topics,
            lambda: producer.__aenter__(),  # noqa: PLW0108
        ):
            try:
                await asyncio.wait_for(call(), _PROMPT_S)
            except embedlog.ClosedError as error:
                assert "forked" in str(error)
            else:
                raise AssertionError("a call went through")
        for each in (producer, consumer, admin):
            await each.close()

    async def parent() -> None:
        async with (
            embedlog.aio.Producer(cluster) as producer,
            embedlog.aio.Consumer(cluster) as consumer,
            embedlog.aio.Admin(cluster) as admin,
        ):
            await producer.send("events", b"a")
            await consumer.assign([("events", 0)])
            await admin.list_topics()
            said = _in_child(lambda: asyncio.run(child(producer, consumer, admin)))
            assert not said
            assert (await producer.send("events", b"b")).offset == 1

    asyncio.run(parent())


def test_a_child_that_exits_normally_prints_nothing(tmp_path: Path) -> None:
    import subprocess

    script = (
        "import os, sys, embedlog\n"
        "cluster = embedlog.open(sys.argv[1]); producer = cluster.producer()\n"
        "producer.send('events', b'a').result()\n"
        "producer.send('events', b'b')\n"
        "child = os.fork()\n"
        "if child == 0: sys.exit(0)\n"
        "print(os.waitpid(child, 0)[1], producer.send('events', b'c').result().offset)\n"
        "producer.close(); cluster.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", script, str(tmp_path / "data")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("0 2\n", "")


@pytest.mark.slow
def test_a_network_client_works_in_the_child(cluster: embedlog.Cluster) -> None:
    with embedlog.Admin(cluster.listen().address) as admin:
        admin.create_topics({"parents": 1})
        said = _in_child(lambda: admin.create_topics({"childs": 1}).check())
        assert not said
        assert {"parents", "childs"} <= set(admin.list_topics())


@pytest.mark.slow
def test_children_of_a_process_with_busy_threads_work(
    cluster: embedlog.Cluster, tmp_path: Path
) -> None:
    """The child inherits locks that other threads held at the fork; nobody releases them."""
    is_over = threading.Event()

    def work() -> None:
        with cluster.producer() as producer:
            while not is_over.is_set():
                producer.send("events", b"parent's").result(30)

    def in_the_child() -> None:
        consumer.close()
        cluster.close()
        # The child uses a cluster of its own, and with it all objects that the process shares.
        with embedlog.open(tmp_path / f"child-{os.getpid()}") as own:
            with own.producer() as producer, own.consumer() as reader:
                producer.send("events", b"child's").result(30)
                reader.assign([("events", 0)])
                reader.seek_to_beginning()
                assert [each.value for each in reader.poll(5_000)] == [b"child's"]
            _refused(lambda: cluster.create_topic("childs"))
            assert not _in_child(lambda: own.close())  # noqa: PLW0108  looked up there

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        with cluster.consumer(group_id="g") as consumer:
            consumer.subscribe(["events"])
            consumer.poll(1_000)
            for _ in range(20):
                assert not _in_child(in_the_child)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


@pytest.mark.slow
def test_locks_of_shared_objects_are_free_in_the_child(cluster: embedlog.Cluster) -> None:
    with cluster.producer() as producer:
        producer.send("events", b"a").result()
    # These modules load when they are needed; each has one shared object.
    for name in ("runtime.descriptors", "runtime.os_files", "client.drivers.pass_thread"):
        importlib.import_module(f"embedlog.{name}")
    assert len(PROCESS_WIDE) >= 5, "of answers, files and clients"
    for lock in list(PROCESS_WIDE):
        is_taken, is_over = threading.Event(), threading.Event()

        def hold(lock: Any = lock, taken: Any = is_taken, over: Any = is_over) -> None:
            with lock:
                taken.set()
                over.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        is_taken.wait()
        assert not _in_child(lambda lock=lock: lock.acquire())
        is_over.set()
        thread.join()
