"""A listener logs the behaviour of its peers, and no peer can flood the log."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Iterator

import pytest

import embedlog
from wire.net.reports import LINES_MAX, WINDOW_S, Reports

TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(64)


class Peer:
    peer_host, peer_port = "192.0.2.1", 40000


@pytest.fixture
def listener() -> Iterator[embedlog.Cluster]:
    with embedlog.open(max_connections=5) as cluster:
        yield cluster.listen()  # type: ignore[misc]


def _messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "embedlog.listener" and record.levelno == level
    ]


def _send(listener: object, content: bytes) -> None:
    port = listener.port  # type: ignore[attr-defined]
    with socket.create_connection(("127.0.0.1", port), 10) as peer:
        peer.sendall(content)
        with contextlib.suppress(ConnectionResetError):  # a reset is also an end
            assert not peer.recv(1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (TLS_HELLO, "a TLS client talks to a plaintext port: its security.protocol must be"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "an HTTP client talks to a Kafka port"),
        (b"POST /topics HTTP/1.1\r\n\r\n", "an HTTP client talks to a Kafka port"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "an SSH client"),
        (b"\xff\xffnonsense", "this is not the Kafka protocol: it begins with b'\\xff\\xffnon"),
        (
            b"\x10\x00\x00\x00\x00\x01" + bytes(8),
            "268435456 bytes is more than socket.request.max.bytes=104857600",
        ),
        (b"\x00\x00\x00\x0e\x00\x11\x00\x01" + bytes(10), "SASL is not served: the client's"),
        (b"\x00\x00\x00\x0e\x03\xe7\x00\x01" + bytes(10), "999 version 1: it is not served"),
        (b"\x00\x00\x00\x0c\x00\x03\x00\x01\x00\x00\x00\x01\x00\x7fabcd"[:16], "not understood"),
    ],
)
def test_foreign_clients_and_bad_requests_are_told_apart(
    listener: object, content: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    _send(listener, content)
    (message,) = _messages(caplog, logging.WARNING)
    assert said in message
    assert message.startswith("connection from 127.0.0.1:")


def test_connections_over_the_limit_are_logged_as_refused(
    listener: object, caplog: pytest.LogCaptureFixture
) -> None:
    port = listener.port  # type: ignore[attr-defined]
    peers = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(6)]
    assert not peers[-1].recv(1)
    for peer in peers:
        peer.close()
    assert _messages(caplog, logging.WARNING) == [
        "connection from 127.0.0.1 refused: max.connections=5"
    ]


def test_connections_are_logged_step_by_step_on_request(
    listener: object, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "embedlog"):
        _send(listener, TLS_HELLO)
        listener.close()  # type: ignore[attr-defined]
    steps = _messages(caplog, logging.DEBUG)
    assert [step.partition(" from ")[0] for step in steps] == ["connection", "connection"]
    assert steps[-1].endswith("has ended")
    assert any("no longer listening" in said for said in _messages(caplog, logging.INFO))


def test_a_peer_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    reports = Reports(clock=lambda: now[0])
    for _ in range(1_000):
        reports.bad_size(Peer(), TLS_HELLO, 1, 1)
    assert len(caplog.records) == LINES_MAX
    reports.bad_size(Peer(), b"GET /", 1, 1)
    assert len(caplog.records) == LINES_MAX + 1
    now[0] = WINDOW_S + 1
    reports.bad_size(Peer(), TLS_HELLO, 1, 1)
    assert caplog.records[-1].getMessage().endswith(f"({1_000 - LINES_MAX} more like it before)")
