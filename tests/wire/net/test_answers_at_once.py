"""A request of one connection brings what another waits for: that one is answered first."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.wire.net.serving import Answer, Parking, Served, framed, request, serve
from wire.net.peer import Connection


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
