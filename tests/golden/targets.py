"""The targets of scenarios: the interface, and a broker at an address.

A target makes connections and lets time pass. At an address both are real; `simulated` has a target
with simulated time.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from typing import Protocol

ANSWER_MS_MAX = 15_000
SETTLE_MS = 300
_SIZE = struct.Struct(">i")


class Closed(Exception):
    """The broker closed the connection instead of answering."""


class Link(Protocol):
    """One connection that speaks frames."""

    def send(self, payload: bytes) -> None:
        """Send one frame. Raises `Closed`."""

    def receive(self) -> bytes:
        """Wait for one frame. Raises `Closed`, and TimeoutError after `ANSWER_MS_MAX`."""

    def answered(self) -> bool:
        """Return whether a frame is available, after time for the broker to handle the request."""

    def close(self) -> None:
        """Close the connection."""


class Target(Protocol):
    """A broker that scenarios run against."""

    is_patient: bool
    """Whether the broker applies a change some time after its answer."""

    def connect(self) -> Link:
        """Return a new connection."""

    def let_pass(self, delay_ms: int) -> None:
        """Let time pass."""


class Address:
    """A broker that listens at `host:port`."""

    def __init__(self, address: str, *, is_patient: bool = False) -> None:
        self._address = address
        self.is_patient = is_patient

    def connect(self) -> SocketLink:
        """Return a TCP connection."""
        return SocketLink(self._address)

    def let_pass(self, delay_ms: int) -> None:
        time.sleep(delay_ms / 1000)


class SocketLink:
    """One blocking connection that speaks frames."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), ANSWER_MS_MAX / 1000)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, payload: bytes) -> None:
        """Send one frame. Raises `Closed`."""
        try:
            self._socket.sendall(_SIZE.pack(len(payload)) + payload)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed from None

    def receive(self) -> bytes:
        """Wait for one frame."""
        (size,) = _SIZE.unpack(self._exactly(_SIZE.size))
        return self._exactly(size)

    def answered(self) -> bool:
        """Return whether a frame is available after `SETTLE_MS`."""
        return bool(select.select([self._socket], [], [], SETTLE_MS / 1000)[0])

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                more = self._socket.recv(size - len(data))
            except ConnectionResetError:
                more = b""
            if not more:
                raise Closed
            data += more
        return data

    def close(self) -> None:
        self._socket.close()
