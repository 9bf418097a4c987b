"""The limits of a listener: sizes, counts, rates and slow peers."""

from __future__ import annotations

import errno
import socket

import pytest

from tests.wire.net.serving import PROBE, Clock, Echo, Parking, framed, request, serve
from wire.net.connection import Connection
from wire.net.limits import ListenerLimits
from wire.net.listener import Listener


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 0x47455420])
def test_an_impossible_size_closes_the_connection(size: int) -> None:
    with serve(Echo()) as served:
        client = served.connect()
        client.send(request(b"good") + size.to_bytes(4, "big", signed=True) + b"rest")
        assert client.receive_frame() == b"\0\3good"
        assert client.is_closed()


def test_a_request_of_any_api_may_have_the_size_of_the_limit() -> None:
    limits = ListenerLimits(request_size_max=5_000)
    cases = [(3, 4_998, True), (3, 4_999, False), (0, 4_998, True), (0, 4_999, False)]
    for key, size, is_allowed in cases:
        with serve(Echo(), limits=limits) as served:
            for head_size in (4, 5, 6, 50, size + 6):
                client = served.connect()
                data = request(b"x" * size, key=key)
                client.send(data[:head_size])
                served.settle()
                try:
                    client.send(data[head_size:])
                except ConnectionError:
                    assert not is_allowed
                if is_allowed:
                    assert len(client.receive_frame()) == size + 2
                else:
                    assert client.is_closed()


def test_large_requests_wait_for_each_other_when_memory_is_short() -> None:
    limits = ListenerLimits(receive_size_max=1_000_000)
    service = Parking()
    with serve(service, limits=limits) as served:
        data = request(b"x" * 700_000, key=0)
        clients = [served.connect() for _ in range(3)]
        for client in clients:
            # The first request takes the memory; of the others the listener reads the beginning.
            client.send(data[:300_000])
            served.settle()
        assert served.listener.memory.held_size <= 1_000_000
        for client in clients:
            client.send(data[300_000:])
            connection, frame = service.next_parked()
            assert len(frame) == 700_002
            connection.respond([framed(b"done")])
            assert client.receive_frame() == b"done"
        served.settle()
        assert served.listener.memory.held_size == 0


def test_announcing_a_size_takes_no_memory_from_others() -> None:
    with serve(Echo(), limits=ListenerLimits(receive_size_max=1_000_000)) as served:
        idle = [served.connect() for _ in range(20)]
        for client in idle:
            client.send((90_000_000).to_bytes(4, "big") + b"\0\0")
        served.settle()
        assert served.listener.memory.held_size == 0
        client = served.connect()
        client.send(request(b"x" * 900_000, key=0))
        assert len(client.receive_frame()) == 900_002


@pytest.mark.slow
def test_a_request_that_misses_least_comes_through_without_room() -> None:
    with serve(Echo(), limits=ListenerLimits(receive_size_max=300_000)) as served:
        served.connect().send(request(b"x" * 90_000_000, key=0)[:131_072])
        served.settle()
        client = served.connect()
        client.send(request(b"x" * 200_000, key=0))
        assert len(client.receive_frame()) == 200_002


def test_who_waits_for_room_in_vain_is_closed_in_the_end() -> None:
    service = Parking()
    with serve(service, limits=ListenerLimits(receive_size_max=300_000)) as served:
        for _ in range(2):
            served.connect().send(request(b"x" * 200_000, key=0))
            service.next_parked()
            served.settle()
        waiting = served.connect()
        waiting.send(request(b"x" * 200_000, key=0)[:100_000])
        served.settle()
        assert served.listener.memory.starved
        served.pass_time(20)
        assert waiting.is_closed()


def test_requests_that_the_service_works_on_count_until_they_are_answered() -> None:
    service = Parking()
    with serve(service, limits=ListenerLimits(receive_size_max=300_000)) as served:
        clients = [served.connect() for _ in range(5)]
        for client in clients:
            client.send(request(b"x" * 200_000, key=0))
        for _ in clients:
            connection, _frame = service.next_parked()
            served.settle()
            assert service.parked_count <= 1, "one has room, one may exceed the limit"
            connection.respond([framed(b"done")])
        for client in clients:
            assert client.receive_frame() == b"done"
        served.settle()
        assert served.listener.memory.held_size == 0


def test_a_request_larger_than_all_of_the_memory_comes_through_alone() -> None:
    with serve(Echo(), limits=ListenerLimits(receive_size_max=100_000)) as served:
        client = served.connect()
        data = request(b"x" * 300_000, key=0)
        client.send(data)
        assert len(client.receive_frame()) == 300_002


def test_a_connection_beyond_the_total_is_closed_and_leaving_makes_room() -> None:
    service = Echo()
    with serve(service, limits=ListenerLimits(connection_count_max=2)) as served:
        first, _second = served.connect(), served.connect()
        assert served.connect().is_closed()
        first.close()
        service.wait_for_end_of(first)
        third = served.connect()
        third.send(request(b"x"))
        assert third.receive_frame() == b"\0\3x"


def test_connections_of_one_address_are_limited_where_asked() -> None:
    limits = ListenerLimits(address_connection_count_max=2, limit_loopback=True)
    with serve(Echo(), limits=limits) as served:
        kept = [served.connect() for _ in range(2)]
        assert served.connect().is_closed()
        other = socket.create_connection(
            served.listener.address, timeout=10, source_address=("127.0.0.2", 0)
        )
        other.sendall(request(b"x"))
        assert other.recv(100) == request(b"x")
        other.close()
        for client in kept:
            client.send(request(b"x"))
            assert client.receive_frame() == b"\0\3x"


def test_new_connections_beyond_the_rate_wait_for_the_next_second() -> None:
    limits = ListenerLimits(accept_rate_max=3, limit_loopback=True)
    service = Echo()
    with serve(service, limits=limits) as served:
        clients = [served.connect() for _ in range(5)]
        for client in clients:
            client.send(request(b"x"))
        for client in clients[:3]:
            assert client.receive_frame() == b"\0\3x"
        clients[0].send(framed(PROBE))
        clients[0].receive_frame()
        assert len(service.connections) == 3
        served.pass_time(1)
        for client in clients[3:]:
            assert client.receive_frame() == b"\0\3x"


def test_loopback_peers_are_not_limited_by_address_and_rate_unless_asked() -> None:
    limits = ListenerLimits(accept_rate_max=1, address_connection_count_max=1)
    with serve(Echo(), limits=limits) as served:
        for client in [served.connect() for _ in range(20)]:
            client.send(request(b"x"))
            assert client.receive_frame() == b"\0\3x"


def test_a_silent_connection_is_closed_after_its_time() -> None:
    with serve(Echo()) as served:
        silent, busy = served.connect(), served.connect()
        for client in (silent, busy):
            client.send(request(b"x"))
            client.receive_frame()
        served.pass_time(599)
        busy.send(request(b"y"))
        busy.receive_frame()
        served.pass_time(2)
        assert silent.is_closed()
        busy.send(request(b"z"))
        assert busy.receive_frame() == b"\0\3z"


def test_an_answered_connection_is_closed_for_silence_as_any_other() -> None:
    service = Parking()
    with serve(service) as served:
        client = served.connect()
        client.send(request(b"join"))
        connection, _ = service.next_parked()
        served.pass_time(650)  # checked while it has no deadline
        served.settle()
        connection.respond([framed(b"joined")])
        assert client.receive_frame() == b"joined"
        served.pass_time(601)
        assert client.is_closed()


def test_a_parked_request_may_take_longer_than_the_idle_time() -> None:
    service = Parking()
    with serve(service) as served:
        client = served.connect()
        client.send(request(b"join"))
        connection, _ = service.next_parked()
        served.pass_time(10_000)
        served.settle()
        connection.respond([framed(b"at last")])
        assert client.receive_frame() == b"at last"


def test_a_request_that_drips_in_is_closed_at_its_deadline() -> None:
    with serve(Echo()) as served:
        dripping, large = served.connect(), served.connect()
        large.send(request(b"x" * 655_360, key=0)[:100_000])
        drops = iter(request(b"hello"))
        dripping.send(bytes([next(drops)]))
        served.settle()
        for _ in range(3):
            served.pass_time(3)
            dripping.send(bytes([next(drops)]))
            served.settle()
        served.pass_time(2)
        assert dripping.is_closed()
        # Ten seconds for any request, plus ten for 640 KiB.
        large.send(b"x" * 10)
        served.settle()
        served.pass_time(8)
        served.settle()
        large.send(b"x" * 10)
        served.settle()
        served.pass_time(3)
        assert large.is_closed()


def test_a_peer_that_does_not_read_is_closed_after_thirty_seconds() -> None:
    with serve(Echo()) as served:
        payload = bytes(8_000_000)
        served.service.answer = lambda *_: [framed(payload)]
        stalled, reading = (
            served.connect(receive_buffer_size=4_096),
            served.connect(receive_buffer_size=4_096),
        )
        for client in (stalled, reading):
            client.send(request(b"much"))
        served.settle()
        for _ in range(3):
            served.pass_time(14)
            reading.receive(2_000_000)
            served.settle()
        served.service.wait_for_end_of(stalled)
        assert reading.port not in served.service.ended_ports()
        reading.receive(2_000_004)


def test_when_too_much_is_unread_the_slowest_peer_has_to_go() -> None:
    service = Echo()
    with serve(service, limits=ListenerLimits(response_size_max=20_000_000)) as served:
        payload = memoryview(bytes(8_000_000))
        service.answer = lambda *_: [(8_000_000).to_bytes(4, "big"), payload]
        clients = [served.connect(receive_buffer_size=4_096) for _ in range(4)]
        for client in clients[:2]:
            client.send(request(b"much"))
            served.settle()
            served.pass_time(1)
        assert clients[0].port not in service.ended_ports()
        for client in clients[2:]:
            client.send(request(b"much"))
        service.wait_for_end_of(clients[0])
        assert clients[3].receive_frame() == payload


def test_without_descriptors_accepting_pauses_and_nothing_spins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = Echo()
    accept = socket.socket.accept
    refused: list[int] = []

    def no_descriptor(sock: socket.socket) -> tuple[socket.socket, object]:
        refused.append(errno.EMFILE)
        raise OSError(errno.EMFILE, "Too many open files")

    with serve(service) as served:
        first = served.connect()
        first.send(request(b"before"))
        first.receive_frame()
        monkeypatch.setattr(socket.socket, "accept", no_descriptor)
        second = served.connect()
        second.send(request(b"x"))
        for _ in range(50):
            first.send(request(b"still served"))
            assert first.receive_frame() == b"\0\3still served"
        assert len(refused) == 1
        monkeypatch.setattr(socket.socket, "accept", accept)
        served.pass_time(1)
        assert second.receive_frame() == b"\0\3x"


def test_a_buffer_for_a_large_request_is_given_back_in_time() -> None:
    clock = Clock()
    service = Echo()
    handled: list[int] = []
    service.answer = lambda _, frame: handled.append(len(frame)) or []
    listener = Listener(service, "127.0.0.1", 0, clock=clock)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as peer,
    ):
        accepted, address = server.accept()
        connection = Connection(listener.connections, accepted, address)
        peer.sendall(request(b"x" * 100_000, key=0)[:100_000])
        while listener.memory.held_size == 0:
            connection.receive()
        connection.trim(now=clock.now + 10)
        assert listener.memory.held_size == 262_144, "it holds part of a request"
        peer.sendall(request(b"x" * 100_000, key=0)[100_000:])
        while not handled:
            connection.receive()
        assert listener.memory.held_size == 262_144, "kept for the next large request"
        connection.trim(now=clock.now + 10)
        assert listener.memory.held_size == 0
        connection.forget()
    listener.close()


class _Stream:
    """A socket that fills every read until its content ends."""

    def __init__(self, content: bytes) -> None:
        self.left = memoryview(content)
        self.read_sizes: list[int] = []

    def recv_into(self, view: memoryview) -> int:
        count = min(len(view), len(self.left))
        view[:count], self.left = self.left[:count], self.left[count:]
        self.read_sizes.append(count)
        return count

    def fileno(self) -> int:
        return -1

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 1

    def shutdown(self, _how: int) -> None: ...

    def close(self) -> None: ...


def test_a_peer_that_sends_one_request_after_the_other_is_read_in_larger_steps() -> None:
    clock = Clock()
    service = Echo()
    handled: list[bytes] = []
    service.answer = lambda _, frame: handled.append(bytes(frame)) or []
    listener = Listener(service, "127.0.0.1", 0, clock=clock)
    sent = [b"\0\3" + bytes([number]) * 15_000 for number in range(120)]
    stream = _Stream(b"".join(map(framed, sent)))
    peer = ("127.0.0.1", 2)
    connection = Connection(listener.connections, stream, peer)  # type: ignore[arg-type]
    while stream.left:
        connection.receive()
    assert handled == sent
    first, *others, _ = stream.read_sizes
    assert first == 64 * 1024
    assert min(others) >= 64 * 1024
    assert len(stream.read_sizes) <= 10
    assert listener.memory.held_size == 256 * 1024
    connection.trim(now=clock.now + 10)
    assert listener.memory.held_size == 0
    connection.forget()
    listener.close()
