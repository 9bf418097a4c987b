"""A toy service on a listener that runs in a thread, and blocking clients for it."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wire.net.connection import Connection
from wire.net.limits import ListenerLimits
from wire.net.listener import Listener
from wire.net.poller import make_poller

if TYPE_CHECKING:
    from wire.net.poller import Poller

PROBE = b"\0\3probe"
Answer = Sequence[bytes | bytearray | memoryview] | None


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def request(text: bytes, *, key: int = 3) -> bytes:
    """A frame whose payload begins with an API key, as the listener's limits expect."""
    return framed(key.to_bytes(2, "big") + text)


class Echo:
    """Answers each request with the request's bytes; tests replace `answer`."""

    def __init__(self) -> None:
        self.answer: Callable[[Connection, memoryview], Answer] = lambda _, frame: [
            framed(bytes(frame))
        ]
        self.connections: list[Connection] = []
        self.ended: list[Connection] = []
        self._changed = threading.Condition()
        self.on_connect = threading.Event()
        self.turn_count = 0
        self.duty: Callable[[], int | None] = lambda: None

    def connected(self, connection: Connection) -> None:
        with self._changed:
            self.connections.append(connection)
            self._changed.notify_all()
        self.on_connect.set()

    def connection_of(self, client: Client) -> Connection:
        """The listener's end of `client`'s connection."""

        def found() -> list[Connection]:
            return [each for each in self.connections if each.peer_port == client.port]

        with self._changed:
            assert self._changed.wait_for(found, timeout=10)
            return found()[-1]

    def disconnected(self, connection: Connection) -> None:
        with self._changed:
            self.ended.append(connection)
            self._changed.notify_all()

    def wait_for_end_of(self, client: Client) -> None:
        """Wait until the listener has dropped `client`'s connection."""
        with self._changed:
            assert self._changed.wait_for(lambda: client.port in self.ended_ports(), timeout=10)

    def ended_ports(self) -> list[int]:
        return [connection.peer_port for connection in self.ended]

    def handle(self, connection: Connection, frame: bytes | memoryview) -> Answer:
        if frame == PROBE:
            return [framed(PROBE)]
        return self.answer(connection, frame)

    def turn(self) -> int | None:
        self.turn_count += 1
        return self.duty()


class Parking(Echo):
    """Parks every request; `parked` returns them in order, with copies of their bytes."""

    def __init__(self) -> None:
        super().__init__()
        self._arrived = threading.Condition()
        self._parked: list[tuple[Connection, memoryview]] = []
        self.answer = self._park

    def _park(self, connection: Connection, frame: bytes | memoryview) -> Answer:
        with self._arrived:
            self._parked.append((connection, frame))
            self._arrived.notify_all()
        return None

    @property
    def parked_count(self) -> int:
        return len(self._parked)

    def next_parked(self) -> tuple[Connection, memoryview]:
        with self._arrived:
            assert self._arrived.wait_for(lambda: self._parked, timeout=10)
            return self._parked.pop(0)


class Masks:
    """A poller that remembers for which events each socket is watched."""

    def __init__(self) -> None:
        poller = make_poller()
        self.masks: dict[int, int] = {}
        self._register, self._modify = poller.register, poller.modify
        self.unregister, self.poll, self.close = poller.unregister, poller.poll, poller.close

    def register(self, fd: int, mask: int) -> None:
        self.masks[fd] = mask
        self._register(fd, mask)

    def modify(self, fd: int, mask: int) -> None:
        self.masks[fd] = mask
        self._modify(fd, mask)


class Asked:
    """A poller that does not wait, and remembers the requested times."""

    def __init__(self) -> None:
        poller = make_poller()
        self.asked: list[float | None] = []
        self._poll = poller.poll
        self.register, self.modify = poller.register, poller.modify
        self.unregister, self.close = poller.unregister, poller.close

    def poll(self, timeout: float | None) -> list[tuple[int, int]]:
        self.asked.append(timeout)
        return self._poll(0.0)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Served:
    """A running listener with its service; `connect` makes clients."""

    def __init__(self, listener: Listener, service: Echo, clock: Clock) -> None:
        self.listener = listener
        self.service = service
        self.clock = clock
        self._clients: list[Client] = []

    def connect(self, *, receive_buffer_size: int | None = None) -> Client:
        client = Client(self.listener.address, receive_buffer_size)
        self._clients.append(client)
        return client

    def connect_narrow(self) -> Client:
        """Connect with socket buffers of a few kilobytes, so that answers queue up."""
        client = self.connect(receive_buffer_size=4_096)
        with socket.socket(fileno=os.dup(self.service.connection_of(client).fd)) as accepted:
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        return client

    def pass_time(self, seconds: float) -> None:
        """Move the clock, and wait until the listener has read the new time.

        One wake is not enough: it may come after the loop has read the clock.
        """
        self.clock.now += seconds
        for _ in range(10_000):
            self.listener.wake()
            if self.listener.loop.now == self.clock.now:
                return
            time.sleep(0.001)
        raise AssertionError("the listener does not look at the clock")

    def settle(self) -> None:
        """Wait until the listener has handled every event that was ready before this call."""
        with Client(self.listener.address) as probe:
            probe.send(framed(PROBE))
            probe.receive_frame()

    def disconnect(self) -> None:
        for client in self._clients:
            client.close()


class Client:
    """A blocking connection with a time limit on every call."""

    def __init__(self, address: tuple[str, int], receive_buffer_size: int | None = None) -> None:
        self.sock = socket.socket()
        if receive_buffer_size is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_size)
        self.sock.settimeout(20)
        self.sock.connect(address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self.sock.getsockname()[1]

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            more = self.sock.recv(size - len(received))
            assert more, f"closed after {len(received)} of {size} bytes"
            received += more
        return bytes(received)

    def receive_frame(self) -> bytes:
        return self.receive(int.from_bytes(self.receive(4), "big"))

    def is_closed(self) -> bool:
        """Wait for the end of the connection; return False if bytes come instead."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def serve(
    service: Echo, *, limits: ListenerLimits | None = None, poller: Poller | None = None
) -> Iterator[Served]:
    """Run a listener for `service` in a thread, and check that it ends cleanly."""
    clock = Clock()
    listener = Listener(service, "127.0.0.1", 0, limits=limits, poller=poller, clock=clock)
    thread = threading.Thread(target=listener.run, daemon=True)
    thread.start()
    served = Served(listener, service, clock)
    try:
        yield served
    finally:
        served.disconnect()
        listener.stop()
        thread.join(20)
        assert not thread.is_alive(), "the listener does not stop"
