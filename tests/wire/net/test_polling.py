"""For how long and for what a client's channels and a listener's loop wait."""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from tests.wire.net.serving import Asked, Clock, Echo, Masks, framed, serve
from wire.net import channels as channels_module
from wire.net.channel import EventKind
from wire.net.channels import SocketChannels
from wire.net.loop import Loop
from wire.net.poller import READ, make_poller

WAIT_MS = 10_000


@contextmanager
def silent() -> Iterator[int]:
    """Yield a port at which connections wait: with a full queue the system does not answer."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        yield port
        for filler in fillers:
            filler.close()


@pytest.fixture
def poller() -> Asked:
    return Asked()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def channels(poller: Asked, clock: Clock) -> Iterator[SocketChannels]:
    made = SocketChannels(connect_timeout_ms=5_000, poller=poller, clock=clock)
    yield made
    made.close_all()


def connected(channels: SocketChannels, listening: socket.socket) -> tuple[Any, socket.socket]:
    channel = channels.connect("127.0.0.1", listening.getsockname()[1])
    accepted, _ = listening.accept()
    while not channel.is_connected:
        channels.poll(WAIT_MS)
    return channel, accepted


def test_a_poll_with_an_event_does_not_wait(channels: SocketChannels, poller: Asked) -> None:
    channels.connect("host name with blanks", 9092)
    (event,) = channels.poll(None)
    assert event.kind == EventKind.CLOSED
    assert poller.asked == [0.0]


def test_a_poll_ends_with_its_own_time_or_the_first_attempts(
    channels: SocketChannels, poller: Asked, clock: Clock
) -> None:
    with silent() as port:
        channels.connect("127.0.0.1", port)
        clock.now += 2
        channels.connect("127.0.0.1", port)
        for timeout_ms in (60_000, 1_000, None):
            assert channels.poll(timeout_ms) == []
        assert poller.asked == [3.0, 1.0, 3.0]


def test_each_address_of_a_host_has_its_own_time(
    channels: SocketChannels, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with silent() as first, silent() as second:
        addresses = [("127.0.0.1", port) for port in (first, second)]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", each) for each in addresses]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        channels.connect("two.example", 9092)
        for _ in range(3):  # the second address is tried from the second look on
            clock.now += 4
            assert channels.poll(0) == []
        clock.now += 1
        (event,) = channels.poll(0)
        assert (event.kind, event.reason) == (EventKind.CLOSED, "no answer in 5 s")


def test_a_channel_that_ends_before_it_is_connected_has_nothing_to_send(
    channels: SocketChannels,
) -> None:
    with silent() as port:
        channel = channels.connect("127.0.0.1", port)
        channels.send(channel, [b"x" * 10])
        assert channel.unsent_size == 10
        channels.close(channel)
        assert channel.unsent_size == 0


def test_frames_behind_the_first_have_the_larger_limit(
    channels: SocketChannels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels_module, "FIRST_FRAME_SIZE_MAX", 1_000)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        _, accepted = connected(channels, listening)
        with accepted:
            for size in (1_000, 5_000):
                accepted.sendall(framed(bytes(size)))
                events: list[Any] = []
                while not events:
                    events = channels.poll(WAIT_MS)
                assert [(each.kind, each.reason) for each in events] == [(EventKind.FRAME, "")]


def test_a_channel_that_has_ended_is_not_connected(channels: SocketChannels) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        channel, accepted = connected(channels, listening)
        accepted.close()
        while not channels.poll(WAIT_MS):
            pass
        assert not channel.is_connected


def test_a_channel_waits_to_write_only_until_all_is_written() -> None:
    poller = Masks()
    channels = SocketChannels(poller=poller, send_buffer_size=4_096)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        channel, accepted = connected(channels, listening)
        accepted.setblocking(False)
        with accepted:
            channels.send(channel, [bytes(400_000)])
            assert channel.unsent_size
            while channel.unsent_size:
                channels.poll(0)
                with suppress(BlockingIOError):
                    accepted.recv(1 << 20)
            channels.poll(0)
            assert poller.masks[channel.fd] == READ
    channels.close_all()


def test_a_reset_during_a_write_ends_the_channel_once(channels: SocketChannels) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        channel, accepted = connected(channels, listening)
        channels.send(channel, [bytes(20_000_000)])
        assert channel.unsent_size
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted.close()
        events: list[Any] = []
        while not events:
            events = channels.poll(WAIT_MS)
        assert [each.kind for each in events] == [EventKind.CLOSED]
        assert channels.poll(0) == []


def test_a_loop_does_not_wait_with_news_or_posted_actions(poller: Asked, clock: Clock) -> None:
    loop = Loop(poller, clock)
    loop.wait(None)
    loop.wake()
    loop.wait(None)
    loop.has_news = False
    loop.post(self := object(), lambda *_: None, None)
    loop.wait(None)
    assert poller.asked == [None, 0.0, 0.0]
    assert loop.late[0][0] is self
    loop.close()


def test_an_action_posted_just_before_the_wait_ends_it(clock: Clock) -> None:
    class Late(deque[Any]):
        """Another thread posts an action just after the loop has looked."""

        def __bool__(self) -> bool:
            loop.post(None, lambda *_: None, None)
            return False

    loop = Loop(make_poller(), clock)
    loop.late = Late()
    assert [fd for fd, _ in loop.wait(3.0) if loop.was_woken(fd)]
    loop.close()


@pytest.mark.parametrize(("delay_ms", "expected_s"), [(50, 0.05), (10**9, 600.0)])
def test_a_listener_waits_for_its_service_or_its_sweep(delay_ms: int, expected_s: float) -> None:
    class Brief(Asked):
        def poll(self, timeout: float | None) -> list[tuple[int, int]]:
            found = super().poll(timeout)
            return found or self._poll(0.001)

    service, poller = Echo(), Brief()
    service.duty = lambda: delay_ms
    with serve(service, poller=poller) as served:
        served.connect()
        served.settle()
        served.settle()
    assert poller.asked.count(expected_s) > 1
