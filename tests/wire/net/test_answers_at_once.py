"""If a request completes another connection's parked request, that one is answered first."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from tests.wire.net.serving import Answer, Parking, Served, framed, request, serve
from wire.net.connection import Connection


@pytest.fixture
def parking() -> Iterator[Served]:
    with serve(Parking()) as served:
        yield served


def service_of(served: Served) -> Parking:
    assert isinstance(served.service, Parking)
    return served.service


def test_who_waits_is_answered_while_the_request_that_ends_the_wait_is_handled(
    parking: Served,
) -> None:
    waiting, bringing = parking.connect(), parking.connect()
    waiting.send(request(b"wait"))
    connection, _ = service_of(parking).next_parked()
    received = threading.Event()

    def answer(_connection: Connection, _frame: bytes | memoryview) -> Answer:
        connection.respond_with(lambda: [framed(b"news")])
        assert received.wait(10)
        return [framed(b"done")]

    parking.service.answer = answer
    bringing.send(request(b"bring"))
    assert waiting.receive_frame() == b"news"
    received.set()
    assert bringing.receive_frame() == b"done"


def test_its_next_request_waits_until_that_one_is_handled(parking: Served) -> None:
    waiting, bringing = parking.connect(), parking.connect()
    waiting.send(request(b"wait") + request(b"next"))
    connection, _ = service_of(parking).next_parked()
    handled: list[bytes] = []

    def answer(_connection: Connection, frame: bytes | memoryview) -> Answer:
        if frame == b"\0\3bring":
            connection.respond_with(lambda: [framed(b"news")])
        handled.append(bytes(frame))
        return [framed(b"done")]

    parking.service.answer = answer
    bringing.send(request(b"bring"))
    assert waiting.receive_frame() == b"news"
    assert waiting.receive_frame() == b"done"
    assert bringing.receive_frame() == b"done"
    assert handled == [b"\0\3bring", b"\0\3next"]


@pytest.mark.parametrize("more", [b"", request(b"more")], ids=["alone", "with more behind it"])
@pytest.mark.parametrize("size", [10, 20_000_000], ids=["taken at once", "taken in part"])
def test_what_came_meanwhile_from_who_waited_is_read_after_that(
    parking: Served, size: int, more: bytes
) -> None:
    """The poll reported the connection as readable before the answer changed its mask."""
    waiting, bringing, holding = parking.connect(), parking.connect(), parking.connect()
    following = request(b"next")
    waiting.send(request(b"wait") + following[:7])
    connection, _ = service_of(parking).next_parked()
    held, go_on = threading.Event(), threading.Event()
    news = b"n" * size

    def answer(_connection: Connection, frame: bytes | memoryview) -> Answer:
        if frame == b"\0\3hold":
            held.set()
            assert go_on.wait(10)
        if frame == b"\0\3bring":
            connection.respond_with(lambda: [framed(news)])
        return [framed(bytes(frame))]

    parking.service.answer = answer
    holding.send(request(b"hold"))
    assert held.wait(10)
    bringing.send(request(b"bring") + more)
    waiting.send(following[7:])  # so the next poll reports both, in this order
    go_on.set()
    assert bringing.receive_frame() == b"\0\3bring"
    assert waiting.receive_frame() == news
    assert waiting.receive_frame() == b"\0\3next"


def test_an_answer_that_cannot_be_made_ends_the_connection_that_waits_for_it(
    parking: Served, caplog: pytest.LogCaptureFixture
) -> None:
    waiting, bringing = parking.connect(), parking.connect()
    waiting.send(request(b"wait"))
    connection, _ = service_of(parking).next_parked()

    def fail() -> Answer:
        raise RuntimeError("a defect")

    def answer(_connection: Connection, _frame: bytes | memoryview) -> Answer:
        connection.respond_with(fail)
        return [framed(b"done")]

    parking.service.answer = answer
    bringing.send(request(b"bring"))
    assert waiting.is_closed()
    assert bringing.receive_frame() == b"done"
    assert "a defect" in caplog.text


def test_a_newcomer_is_not_given_what_was_reported_of_one_that_was_dropped(
    parking: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """The new connection may get the same descriptor, in the same wake-up."""
    waiting, bringing, holding = parking.connect(), parking.connect(), parking.connect()
    waiting.send(request(b"wait"))
    connection, _ = service_of(parking).next_parked()
    waiting.send(request(b"more"))  # so that the listener waits only for its end
    parking.settle()
    held, go_on = threading.Event(), threading.Event()

    def fail() -> Answer:
        raise RuntimeError("a defect")

    def answer(_connection: Connection, frame: bytes | memoryview) -> Answer:
        if frame == b"\0\3hold":
            held.set()
            assert go_on.wait(10)
        if frame == b"\0\3bring":
            connection.respond_with(fail)
        return [framed(bytes(frame))]

    parking.service.answer = answer
    holding.send(request(b"hold"))
    assert held.wait(10)
    # The next poll reports all three, in this order.
    bringing.send(request(b"bring"))
    newcomer = parking.connect()
    waiting.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    waiting.close()
    # The new connection gets the lowest free descriptor: the dropped connection's.
    with contextlib.ExitStack() as below:
        for _ in range(16):
            below.enter_context(socket.socket())
        go_on.set()
        assert bringing.receive_frame() == b"\0\3bring"
        newcomer.send(request(b"new"))
        assert newcomer.receive_frame() == b"\0\3new"
    assert "a defect" in caplog.text
