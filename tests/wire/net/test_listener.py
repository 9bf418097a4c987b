"""The listener against blocking clients: framing, order, one request in flight, late answers."""

from __future__ import annotations

import os
import random
import socket
import threading
from collections.abc import Iterator
from hashlib import sha256

import pytest

from tests.wire.net.serving import Answer, Echo, Parking, Served, framed, request, serve
from wire.net.acceptor import RemoteAddress
from wire.net.connection import Connection
from wire.net.listener import Listener
from wire.net.poller import EpollPoller, SelectorPoller


@pytest.fixture(params=[EpollPoller, SelectorPoller])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    with serve(Echo(), poller=request.param()) as served:
        yield served


@pytest.fixture(params=[EpollPoller, SelectorPoller])
def parking(request: pytest.FixtureRequest) -> Iterator[Served]:
    with serve(Parking(), poller=request.param()) as served:
        yield served


def parked(served: Served) -> Parking:
    assert isinstance(served.service, Parking)
    return served.service


def test_a_request_split_at_any_byte_is_answered_whole(served: Served) -> None:
    client = served.connect()
    data = request(b"first") + framed(b"") + request(b"second")
    for cut in range(1, len(data)):
        client.send(data[:cut])
        served.settle()
        client.send(data[cut:])
        assert [client.receive_frame() for _ in range(3)] == [b"\0\3first", b"", b"\0\3second"]


def test_any_mixture_of_sizes_and_cuts_is_answered_in_order(served: Served) -> None:
    rng = random.Random(7)
    client = served.connect()
    for _ in range(20):
        bodies = [
            rng.randbytes(rng.choice([0, 1, 5, 100, 4_090, 65_530, 65_532, 65_540, 200_000]))
            for _ in range(rng.randint(1, 12))
        ]
        data = b"".join(map(request, bodies))
        sender = threading.Thread(target=_send_in_pieces, args=(client.sock, data, rng.random()))
        sender.start()
        for body in bodies:
            assert client.receive_frame() == b"\0\3" + body
        sender.join()


def _send_in_pieces(sock: socket.socket, data: bytes, seed: float) -> None:
    rng = random.Random(seed)
    while data:
        size = rng.choice([1, 3, 4, 1_000, 65_536, 100_000])
        sock.sendall(data[:size])
        data = data[size:]


def test_pipelined_requests_of_a_wake_up_are_answered_in_order(served: Served) -> None:
    client = served.connect()
    client.send(b"".join(request(b"%d" % number) for number in range(2_000)))
    for number in range(2_000):
        assert client.receive_frame() == b"\0\3%d" % number


@pytest.mark.slow
def test_a_frame_larger_than_any_buffer_is_handled_whole(served: Served) -> None:
    served.service.answer = lambda _, frame: [framed(sha256(frame).digest())]
    client = served.connect()
    body = random.Random(3).randbytes(20_000_000)
    for _ in range(3):
        client.send(request(body, key=0))
        assert client.receive_frame() == sha256(b"\0\0" + body).digest()


def test_an_answer_of_many_buffers_by_reference_arrives_whole(served: Served) -> None:
    payload = memoryview(random.Random(1).randbytes(3_000_000))
    count = 3_000
    answer: list[bytes | memoryview] = [len(payload).to_bytes(4, "big")]
    answer += [payload[i * 1_000 : (i + 1) * 1_000] for i in range(count)]
    served.service.answer = lambda *_: answer
    client = served.connect()
    client.send(request(b"all") * 2)
    assert client.receive_frame() == payload
    assert client.receive_frame() == payload


def test_an_empty_answer_sends_nothing_and_the_next_request_is_handled(served: Served) -> None:
    served.service.answer = lambda _, frame: [] if frame == b"\0\0quiet" else [framed(b"loud")]
    client = served.connect()
    client.send(request(b"quiet", key=0) + request(b"loud"))
    assert client.receive_frame() == b"loud"


def test_a_late_answer_comes_from_another_thread(parking: Served) -> None:
    client = parking.connect()
    for number in range(50):
        client.send(request(b"%d" % number))
        connection, frame = parked(parking).next_parked()
        assert frame == b"\0\3%d" % number
        connection.respond([framed(b"late %d" % number)])
        assert client.receive_frame() == b"late %d" % number


def test_one_request_is_in_flight_and_the_next_waits_for_its_answer(parking: Served) -> None:
    client = parking.connect()
    client.send(request(b"one") + request(b"two"))
    first, frame = parked(parking).next_parked()
    client.send(request(b"three") + request(b"four")[:5])
    parking.settle()
    parking.settle()
    assert parked(parking).parked_count == 0
    assert frame == b"\0\3one"
    first.respond([framed(b"answer one")])
    assert client.receive_frame() == b"answer one"
    second, later_frame = parked(parking).next_parked()
    assert (frame, later_frame) == (b"\0\3one", b"\0\3two")
    second.respond(None)
    third, _ = parked(parking).next_parked()
    third.respond([framed(b"answer three")])
    assert client.receive_frame() == b"answer three"
    client.send(request(b"four")[5:])
    assert parked(parking).next_parked()[1] == b"\0\3four"


def test_the_bytes_of_a_parked_request_are_never_written_again(parking: Served) -> None:
    """Small frames lie in the shared buffer, large frames in the connection's own."""
    bodies = [b"a" * 50, b"b" * 30_000, b"c" * 64_000, b"d" * 500_000, b"e" * 65_530]
    clients = [parking.connect() for _ in bodies]
    kept = []
    for _ in range(3):
        for client, body in zip(clients, bodies, strict=True):
            client.send(request(body, key=0))
            connection, frame = parked(parking).next_parked()
            kept.append((body, frame))
            connection.respond([framed(b"")])
            client.receive_frame()
    assert all(frame[2:] == body for body, frame in kept)


def test_an_answer_may_come_before_the_request_is_parked(parking: Served) -> None:
    """Another thread answers between the service's last check and the return of `handle`."""

    def answer(connection: Connection, _frame: bytes | memoryview) -> None:
        thread = threading.Thread(target=connection.respond, args=([framed(b"early")],))
        thread.start()
        thread.join()

    parking.service.answer = answer
    client = parking.connect()
    for _ in range(20):
        client.send(request(b"now"))
        assert client.receive_frame() == b"early"


def test_answers_from_many_threads_reach_their_own_connections(parking: Served) -> None:
    clients = [parking.connect() for _ in range(30)]
    threads = []
    for number, client in enumerate(clients):
        client.send(request(b"%d" % number))
    for _ in clients:
        connection, frame = parked(parking).next_parked()
        answer = [framed(b"to %s" % bytes(frame[2:]))]
        threads.append(threading.Thread(target=connection.respond, args=(answer,)))
    for thread in threads:
        thread.start()
    for number, client in enumerate(clients):
        assert client.receive_frame() == b"to %d" % number
    for thread in threads:
        thread.join()


@pytest.mark.slow
def test_a_slow_reader_gets_every_byte_and_is_not_read_from_meanwhile(served: Served) -> None:
    handled: list[int] = []
    payload = random.Random(2).randbytes(900_000)
    answer = [len(payload).to_bytes(4, "big"), memoryview(payload)]

    def count(_: Connection, frame: bytes | memoryview) -> list[bytes | memoryview]:
        handled.append(len(frame))
        return answer

    served.service.answer = count
    client = served.connect(receive_buffer_size=4_096)
    client.send(request(b"more") * 40)
    served.settle()
    assert len(handled) < 40, "all answers were queued for a peer that does not read"
    for _ in range(40):
        assert client.receive_frame() == payload
    assert len(handled) == 40


def test_nothing_overtakes_a_parked_request_while_an_answer_before_it_is_written(
    parking: Served,
) -> None:
    park = parking.service.answer
    payload = bytes(200_000)  # small enough for the next request to be handled

    def answer(connection: Connection, frame: bytes | memoryview) -> Answer:
        return [framed(payload)] if frame == b"\0\3large" else park(connection, frame)

    parking.service.answer = answer
    client = parking.connect_narrow()
    for _ in range(2):
        client.send(request(b"large") + request(b"one") + request(b"two") + request(b"three"))
        one, _frame = parked(parking).next_parked()
        assert client.receive_frame() == payload
        parking.settle()
        assert parked(parking).parked_count == 0
        one.respond([framed(payload)])
        parking.settle()
        assert parked(parking).parked_count == 0, "its answer is not written yet"
        assert client.receive_frame() == payload
        two, frame = parked(parking).next_parked()
        assert frame == b"\0\3two"
        two.respond(None)
        three, frame = parked(parking).next_parked()
        assert frame == b"\0\3three"
        three.respond([framed(b"end")])
        assert client.receive_frame() == b"end"


def test_an_answer_given_before_the_answers_before_it_are_written_waits(parking: Served) -> None:
    park = parking.service.answer
    payload = bytes(200_000)  # small enough for the next request to be handled

    def answer(connection: Connection, frame: bytes | memoryview) -> Answer:
        return [framed(payload)] if frame == b"\0\3large" else park(connection, frame)

    parking.service.answer = answer
    for late in ([framed(b"late")], None):
        client = parking.connect_narrow()
        client.send(request(b"large") + request(b"one") + request(b"two"))
        one, _ = parked(parking).next_parked()
        one.respond(late)
        parking.settle()
        assert parked(parking).parked_count == 0
        assert client.receive_frame() == payload
        if late is not None:
            assert client.receive_frame() == b"late"
        assert parked(parking).next_parked()[1] == b"\0\3two"


def test_closing_writes_the_answers_given_before(served: Served) -> None:
    def last(connection: Connection, frame: bytes | memoryview) -> list[bytes]:
        if frame == b"\0\3last":
            connection.close()
        return [framed(b"%d" % len(frame) + b"x" * 200_000)]

    served.service.answer = last
    client = served.connect(receive_buffer_size=4_096)
    client.send(request(b"next") + request(b"last") + request(b"never"))
    assert client.receive_frame()[:1] == b"6"
    assert client.receive_frame()[:1] == b"6"
    assert client.is_closed()


def test_a_parked_connection_can_be_closed_from_another_thread(parking: Served) -> None:
    client = parking.connect()
    client.send(request(b"wait"))
    connection, _ = parked(parking).next_parked()
    connection.close()
    assert client.is_closed()
    parking.service.wait_for_end_of(client)
    connection.respond([framed(b"too late")])
    parking.settle()


def test_a_peer_that_leaves_while_its_request_is_parked_is_noticed(parking: Served) -> None:
    client = parking.connect()
    client.send(request(b"wait"))
    connection, _ = parked(parking).next_parked()
    client.close()
    parking.service.wait_for_end_of(client)
    assert not connection.is_open


def test_a_peer_that_resets_its_connection_is_noticed(served: Served) -> None:
    client = served.connect()
    assert served.service.on_connect.wait(10)
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
    served.service.wait_for_end_of(client)


def test_a_service_that_fails_costs_its_connection_only(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Connection, frame: bytes | memoryview) -> list[bytes]:
        if frame == b"\0\3bad":
            raise ZeroDivisionError("a defect")
        return [framed(b"fine")]

    served.service.answer = fail
    good, bad = served.connect(), served.connect()
    bad.send(request(b"bad"))
    assert bad.is_closed()
    good.send(request(b"good"))
    assert good.receive_frame() == b"fine"
    assert "connection from 127.0.0.1 failed" in caplog.text


def test_a_service_that_fails_to_greet_a_peer_costs_its_connection_only(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Connection) -> None:
        raise ZeroDivisionError("a defect")

    greet = served.service.connected
    monkeypatch.setattr(served.service, "connected", fail)
    assert served.connect().is_closed()
    monkeypatch.setattr(served.service, "connected", greet)
    client = served.connect()
    client.send(request(b"x"))
    assert client.receive_frame() == b"\0\3x"
    assert "connection from 127.0.0.1 failed" in caplog.text


def test_a_turn_that_fails_is_tried_again_and_does_not_spin(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    failed = threading.Event()

    def fail() -> int | None:
        failed.set()
        raise ZeroDivisionError("a defect")

    served.service.duty = fail
    served.listener.wake()
    assert failed.wait(10)
    served.settle()
    served.service.duty = lambda: None
    assert served.service.turn_count < 20
    assert "a service failed in its turn" in caplog.text


def test_the_service_gets_a_turn_after_each_wake_and_when_it_asked_for_one(served: Served) -> None:
    due = threading.Event()
    delays = iter([0, 0, 1, None])

    def duty() -> int | None:
        delay = next(delays, None)
        if delay is None:
            due.set()
        return delay

    served.service.duty = duty
    served.listener.wake()
    assert due.wait(10)
    before = served.service.turn_count
    due.clear()
    served.listener.wake()
    assert due.wait(10)
    assert served.service.turn_count > before


def test_an_idle_listener_sleeps_without_a_timeout() -> None:
    timeouts: list[float | None] = []
    asleep = threading.Event()

    class Watched(SelectorPoller):
        def poll(self, timeout: float | None, /) -> list[tuple[int, int]]:
            timeouts.append(timeout)
            if timeout is None:
                asleep.set()
            return super().poll(timeout)

    with serve(Echo(), poller=Watched()) as served:
        assert asleep.wait(10)
        client = served.connect()
        client.send(request(b"x"))
        client.receive_frame()
        # A connection has one deadline, ten minutes away.
        assert timeouts[-1] is None or timeouts[-1] == pytest.approx(600, abs=1)


def test_stop_closes_connections_and_frees_the_address() -> None:
    with serve(Echo()) as served:
        address = served.listener.address
        client = served.connect()
        client.send(request(b"x"))
        client.receive_frame()
        served.listener.stop()
        assert client.is_closed()
        served.service.wait_for_end_of(client)
    again = Listener(Echo(), *address)
    again.close()
    again.close()


def test_a_forked_child_holds_neither_the_address_nor_connections() -> None:
    read_end, write_end = os.pipe()
    child_read_end, child_write_end = os.pipe()
    with serve(Echo()) as served:
        client = served.connect()
        client.send(request(b"before"))
        client.receive_frame()
        child = os.fork()
        if child == 0:
            os.write(child_write_end, b"x")
            os.close(write_end)
            os.read(read_end, 1)  # until the parent has seen everything
            os._exit(0)
        try:
            os.read(child_read_end, 1)
            client.send(request(b"after"))
            assert client.receive_frame() == b"\0\3after"
            served.listener.stop()
            assert client.is_closed()
            served.service.wait_for_end_of(client)
            Listener(Echo(), *served.listener.address).close()
        finally:
            for end in (write_end, read_end, child_read_end, child_write_end):
                os.close(end)
            assert os.waitpid(child, 0)[1] == 0


def test_an_address_in_use_is_an_os_error() -> None:
    with serve(Echo()) as served, pytest.raises(OSError, match="in use"):
        Listener(Echo(), *served.listener.address)


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::"])
def test_an_address_other_machines_can_reach_is_refused_unless_allowed(host: str) -> None:
    with pytest.raises(RemoteAddress):
        Listener(Echo(), host, 0)
    if host != "::":  # a machine without IPv6 cannot run this test
        Listener(Echo(), host, 0, allow_remote=True).close()


def test_localhost_is_the_ipv4_loopback() -> None:
    listener = Listener(Echo(), "localhost", 0)
    assert listener.address[0] == "127.0.0.1"
    listener.close()
