"""The attacked broker, in a process of its own, and another client that wants service."""

from __future__ import annotations

import contextlib
import select
import socket
import subprocess
import sys
import time
from typing import Any

import wire
from wire.connection import ClientConnection
from wire.schemas.api_versions import ApiVersionsRequest

ANSWER_TIMEOUT_S = 120
_SERVE = """
import sys, embedlog
with embedlog.open() as cluster:
    cluster.create_topic("t", 1)
    print(cluster.listen().port, flush=True)
    sys.stdin.read()
"""


class Peer:
    """A blocking connection that speaks the protocol, or anything else."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_TIMEOUT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = ClientConnection("peer")

    def send(self, request: Any, version: int) -> None:
        self.sock.sendall(b"".join(map(bytes, self._connection.send(request, version))))

    def receive(self) -> Any:
        return self._connection.receive(self._frame())[1]

    def ask(self, request: Any, version: int) -> Any:
        self.send(request, version)
        return self.receive()

    def skip_answer(self) -> None:
        """Read the bytes of one answer, or the end of the connection."""
        with contextlib.suppress(EOFError, ConnectionError):
            self._frame()

    def close(self) -> None:
        self.sock.close()

    def _frame(self) -> bytes:
        return self._exactly(int.from_bytes(self._exactly(4), "big"))

    def _exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            part = self.sock.recv(min(size - len(received), 1 << 20))
            if not part:
                raise EOFError
            received += part
        return bytes(received)


class Victim:
    """A broker in a child process; `longest_wait` is the longest wait of its other client."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.longest_wait = 0.0
        self._other = Peer(self.port)
        self.probe()
        self.longest_wait = 0.0
        self._idle_kb = self._status("VmRSS")

    def __enter__(self) -> Victim:
        return self

    def __exit__(self, *_: object) -> None:
        self._other.close()
        self._process.kill()
        self._process.communicate()

    def connect(self) -> Peer:
        """Return another peer."""
        return Peer(self.port)

    def probe(self) -> None:
        """Send a small request, and record its time."""
        started = time.monotonic()
        self._other.ask(ApiVersionsRequest(), 0)
        self.longest_wait = max(self.longest_wait, time.monotonic() - started)

    def attack(self, request: Any, version: int, *, peer: Peer | None = None) -> None:
        """Send a request, and probe until its answer, or the end of its connection, arrives."""
        attacker = peer or self.connect()
        attacker.send(request, version)
        self.probe_until_answered(attacker)
        attacker.skip_answer()
        if peer is None:
            attacker.close()

    def probe_until_answered(self, peer: Peer) -> None:
        """Probe until `peer` has bytes to read."""
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while not select.select([peer.sock], [], [], 0)[0]:
            assert time.monotonic() < deadline, "no answer"
            self.probe()
        self.probe()

    def memory_kb(self) -> int:
        """Return the peak memory of the broker, minus its memory when idle."""
        return self._status("VmHWM") - self._idle_kb

    def _status(self, name: str) -> int:
        with open(f"/proc/{self._process.pid}/status") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines[name].split()[0])


def frame_of(request: Any, version: int) -> bytes:
    """Return a whole request with its size, as a client would send it."""
    frame = b"".join(map(bytes, ClientConnection("peer").send(request, version)))
    assert wire.encode(request, version) in frame
    return frame
