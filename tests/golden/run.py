"""Play scenarios against one address and write down what it answers.

A scenario is a function of a `Run`. Each `run.send(...)` is one step: the request goes out at one
version on the run's connection, and the normalised answer is kept. `run.setup(...)` sends without
keeping. A closed connection is an answer too, and is re-opened for the next step.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import wire
from tests.golden.normal import Normaliser
from wire.headers import request_header_version, response_header_version
from wire.registry import response_class
from wire.schema import declaration
from wire.schemas.produce import ProduceResponse

Scenario = Callable[["Run"], None]
SCENARIOS: dict[str, Scenario] = {}
CLOSED = "the connection is closed"
ANSWERED = "an answer comes"
NO_ANSWER = "no answer, the connection stays open"
ANSWER_SECONDS_MAX = 15
SETTLE_SECONDS = 0.4
MUTATIONS = ("CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs")
MUTATIONS += ("IncrementalAlterConfigs",)


def scenario(function: Scenario) -> Scenario:
    """Register a scenario under its function's name."""
    assert function.__name__ not in SCENARIOS, function.__name__
    SCENARIOS[function.__name__] = function
    return function


class Closed(Exception):
    """The broker closed the connection instead of answering."""


class Link:
    """One blocking connection that speaks frames."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), ANSWER_SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, payload: bytes) -> None:
        """Send one frame."""
        self.socket.sendall(struct.pack(">i", len(payload)) + payload)

    def receive(self) -> bytes:
        """Receive one frame. Raises `Closed`."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                more = self.socket.recv(size - len(data))
            except ConnectionResetError:
                more = b""
            if not more:
                raise Closed
            data += more
        return data

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()


class Run:
    """One scenario's play against one broker: its connection, its steps, its names.

    A patient run gives a broker whose controller is another thread time to apply a change before
    the next step. embedlog has applied it when it answers.
    """

    def __init__(self, address: str, name: str, *, patient: bool = False) -> None:
        self.address = address
        self.patient = patient
        self.name = name.replace("_", "-")
        self.steps: list[dict[str, Any]] = []
        self.normal = Normaliser()
        self._link: Link | None = None
        self._correlation_id = 0

    def topic(self, suffix: str = "t") -> str:
        """A topic name of this scenario's own."""
        return f"g-{self.name}-{suffix}"

    def send(self, request: Any, version: int, note: str = "") -> Any:
        """One step. Gives the answer as a message, or None when the connection was closed."""
        answer = self._ask(request, version)
        self._keep(request, version, note, CLOSED if answer is None else self.normal(answer))
        return answer

    def setup(self, request: Any, version: int) -> Any:
        """The same without keeping it; the answer must come."""
        answer = self._ask(request, version)
        assert answer is not None, (request, version)
        if isinstance(answer, ProduceResponse):
            codes = [p.error_code for t in answer.responses for p in t.partition_responses]
            assert not any(codes), answer
        return answer

    def send_unanswered(self, request: Any, version: int, note: str = "") -> None:
        """A request that has no answer (acks 0): does the connection outlive it?"""
        self._write(self._frame(request, version))
        from wire.schemas.api_versions import ApiVersionsRequest

        alive = self._ask(ApiVersionsRequest(), 0) is not None
        self._keep(request, version, note, NO_ANSWER if alive else CLOSED)

    def raw(self, payload: bytes, note: str, *, keep_bytes: bool = True) -> bytes | None:
        """A hand-made frame. Keeps the answer's bytes, or that the connection was closed."""
        answer: bytes | None
        try:
            self._write(payload)
            answer = self._connection().receive()
        except Closed:
            self._hang_up()
            answer = None
        if answer is not None:
            self.steps.append({"note": note, "answer": answer.hex() if keep_bytes else ANSWERED})
        else:
            self.steps.append({"note": note, "answer": CLOSED})
        return answer

    def close(self) -> None:
        """Close the connection; the steps stay."""
        self._hang_up()

    def frame(self, request: Any, version: int, *, api_key: int | None = None) -> bytes:
        """The bytes of a request, for a scenario that wants to spoil them."""
        return self._frame(request, version, api_key=api_key)

    def _keep(self, request: Any, version: int, note: str, answer: Any) -> None:
        api = type(request).__name__.removesuffix("Request")
        self.steps.append({"api": api, "version": version, "note": note, "answer": answer})

    def _ask(self, request: Any, version: int) -> Any:
        api_key = declaration(type(request)).api
        try:
            self._write(self._frame(request, version))
            answer = self._connection().receive()
        except Closed:
            self._hang_up()
            return None
        (correlation_id,) = struct.unpack_from(">i", answer)
        assert correlation_id == self._correlation_id, "an answer to another request"
        if self.patient and type(request).__name__.removesuffix("Request") in MUTATIONS:
            time.sleep(SETTLE_SECONDS)
        position = 5 if response_header_version(api_key, version) >= 1 else 4
        return self._decode(api_key, version, answer, position)

    @staticmethod
    def _decode(api_key: int, version: int, answer: bytes, position: int) -> Any:
        return wire.decode(response_class(api_key), version, answer, position)

    def _frame(self, request: Any, version: int, *, api_key: int | None = None) -> bytes:
        key = declaration(type(request)).api if api_key is None else api_key
        self._correlation_id += 1
        client_id = b"golden"
        header = struct.pack(">hhih", key, version, self._correlation_id, len(client_id))
        header += client_id
        if request_header_version(declaration(type(request)).api, version) >= 2:
            header += b"\x00"
        return header + wire.encode(request, version)

    def _connection(self) -> Link:
        if self._link is None:
            self._link = Link(self.address)
        return self._link

    def _write(self, payload: bytes) -> None:
        try:
            self._connection().send(payload)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed from None

    def _hang_up(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None


def play(address: str, name: str, *, patient: bool = False) -> list[dict[str, Any]]:
    """Play one scenario; its steps with the normalised answers."""
    run = Run(address, name, patient=patient)
    try:
        SCENARIOS[name](run)
    finally:
        run.close()
    return run.steps


__all__ = ["CLOSED", "NO_ANSWER", "SCENARIOS", "Run", "play", "scenario"]
