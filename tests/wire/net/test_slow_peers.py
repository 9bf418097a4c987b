"""Peers that read slowly, stall, leave or reset: what the listener keeps for them, and how long."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.wire.net.serving import (
    Answer,
    Client,
    Echo,
    Masks,
    Parking,
    Served,
    framed,
    request,
    serve,
)
from wire.net.acceptor import is_loopback
from wire.net.connection import Connection
from wire.net.limits import ListenerLimits
from wire.net.receive_memory import Received

PRODUCE = 0


def reset(client: Client) -> None:
    """End the connection with a reset instead of a regular end."""
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


@contextmanager
def held(served: Served) -> Iterator[None]:
    """Keep the listener's thread busy, so that its next poll reports all that comes meanwhile."""
    holding = served.connect()
    came, go_on = threading.Event(), threading.Event()
    answer = served.service.answer

    def hold(connection: Connection, frame: memoryview) -> Answer:
        if frame == b"\0\3hold":
            came.set()
            assert go_on.wait(10)
        return answer(connection, frame)

    served.service.answer = hold
    holding.send(request(b"hold"))
    assert came.wait(10)
    yield
    go_on.set()
    assert holding.receive_frame()


def occupy_memory(served: Served, service: Parking) -> None:
    """Take all memory with two requests; the second one exceeds the limit."""
    for _ in range(2):
        served.connect().send(request(b"x" * 200_000, key=PRODUCE))
        service.next_parked()
        served.settle()


def begin_of_produce(size: int) -> bytes:
    return size.to_bytes(4, "big") + bytes(131_068)


def test_a_connection_without_memory_is_not_watched() -> None:
    service, poller = Parking(), Masks()
    limits = ListenerLimits(receive_size_max=300_000)
    with serve(service, limits=limits, poller=poller) as served:
        occupy_memory(served, service)
        waiting = served.connect()
        waiting.send(request(b"x" * 200_000, key=PRODUCE)[:150_000])
        served.settle()
        assert served.listener.memory.starved
        assert poller.masks[service.connection_of(waiting).fd] == 0


def test_a_connection_that_has_its_answer_but_no_memory_is_not_watched() -> None:
    service, poller = Parking(), Masks()
    limits = ListenerLimits(receive_size_max=300_000)
    park = service.answer
    service.answer = lambda connection, frame: (
        park(connection, frame) if len(frame) > 1_000 else [framed(b"a" * 1_000_000)]
    )
    with serve(service, limits=limits, poller=poller) as served:
        occupy_memory(served, service)
        waiting = served.connect_narrow()
        waiting.send(request(b"small") + request(b"x" * 200_000, key=PRODUCE)[:50_000])
        assert len(waiting.receive_frame()) == 1_000_000
        waiting.send(b"x" * 50_000)
        served.settle()
        assert served.listener.memory.starved
        assert poller.masks[service.connection_of(waiting).fd] == 0


def test_a_stalled_peer_gives_its_memory_up_when_another_needs_it() -> None:
    with serve(Echo(), limits=ListenerLimits(receive_size_max=300_000)) as served:
        holder, waiting = served.connect(), served.connect()
        holder.send(begin_of_produce(90_000_000))
        served.settle()
        waiting.send(begin_of_produce(95_000_000))
        served.settle()
        assert served.listener.memory.starved
        holder.sock.settimeout(3)
        served.pass_time(20)  # of the 1,383 s that a request of this size may take
        assert holder.is_closed(), "131,072 bytes may take 12 s"
        served.settle()
        assert not served.listener.memory.starved


def test_a_request_that_waits_for_memory_has_the_time_of_its_size() -> None:
    service = Parking()
    with serve(service, limits=ListenerLimits(receive_size_max=300_000)) as served:
        occupy_memory(served, service)
        waiting = served.connect()
        waiting.send(begin_of_produce(90_000_000))
        served.settle()
        assert served.listener.memory.starved
        served.pass_time(20)  # 131,072 bytes may take 12 s, the whole request 1,383 s
        served.settle()
        assert waiting.port not in service.ended_ports()


def test_a_connection_that_waited_for_memory_is_served_as_before() -> None:
    service = Parking()
    with serve(service, limits=ListenerLimits(receive_size_max=300_000)) as served:
        data = request(b"x" * 200_000, key=PRODUCE)
        for client in (served.connect(), served.connect()):
            client.send(data)
        parked = [service.next_parked()[0] for _ in range(2)]
        waiting = served.connect_narrow()
        waiting.send(data[:100_000])
        served.settle()
        assert served.listener.memory.starved
        for connection in parked:
            connection.respond([framed(b"done")])
        waiting.send(data[100_000:])
        for _ in range(2):
            service.next_parked()[0].respond([framed(b"a" * 1_000_000)])
            assert len(waiting.receive_frame()) == 1_000_000
            waiting.send(request(b"next"))


def test_a_request_that_fits_does_not_wait_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its own smaller buffers nor the empty buffers of others are in its way."""

    def refuse(*_: object) -> None:
        raise AssertionError("it waits for memory")

    monkeypatch.setattr(Received, "starve", refuse)
    with serve(Echo(), limits=ListenerLimits(receive_size_max=1_000_000)) as served:
        data = request(b"x" * 700_000, key=PRODUCE)
        for client in (served.connect(), served.connect()):
            for start in range(0, len(data), 100_000):
                client.send(data[start : start + 100_000])
                served.settle()
            assert len(client.receive_frame()) == 700_002


def test_the_second_of_two_slow_requests_has_its_own_time() -> None:
    with serve(Echo()) as served:
        client = served.connect()
        data = request(b"x" * 1_000)
        client.send(data[:500])
        served.settle()
        served.pass_time(9)
        client.send(data[500:] + data[:500])
        assert len(client.receive_frame()) == 1_002
        served.pass_time(9)  # the first request had ten seconds
        client.send(data[500:])
        assert len(client.receive_frame()) == 1_002


@pytest.mark.parametrize("is_finished", [True, False], ids=["is answered", "leaves"])
def test_another_request_may_exceed_the_memory_when_the_first(*, is_finished: bool) -> None:
    service = Echo()
    with serve(service, limits=ListenerLimits(receive_size_max=100_000)) as served:
        data = request(b"x" * 300_000, key=PRODUCE)
        first, second = served.connect(), served.connect()
        first.send(data if is_finished else data[:200_000])
        if is_finished:
            assert len(first.receive_frame()) == 300_002
        else:
            served.settle()
            first.close()
            service.wait_for_end_of(first)
        second.sock.settimeout(3)
        second.send(data)
        assert len(second.receive_frame()) == 300_002


def test_requests_behind_an_unread_answer_are_not_handled() -> None:
    service = Echo()
    handled: list[int] = []

    def answer(_connection: Connection, frame: memoryview) -> Answer:
        handled.append(len(frame))
        return [framed(b"a" * 300_000)]

    service.answer = answer
    with serve(service) as served:
        client = served.connect_narrow()
        client.send(request(b"x") * 8)
        served.settle()
        assert len(handled) == 1
        for _ in range(8):
            assert len(client.receive_frame()) == 300_000


def test_an_answer_that_took_long_to_read_counts_as_activity() -> None:
    service = Echo()
    service.answer = lambda _, frame: [framed(b"a" * (1_000_000 if frame == b"\0\3long" else 1))]
    limits = ListenerLimits(idle_ms=25_000, write_stall_ms=30_000)
    with serve(service, limits=limits) as served:
        client = served.connect_narrow()
        client.send(request(b"long"))
        served.settle()
        served.pass_time(20)
        client.receive(100_000)
        served.settle()
        served.pass_time(20)
        client.receive(900_004)
        served.settle()
        served.pass_time(15)
        client.send(request(b"next"))
        assert client.receive_frame() == b"a"


def test_an_answer_after_a_long_wait_counts_as_activity() -> None:
    service = Parking()
    with serve(service) as served:
        client = served.connect()
        client.send(request(b"wait"))
        connection, _ = service.next_parked()
        served.pass_time(300)
        served.connect()
        served.settle()
        served.pass_time(400)
        connection.respond([framed(b"late")])
        assert client.receive_frame() == b"late"
        served.pass_time(250)  # the other connection is closed in this time
        client.send(request(b"next"))
        service.next_parked()[0].respond([framed(b"again")])
        assert client.receive_frame() == b"again"


def test_a_connection_that_waited_long_is_closed_for_its_silence_after_that() -> None:
    service = Parking()
    with serve(service) as served:
        client = served.connect()
        client.send(request(b"wait"))
        connection, _ = service.next_parked()
        served.pass_time(700)
        connection.respond([framed(b"late")])
        assert client.receive_frame() == b"late"
        client.sock.settimeout(3)
        served.pass_time(601)
        assert client.is_closed()


def test_a_peer_that_leaves_leaves_no_unread_bytes() -> None:
    service = Echo()
    service.answer = lambda *_: [framed(b"a" * 1_000_000)]
    with serve(service) as served:
        client = served.connect_narrow()
        client.send(request(b"x"))
        served.settle()
        assert served.listener.unread.size
        client.close()
        service.wait_for_end_of(client)
        assert served.listener.unread.size == 0


def test_a_connection_that_has_ended_does_not_count_for_its_address() -> None:
    service = Echo()
    limits = ListenerLimits(address_connection_count_max=2, limit_loopback=True)
    with serve(service, limits=limits) as served:
        for _ in range(4):
            with served.connect() as client:
                client.send(request(b"x"))
                assert client.receive_frame() == b"\0\3x"
            service.wait_for_end_of(client)


def test_a_request_before_a_reset_is_handled() -> None:
    service = Echo()
    handled: list[bytes] = []

    def answer(_connection: Connection, frame: memoryview) -> Answer:
        handled.append(bytes(frame))
        return [framed(b"done")]

    service.answer = answer
    with serve(service) as served:
        client = served.connect()
        served.settle()
        with held(served):
            client.send(request(b"last"))
            reset(client)
        service.wait_for_end_of(client)
        assert b"\0\3last" in handled


def test_a_reset_is_no_failure_of_the_listener(caplog: pytest.LogCaptureFixture) -> None:
    service = Echo()
    with serve(service) as served:
        client = served.connect()
        client.send(request(b"x")[:3])
        served.settle()
        reset(client)
        service.wait_for_end_of(client)
    assert "failed" not in caplog.text


def test_an_answer_to_a_peer_that_has_left_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    service = Parking()
    with serve(service) as served:
        client = served.connect()
        client.send(request(b"wait"))
        connection, _ = service.next_parked()
        client.close()
        service.wait_for_end_of(client)
        connection.respond([framed(b"late")])
        served.settle()
    assert "failed" not in caplog.text


def test_an_answer_to_a_connection_that_its_request_closed_is_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = Echo()

    def answer(connection: Connection, frame: memoryview) -> Answer:
        connection.close()
        return [framed(bytes(frame))]

    service.answer = answer
    with serve(service) as served:
        client = served.connect()
        client.send(request(b"x"))
        service.wait_for_end_of(client)
    assert "failed" not in caplog.text


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:10.0.0.1", False),
        ("10.127.0.1", False),
        ("::11", False),
    ],
)
def test_loopback_addresses(host: str, *, expected: bool) -> None:
    assert is_loopback(host) == expected
