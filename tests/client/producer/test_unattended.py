"""Records of callers that go on to other work: sent, reported and given up without another call."""

from __future__ import annotations

import queue
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog import errors
from embedlog.runtime.pending import Pending
from tests.support import left_over

WAIT_S = 20


class Told:
    """A callback that notes its arguments and its thread."""

    def __init__(self, act: Callable[[], object] = lambda: None) -> None:
        self._act = act
        self.event = threading.Event()
        self.outcomes: list[Any] = []
        self.threads: list[str] = []

    def __call__(self, metadata: embedlog.RecordMetadata, error: Exception | None) -> None:
        self.outcomes.append(error or metadata.offset)
        self.threads.append(threading.current_thread().name)
        try:
            self._act()
        finally:
            self.event.set()


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as opened:
        opened.create_topic("t", 1)
        yield opened


@pytest.fixture(params=["in process", "beside a listener", "tcp"])
def target(request: pytest.FixtureRequest, cluster: embedlog.Cluster) -> Any:
    if request.param == "in process":
        return cluster
    address = cluster.listen().address
    return address if request.param == "tcp" else cluster


def test_a_lone_record_arrives_and_its_callback_comes(target: Any) -> None:
    told = Told()
    with embedlog.Producer(target, linger_ms=0) as producer:
        for offset in range(3):
            told.event.clear()
            producer.send("t", b"v", on_delivery=told)
            assert told.event.wait(WAIT_S)
            assert told.outcomes[-1] == offset
    assert set(told.threads) <= {"embedlog-producer", threading.main_thread().name}


def test_a_batch_arrives_too(target: Any, cluster: embedlog.Cluster) -> None:
    with embedlog.Producer(target, linger_ms=0) as producer, cluster.consumer() as consumer:
        producer.send_batch("t", [b"v"] * 3)
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        assert len(consumer.poll(WAIT_S * 1_000)) == 3


@pytest.mark.slow
def test_what_is_not_answered_is_given_up_in_time(target: Any, cluster: embedlog.Cluster) -> None:
    def keep_silent(context: Any, request: Any) -> Any:
        return Pending() if context.api_key == 0 else None

    cluster.broker().core.interceptor = keep_silent
    told = Told()
    settings = {"linger_ms": 0, "request_timeout_ms": 100, "delivery_timeout_ms": 150}
    producer = embedlog.Producer(target, **settings)
    producer.send("t", b"v", on_delivery=told)
    assert told.event.wait(WAIT_S)
    assert isinstance(told.outcomes[0], errors.TimedOut | errors.RequestTimedOut)
    producer.close(0)


def test_a_slow_callback_holds_no_client_of_a_listener_up(cluster: embedlog.Cluster) -> None:
    address = cluster.listen().address
    goes_on = threading.Event()
    told = Told(lambda: goes_on.wait(WAIT_S))
    with embedlog.Producer(address) as remote, cluster.producer() as producer:
        remote.send("t", b"connected").result(WAIT_S)
        producer.send("t", b"v", on_delivery=told)
        while not told.threads:
            remote.send("t", b"meanwhile").result(WAIT_S)
        remote.send("t", b"during the callback").result(WAIT_S)
        assert not told.event.is_set()
        goes_on.set()


def test_a_callback_may_wait_for_a_client_of_the_listener(cluster: embedlog.Cluster) -> None:
    address = cluster.listen().address
    with embedlog.Producer(address) as remote, cluster.producer() as producer:
        told = Told(lambda: remote.send("t", b"inner").result(WAIT_S))
        producer.send("t", b"outer", on_delivery=told)
        assert told.event.wait(WAIT_S)
        assert told.outcomes == [0]


def test_a_callback_that_raises_is_named_and_the_next_one_comes(
    target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: queue.Queue[BaseException | None] = queue.Queue()
    monkeypatch.setattr(threading, "excepthook", lambda hooked: raised.put(hooked.exc_value))

    def fails_at_once(_metadata: Any, _error: Any) -> None:
        raise RuntimeError("mistake")

    told = Told()
    with embedlog.Producer(target, linger_ms=5) as producer:
        producer.send("t", b"a", on_delivery=fails_at_once)
        producer.send("t", b"b", on_delivery=told)
        assert told.event.wait(WAIT_S)
        producer.flush(WAIT_S)
    error = raised.get(timeout=WAIT_S)
    assert error is not None
    (note,) = error.__notes__
    assert "fails_at_once" in note
    assert "RecordMetadata('t', 0, offset 0)" in note


def test_no_thread_is_left_by_a_closed_producer(target: Any) -> None:
    before = left_over.threads()
    with embedlog.Producer(target, linger_ms=0) as producer:
        producer.send("t", b"v")
    assert left_over.threads() <= before


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(program), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def in_the_log(path: Path) -> int:
    with embedlog.open(path) as cluster, cluster.consumer() as consumer:
        return consumer.end_offsets([("t", 0)])[embedlog.TopicPartition("t", 0)]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["pass", "raise SystemExit(3)", "raise ValueError"])
def test_what_was_sent_before_the_program_ended_is_in_the_log(tmp_path: Path, end: str) -> None:
    done = run(
        f"""
        import sys, embedlog
        cluster = embedlog.open(sys.argv[1])
        producer = cluster.producer(linger_ms=1000)
        for number in range(5):
            producer.send("t", b"%d" % number)
        {end}
        """,
        tmp_path / "data",
    )
    assert "ResourceWarning: a producer was not closed: 5 records had no outcome" in done.stderr
    assert in_the_log(tmp_path / "data") == 5


def test_what_was_sent_before_the_cluster_was_closed_is_in_the_log(tmp_path: Path) -> None:
    with embedlog.open(tmp_path) as cluster:
        producer = cluster.producer(linger_ms=1000)
        futures = [producer.send("t", b"v") for _ in range(5)]
    assert [future.result().offset for future in futures] == [0, 1, 2, 3, 4]
    with pytest.raises(embedlog.ClosedError):
        producer.send("t", b"late")
    assert in_the_log(tmp_path) == 5


@pytest.mark.slow
def test_what_was_sent_to_an_address_before_the_program_ended_arrives(
    cluster: embedlog.Cluster,
) -> None:
    done = run(
        """
        import sys, embedlog
        producer = embedlog.Producer(sys.argv[1], linger_ms=1000)
        for number in range(5):
            producer.send("t", b"%d" % number)
        """,
        cluster.listen().address,
    )
    assert "ResourceWarning: a producer was not closed: 5 records had no outcome" in done.stderr
    with cluster.consumer() as consumer:
        assert consumer.end_offsets([("t", 0)])[embedlog.TopicPartition("t", 0)] == 5


@pytest.mark.slow
def test_a_killed_process_loses_only_what_it_sent_just_then(tmp_path: Path) -> None:
    program = """
        import os, sys, embedlog
        cluster = embedlog.open(sys.argv[1])
        producer = cluster.producer()
        told = __import__("threading").Event()
        producer.send("t", b"v", on_delivery=lambda metadata, error: told.set())
        assert told.wait(20)
        os.kill(os.getpid(), 9)
    """
    assert run(program, tmp_path / "data").returncode == -9
    assert in_the_log(tmp_path / "data") == 1
