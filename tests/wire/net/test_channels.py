"""Client channels against a plain socket that acts as the broker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from wire.net.channel import Channel, ChannelEvent, EventKind
from wire.net.channels import SocketChannels
from wire.net.poller import EpollPoller, SelectorPoller

WAIT_MS = 10_000


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


class Peer:
    """A listening socket and the one connection accepted from it."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.connection: socket.socket | None = None

    def accept(self) -> socket.socket:
        self.connection, _ = self.listening.accept()
        self.connection.settimeout(10)
        return self.connection

    def close(self) -> None:
        self.listening.close()
        if self.connection is not None:
            self.connection.close()


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.close()


@pytest.fixture(params=[EpollPoller, SelectorPoller])
def channels(request: pytest.FixtureRequest) -> Iterator[SocketChannels]:
    channels = SocketChannels(poller=request.param())
    yield channels
    channels.close_all()


def next_event(channels: SocketChannels) -> ChannelEvent:
    (event,) = collect(channels, 1)
    return event


def collect(channels: SocketChannels, count: int) -> list[ChannelEvent]:
    events: list[ChannelEvent] = []
    for _ in range(1_000):
        # A poll may return without events: after half a frame was read or written.
        events += channels.poll(WAIT_MS)
        if len(events) >= count:
            break
    assert len(events) == count, events
    return events


def connected(channels: SocketChannels, peer: Peer) -> tuple[Channel, socket.socket]:
    channel = channels.connect("127.0.0.1", peer.port)
    accepted = peer.accept()
    event = next_event(channels)
    assert (event.kind, event.channel) == (EventKind.CONNECTED, channel)
    assert channel.is_connected
    return channel, accepted


def receive_exactly(sock: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        more = sock.recv(size - len(received))
        assert more, f"closed after {len(received)} of {size} bytes"
        received += more
    return received


def test_what_is_sent_before_the_connection_is_made_arrives(
    channels: SocketChannels, peer: Peer
) -> None:
    channel = channels.connect("127.0.0.1", peer.port)
    channels.send(channel, [framed(b"early"), framed(b"bird")])
    assert channel.unsent_size == 17
    accepted = peer.accept()
    assert next_event(channels).kind == EventKind.CONNECTED
    assert receive_exactly(accepted, 17) == framed(b"early") + framed(b"bird")
    assert channel.unsent_size == 0


def test_a_frame_split_at_any_byte_arrives_whole(channels: SocketChannels, peer: Peer) -> None:
    _, accepted = connected(channels, peer)
    data = framed(b"") + framed(b"one") + framed(b"second")
    for cut in range(1, len(data)):
        accepted.sendall(data[:cut])
        events = channels.poll(WAIT_MS)
        accepted.sendall(data[cut:])
        events += collect(channels, 3 - len(events))
        assert [bytes(event.frame or b"") for event in events] == [b"", b"one", b"second"]


def test_frames_stay_unchanged_while_they_are_kept(channels: SocketChannels, peer: Peer) -> None:
    _, accepted = connected(channels, peer)
    kept: list[tuple[bytes, memoryview]] = []
    for number in range(300):
        payload = number.to_bytes(2, "big") * 500
        accepted.sendall(framed(payload))
        frame = next_event(channels).frame
        assert frame is not None
        kept.append((payload, frame))
    assert all(frame == payload for payload, frame in kept)


def test_a_frame_larger_than_any_buffer_arrives_and_is_sent(
    channels: SocketChannels, peer: Peer
) -> None:
    channel, accepted = connected(channels, peer)
    payload = bytes(range(256)) * 4096 * 8
    sender = threading.Thread(target=accepted.sendall, args=(framed(payload),))
    sender.start()
    assert next_event(channels).frame == payload
    sender.join()

    received: list[bytes] = []
    reader = threading.Thread(
        target=lambda: received.append(receive_exactly(accepted, 4 + len(payload)))
    )
    reader.start()
    channels.send(channel, [len(payload).to_bytes(4, "big"), memoryview(payload)])
    while channel.unsent_size:
        assert channels.poll(WAIT_MS) == []
    reader.join()
    assert received == [framed(payload)]


def test_the_peer_closing_ends_the_channel_after_its_frames(
    channels: SocketChannels, peer: Peer
) -> None:
    channel, accepted = connected(channels, peer)
    accepted.sendall(framed(b"last") + b"\x00\x00")
    accepted.close()
    last, closed = collect(channels, 2)
    assert bytes(last.frame or b"") == b"last"
    assert (closed.kind, closed.reason) == (EventKind.CLOSED, "closed by the peer")
    assert channel.is_closed
    channels.send(channel, [b"dropped"])
    assert channels.poll(0) == []


@pytest.mark.parametrize("size", [-1, 1_001, 2**31 - 1])
def test_a_frame_of_an_impossible_size_ends_the_channel(size: int, peer: Peer) -> None:
    channels = SocketChannels(frame_size_max=1_000)
    _, accepted = connected(channels, peer)
    accepted.sendall(size.to_bytes(4, "big", signed=True))
    event = next_event(channels)
    assert event.kind == EventKind.CLOSED
    assert event.reason == f"frame of {size} bytes; allowed are 0 to 1000"
    channels.close_all()


def test_a_refused_connection_is_an_event_and_not_an_exception(
    channels: SocketChannels, peer: Peer
) -> None:
    peer.listening.close()
    channel = channels.connect("127.0.0.1", peer.port)
    event = next_event(channels)
    assert (event.kind, event.channel) == (EventKind.CLOSED, channel)
    assert event.reason == "Connection refused"


def test_an_unknown_host_is_an_event_and_not_an_exception(channels: SocketChannels) -> None:
    channels.connect("host name with blanks", 9092)
    event = next_event(channels)
    assert event.kind == EventKind.CLOSED
    assert event.reason.startswith("cannot resolve 'host name with blanks': ")


def test_every_address_of_a_host_is_tried(
    channels: SocketChannels, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = socket.create_server(("127.0.0.1", 0))
    refused = free.getsockname()
    free.close()
    addresses = [refused, refused, ("127.0.0.1", peer.port)]
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda *_, **__: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", each) for each in addresses],
    )
    channels.connect("three.example", 9092)
    assert next_event(channels).kind == EventKind.CONNECTED
    peer.accept()


def test_an_address_that_never_answers_is_given_up() -> None:
    now = [100.0]
    channels = SocketChannels(connect_timeout_ms=5_000, clock=lambda: now[0])
    with socket.socket() as full:
        # With a full accept queue the system does not answer further connections.
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        channels.connect("127.0.0.1", port)
        assert channels.poll(0) == []
        now[0] += 5
        event = next_event(channels)
        assert (event.kind, event.reason) == (EventKind.CLOSED, "no answer in 5 s")
        for filler in fillers:
            filler.close()
    channels.close_all()


def test_closing_a_channel_drops_its_events(channels: SocketChannels, peer: Peer) -> None:
    channel = channels.connect("host name with blanks", 9092)
    channels.close(channel)
    assert channels.poll(0) == []
    channel, accepted = connected(channels, peer)
    channels.close(channel)
    assert channels.poll(0) == []
    assert accepted.recv(1) == b""


def test_wake_ends_a_poll_from_another_thread(channels: SocketChannels) -> None:
    waker = threading.Thread(target=channels.wake)
    waker.start()
    assert channels.poll(None) == []
    waker.join()
    channels.wake()
    channels.wake()
    assert channels.poll(None) == []
    assert channels.poll(0) == []


def test_the_next_connection_goes_to_the_next_address(
    channels: SocketChannels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a client gets past a first address that accepts connections and drops them."""
    with socket.create_server(("0.0.0.0", 0)) as listening:
        port = listening.getsockname()[1]
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in ("127.0.0.1", "127.0.0.2", "127.0.0.3")
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        reached: list[str] = []
        for _ in range(4):
            channel = channels.connect("many", port)
            assert next_event(channels).kind == EventKind.CONNECTED
            connection, _ = listening.accept()
            reached.append(connection.getsockname()[0])
            connection.close()
            assert next_event(channels).kind == EventKind.CLOSED
            assert channel.is_closed
        assert reached == ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.1"]


@pytest.mark.parametrize("sizes", [{}, {"send_buffer_size": 65_536, "receive_buffer_size": 65_536}])
def test_every_socket_has_keepalive(peer: Peer, sizes: dict[str, int]) -> None:
    channels = SocketChannels(**sizes)
    channel = channels.connect("127.0.0.1", peer.port)
    sock = channel.sock
    assert sock is not None
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    channels.close_all()
