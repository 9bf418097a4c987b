"""A TCP proxy that knows where frames begin and breaks them by plan, for real sockets.

    with FaultProxy(plan) as proxy:
        proxy.upstream = ("127.0.0.1", 9092)  # the broker advertises proxy.port
        Producer(proxy.address)

For each request the proxy calls the plan's `draw`, which returns its fate: one of the faults of
`faulty_network`, or of the faults below. It has one thread, which `close` joins.
"""

from __future__ import annotations

import contextlib
import heapq
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import Any, Protocol

from tests.client.faulty_network import (
    BLACK_HOLE,
    DEAF,
    REQUEST_LOST,
    RESPONSE_LOST,
    SLOW,
    SWAPPED,
    TWICE,
)

REQUEST_CUT = "the connection ends in the middle of the request"
RESPONSE_CUT = "the connection ends in the middle of the answer"
PROXY_FAULTS = (
    REQUEST_LOST, RESPONSE_LOST, BLACK_HOLE, DEAF, SLOW, TWICE, SWAPPED, REQUEST_CUT, RESPONSE_CUT,
)  # fmt: skip
SLOW_SECONDS = 0.3

_SIZE = Struct(">i")


class ProxyPlan(Protocol):
    def draw(self) -> str | None: ...


class Once:
    """One fault, at the n-th request."""

    def __init__(self, fault: str, at: int) -> None:
        self.fault = fault
        self.left = at

    def draw(self) -> str | None:
        self.left -= 1
        return self.fault if self.left == -1 else None


class FaultProxy:
    def __init__(self, plan: ProxyPlan) -> None:
        self.plan = plan
        self.upstream: tuple[str, int] | None = None
        self.connection_count = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.address = f"127.0.0.1:{self.port}"
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._waker, wake_end = socket.socketpair()
        self._wake_end = wake_end
        self._selector.register(wake_end, selectors.EVENT_READ, lambda: None)
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self.pairs: set[_Pair] = set()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="fault-proxy", daemon=True)
        self._thread.start()

    def __enter__(self) -> FaultProxy:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._is_closed = True
        with suppress(OSError):  # the thread has seen it already
            self._waker.send(b"x")
        self._thread.join(10)
        assert not self._thread.is_alive()

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._due, (time.monotonic() + seconds, self._number, action))

    def watch(self, sock: socket.socket, readable: Callable[[], None]) -> None:
        self._selector.register(sock, selectors.EVENT_READ, readable)

    def forget(self, pair: _Pair) -> None:
        self.pairs.discard(pair)
        for sock in (pair.client, pair.broker):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(sock)
            sock.close()

    def _run(self) -> None:
        try:
            while not self._is_closed:
                timeout = self._due[0][0] - time.monotonic() if self._due else None
                for key, _ in self._selector.select(timeout):
                    key.data()
                while self._due and self._due[0][0] <= time.monotonic():
                    heapq.heappop(self._due)[2]()
        finally:
            for pair in list(self.pairs):
                self.forget(pair)
            self._selector.close()
            for sock in (self._listener, self._waker, self._wake_end):
                sock.close()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        self.connection_count += 1
        assert self.upstream is not None
        try:
            broker = socket.create_connection(self.upstream, 5)
        except OSError:
            client.close()
            return
        for sock in (client, broker):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pairs.add(_Pair(self, client, broker))


class _Pair:
    """One connection of a client and the matching connection to the broker."""

    def __init__(self, proxy: FaultProxy, client: socket.socket, broker: socket.socket) -> None:
        self.client = client
        self.broker = broker
        self._proxy = proxy
        self._requests = _Frames()
        self._answers = _Frames()
        self._faults: list[str | None] = []
        self._swallows_requests = False
        self._swallows_answers = False
        self._held: bytes | None = None
        self._is_slow_until = 0.0
        proxy.watch(client, self._from_client)
        proxy.watch(broker, self._from_broker)

    def _from_client(self) -> None:
        for frame in self._read(self.client, self._requests):
            if self._swallows_requests:
                continue
            fault = self._proxy.plan.draw()
            if fault is BLACK_HOLE:
                self._swallows_requests = self._swallows_answers = True
            elif fault is REQUEST_LOST:
                self._proxy.forget(self)
                return
            elif fault is REQUEST_CUT:
                self._write(self.broker, frame[: len(frame) // 2])
                self._proxy.forget(self)
                return
            else:
                self._swallows_answers |= fault is DEAF
                self._faults.append(fault)
                self._write(self.broker, frame)

    def _from_broker(self) -> None:
        for frame in self._read(self.broker, self._answers):
            fault = self._faults.pop(0) if self._faults else None
            if self._swallows_answers:
                continue
            if fault is RESPONSE_LOST:
                self._proxy.forget(self)
                return
            if fault is RESPONSE_CUT:
                self._write(self.client, frame[: max(len(frame) // 2, 1)])
                self._proxy.forget(self)
                return
            if fault is SWAPPED and self._held is None:
                self._held = frame
                continue
            if fault is SLOW:
                self._is_slow_until = time.monotonic() + SLOW_SECONDS
            self._answer(frame)
            if fault is TWICE:
                self._answer(frame)
            if self._held is not None:
                held, self._held = self._held, None
                self._answer(held)

    def _answer(self, frame: bytes) -> None:
        """Pass an answer on, after earlier answers that are late."""
        delay = self._is_slow_until - time.monotonic()
        if delay > 0:
            self._proxy.after(delay, lambda: self._write(self.client, frame))
        else:
            self._write(self.client, frame)

    def _read(self, sock: socket.socket, frames: _Frames) -> list[bytes]:
        try:
            data = sock.recv(1 << 20)
        except OSError:
            data = b""
        if not data:
            self._proxy.forget(self)
            return []
        return frames.add(data)

    def _write(self, sock: socket.socket, data: bytes) -> None:
        with contextlib.suppress(OSError):
            sock.sendall(data)


class _Frames:
    """Cuts bytes into frames, sizes included."""

    def __init__(self) -> None:
        self._data = b""

    def add(self, data: bytes) -> list[bytes]:
        self._data += data
        frames: list[bytes] = []
        while len(self._data) >= _SIZE.size:
            end = _SIZE.size + _SIZE.unpack_from(self._data)[0]
            if len(self._data) < end:
                break
            frames.append(self._data[:end])
            self._data = self._data[end:]
        return frames


def produce_through(
    address: str, topic: str, partitions: int, draw: Callable[[int], int], **settings: Any
) -> list[list[bytes]]:
    """Send records through the proxy with an idempotent producer, and check that all are written.

    Return the sent values of each partition, in order.
    """
    from embedlog.client.producer.producer import Producer

    sent: list[list[bytes]] = [[] for _ in range(partitions)]
    settings = {
        "request_timeout_ms": 700,
        "reconnect_backoff_ms": 5,
        "retry_backoff_ms": 5,
        "delivery_timeout_ms": 60_000,
        "batch_size": 200,
        **settings,
    }
    with Producer(address, **settings) as producer:
        futures = []
        for number in range(60):
            partition = draw(partitions)
            value = b"%d:" % number + bytes(draw(60))
            sent[partition].append(value)
            futures.append(producer.send(topic, value, partition=partition))
            if draw(12) == 0:
                producer.flush(60)
        producer.flush(60)
        errors = [future.exception(0) for future in futures]
        assert errors == [None] * len(futures), errors
    return sent
