"""Mistakes of users: a typed error that says what to do, in time, and nothing left behind."""

from __future__ import annotations

import socket
import threading
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import embedlog
from embedlog import errors
from embedlog.client.errors import SerializationError
from embedlog.client.producer.producer import Producer
from embedlog.errors import ClosedError, ConfigError, TimedOut
from embedlog.testing.loopback_transport import LoopbackTransport
from tests.support import left_over

MAX_BLOCK_MS = 300
TLS_ALERT = bytes.fromhex("15030300020246")


class Peer:
    """Accepts connections, waits for a request, gives every client the same answer; may then hang
    up."""

    def __init__(self, answer: bytes, *, hangs_up: bool) -> None:
        self._answer = answer
        self._hangs_up = hangs_up
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._kept: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with_answer = bool(connection.recv(1 << 16)) and bool(self._answer)
            if with_answer:
                connection.sendall(self._answer)
            if self._hangs_up:
                connection.close()
            else:
                self._kept.append(connection)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)
        for connection in self._kept:
            connection.close()


@pytest.fixture
def peer() -> Iterator[Callable[..., str]]:
    """Return a function that starts a server without Kafka's protocol, and returns its address."""
    started: list[Peer] = []

    def start(answer: bytes, *, hangs_up: bool = False) -> str:
        started.append(Peer(answer, hangs_up=hangs_up))
        return started[-1].address

    yield start
    for each in started:
        each.close()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    threads, descriptors = left_over.threads(), left_over.descriptors()
    yield
    assert left_over.threads() <= threads
    assert left_over.descriptors() <= descriptors


def _refused(address: str, linger_ms: int) -> str:
    """Return the error text of a record that could not be sent, once the producer is closed."""
    seen: list[Any] = []
    with Producer(address, max_block_ms=MAX_BLOCK_MS, linger_ms=linger_ms) as producer:
        future = producer.send("t", b"v", on_delivery=lambda metadata, error: seen.append(error))
        assert future.done(), "it was waited for metadata in the call"
        error = future.exception()
        assert isinstance(error, TimedOut)
        assert seen == [error]
        with pytest.raises(TimedOut):
            producer.partitions_for("t")
    text = str(error)
    assert f"max.block.ms={MAX_BLOCK_MS}" in text
    return text


LINGERS = pytest.mark.parametrize("linger_ms", [0, 5])


@pytest.mark.slow
@LINGERS
def test_nobody_listens_there(linger_ms: int) -> None:
    text = _refused("127.0.0.1:1", linger_ms)
    assert "127.0.0.1:1" in text
    assert "Connection refused" in text


@pytest.mark.slow
@LINGERS
@pytest.mark.parametrize("hangs_up", [False, True])
@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"220 mail\r\n"]
)
def test_a_server_that_does_not_speak_kafka(
    peer: Callable[..., str], answer: bytes, hangs_up: bool, linger_ms: int
) -> None:
    address = peer(answer, hangs_up=hangs_up)
    text = _refused(address, linger_ms)
    assert address in text
    assert f"the peer's bytes are {answer[:4]!r}, it does not speak the Kafka protocol" in text


@pytest.mark.slow
@LINGERS
@pytest.mark.parametrize("hangs_up", [False, True])
def test_a_tls_port_spoken_to_in_plain_text(
    peer: Callable[..., str], hangs_up: bool, linger_ms: int
) -> None:
    text = _refused(peer(TLS_ALERT, hangs_up=hangs_up), linger_ms)
    assert "these are bytes of TLS, from a peer that expects an encrypted connection" in text


@pytest.mark.slow
@LINGERS
def test_a_server_that_hangs_up(peer: Callable[..., str], linger_ms: int) -> None:
    text = _refused(peer(b"", hangs_up=True), linger_ms)
    assert "closed by the peer; it never named its versions" in text
    assert "without TLS?" in text


@pytest.mark.slow
@LINGERS
def test_a_server_that_says_nothing(peer: Callable[..., str], linger_ms: int) -> None:
    address = peer(b"")
    assert f"no answer from <NetworkClient of {address} (connected, silent" in _refused(
        address, linger_ms
    )


@pytest.mark.slow
@LINGERS
def test_a_response_of_nonsense(peer: Callable[..., str], linger_ms: int) -> None:
    text = _refused(peer((12).to_bytes(4, "big") + bytes(12)), linger_ms)
    assert "connection to 127.0.0.1" in text


@pytest.mark.parametrize(
    "settings",
    [
        {"acks": "2"},
        {"enable_idempotence": True, "acks": 1},
        {"delivery_timeout_ms": 10},
        {"partitioner_class": "no.such.Class"},
        {"interceptor_classes": ["no.such.Class"]},
        {"compression_type": "gzip", "compression_gzip_level": 0},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_a_wrong_setting_is_refused_at_construction(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Producer("127.0.0.1:1", **settings)
    with embedlog.open() as cluster, pytest.raises(ConfigError):
        cluster.producer(**settings)


@pytest.mark.parametrize("target", ["localhost", "localhost:", ":1", [], "", 5])
def test_a_wrong_address_is_refused_at_construction(target: Any) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap|connect to|neither"):
        Producer(target)


def _raises(_: Any) -> bytes:
    raise ValueError("not this one")


@pytest.mark.parametrize("what", ["key", "value"])
def test_a_serializer_that_raises(what: str) -> None:
    settings: Any = {f"{what}_serializer": _raises}
    with embedlog.open() as cluster, cluster.producer(**settings) as producer:
        match = f"{what}.serializer refused a dict for topic 't': ValueError: not this one"
        with pytest.raises(SerializationError, match=match) as raised:
            producer.send("t", {"a": 1}, {"a": 1})
        assert isinstance(raised.value.__cause__, ValueError)
        with pytest.raises(SerializationError, match=match):
            producer.send_batch("t", [{"a": 1}], keys=[{"a": 1}])
        metrics = producer.metrics()
        assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"value": "text"}, "value is str, not bytes: give a value.serializer"),
        ({"value": b"v", "key": 7}, "key is int, not bytes: give a key.serializer"),
        ({"value": b"v", "headers": [("h", "text")]}, "header 'h': its value is str, not bytes"),
        ({"value": b"v", "headers": [(b"h", b"v")]}, "header b'h': its name is bytes, not str"),
        (
            {"value": b"v", "headers": {"a": b"1"}},
            "headers={'a': b'1'}: expected a list of (name, bytes or None) pairs, got dict; "
            "write list(headers.items())",
        ),
        ({"value": b"v", "headers": "ab"}, "headers='ab': expected a list of (name, bytes"),
        ({"value": b"v", "headers": 5}, "headers=5: expected a list of (name, bytes"),
        ({"value": b"v", "headers": ["ab"]}, "headers: 'ab' is no (name, bytes or None) pair"),
        ({"value": b"v", "timestamp_ms": -1}, "timestamp_ms=-1: must be between 0"),
        ({"value": b"v", "partition": -1}, "partition=-1: must not be negative"),
    ],
)
def test_arguments_that_make_no_record(arguments: dict[str, Any], text: str) -> None:
    with embedlog.open() as cluster, cluster.producer() as producer:
        with pytest.raises((TypeError, ValueError)) as raised:
            producer.send("t", **arguments)
        assert text in str(raised.value)
        producer.send("t", b"fine").result()


@pytest.mark.parametrize("by_bytes", [False, True])
@pytest.mark.parametrize(
    "value", [bytearray(b"ace"), memoryview(b"ace"), memoryview(b"abcdef")[::2], array("h", [7])]
)
def test_a_batch_of_buffers_is_copied_in_bytes(value: Any, by_bytes: bool) -> None:
    content = bytes(memoryview(value))
    with embedlog.open() as cluster:
        target = LoopbackTransport(cluster) if by_bytes else cluster
        with embedlog.Producer(target) as producer:
            for values in ([value], [value] * 20, [b"other", None, value]):
                producer.send_batch("t", values, keys=values)
                producer.send_batch("t", values)
            with pytest.raises(TypeError, match="a value is str, not bytes"):
                producer.send_batch("t", [b"v", "text"])
        with cluster.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([("t", 0)])
            read = [record.value for record in consumer.poll(1000)]
    assert read == [content] * 42 + [b"other", None, content] * 2


def test_a_partitioner_that_chooses_nonsense() -> None:
    with (
        embedlog.open() as cluster,
        cluster.producer(partitioner_class=lambda topic, key, value: -5) as producer,
        pytest.raises(ValueError, match="partition=-5"),
    ):
        producer.send("t", b"v")


def test_a_record_that_is_too_large() -> None:
    with embedlog.open() as cluster:
        with cluster.producer(max_request_size=100_000) as producer:
            error = producer.send("t", bytes(100_000)).exception()
            assert isinstance(error, errors.MessageTooLarge)
            assert "max.request.size=100000" in str(error)
            assert "max.message.bytes" in str(error)
            fits = bytes(100_000 - 61 - 21 - 1 - 3 - 1)
            assert producer.send("t", fits).result().offset == 0
            error = producer.send("t", fits + b"1").exception()
            assert isinstance(error, errors.MessageTooLarge)
        cluster.create_topic("small", config={"max.message.bytes": "1000"})
        with cluster.producer() as producer:
            error = producer.send("small", bytes(2000)).exception()
            assert isinstance(error, errors.MessageTooLarge)


@pytest.mark.parametrize("over_network", [False, True])
def test_calls_after_close(over_network: bool) -> None:
    with embedlog.open() as cluster:
        target: Any = cluster.listen("127.0.0.1", 0).address if over_network else cluster
        producer = Producer(target)
        future = producer.send("t", b"v")
        producer.close()
        assert future.result().offset == 0
        assert future.done()
        for call in (
            lambda: producer.send("t", b"v"),
            lambda: producer.send_batch("t", [b"v"]),
            producer.flush,
            lambda: producer.partitions_for("t"),
        ):
            with pytest.raises(ClosedError, match="the producer is closed"):
                call()
        producer.close()
        assert producer.metrics()["record-send-total"] == 1


def test_time_outs_may_not_be_negative() -> None:
    with embedlog.open() as cluster, cluster.producer() as producer:
        for call in (producer.flush, producer.close):
            with pytest.raises(ValueError, match="timeout=-1"):
                call(-1)
        assert producer.send("t", b"v").result().offset == 0
