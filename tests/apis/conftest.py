"""Every API test runs three times: with objects in process, with their bytes, and over TCP.

A test with many cases does so only in the slow run. Otherwise its cases take turns, so that each
transport serves some of them.

`client` is a client of one cluster in memory; `call(request, version)` is its shortest use. In
process and with bytes, time is simulated and a wait of minutes costs nothing. Over TCP it is real.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import wire
from embedlog.broker import topics
from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.controller.metadata import TopicImage
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from tests.support.turns import take_turns
from wire.connection import ClientConnection, RequestFrame, ServerConnection

ANSWER_TIMEOUT_MS = 60_000
CLIENT_ID = "test"


class Closed(Exception):
    """The broker closed the connection."""


class Answer:
    """An answer that may come later."""

    def __init__(self, result: Callable[[], Any], done: Callable[[], bool]) -> None:
        self.result = result
        """Waits for the answer. Raises `Closed`."""
        self.done = done
        """Has the answer come? Over TCP this is unknown before `result`."""


class Client:
    """A client of `cluster`; subclasses say how requests travel."""

    simulates_time = True

    def __init__(self, cluster: Cluster, client_id: str = CLIENT_ID) -> None:
        self.cluster = cluster
        self.broker = cluster.broker().core
        self.client_id = client_id
        self._topic_count = 0

    def send(self, request: Any, version: int | None = None) -> Answer:
        """Send a request, by default at the newest version."""
        raise NotImplementedError

    def post(self, request: Any, version: int | None = None) -> None:
        """Send a request that has no answer. Raises `Closed` if that ends the connection."""
        raise NotImplementedError

    def call(self, request: Any, version: int | None = None) -> Any:
        """Send a request and return its response."""
        return self.send(request, version).result()

    def find_coordinator_of(self, request: Any) -> None:
        """Find the group's coordinator, as clients do before other requests: it creates the
        topic.
        """
        if api_key(request) in GROUP_APIS:
            assert topics.ensure_internal_topic(self.broker, "__consumer_offsets")

    def another(self, client_id: str = CLIENT_ID) -> Client:
        """Return a second client of the same cluster."""
        return type(self)(self.cluster, client_id)

    def make_topic(self, partitions: int = 1, **configs: object) -> tuple[str, bytes]:
        """Create a topic, with underscores for dots in settings; return (name, id)."""
        topic: TopicImage = self.cluster.create_topic(
            f"topic-{len(self.cluster.topics)}",
            partitions,
            config={name.replace("_", "."): value for name, value in configs.items()},
        )
        return topic.name, topic.topic_id

    def wait_until_parked(self, count: int = 1) -> None:
        """Return once `count` fetches wait in the broker."""
        purgatory = self.broker.replica_manager.fetch_purgatory
        while purgatory.delayed < count:
            assert not self.simulates_time, "it should have been parked at once"

    def close(self) -> None:
        """Close the connection."""


GROUP_APIS = {8, 9, 11, 12, 13, 14, 15, 42, 47, 68, 69, 76, 77, 90, 91, 92}
"""The APIs of a group's coordinator."""


def newest(request: Any, version: int | None) -> int:
    return wire.declaration(type(request)).last_version if version is None else version


def api_key(request: Any) -> int:
    key = wire.declaration(type(request)).api
    assert key is not None
    return key


class InProcess(Client):
    """Passes request and response objects as they are."""

    def send(self, request: Any, version: int | None = None) -> Answer:
        self.find_coordinator_of(request)
        context = RequestContext(
            api_key(request), newest(request, version), client_id=self.client_id
        )
        answer = self.broker.handle(context, request)
        if not isinstance(answer, Pending):
            return Answer(lambda: answer, lambda: True)
        return self._pending(answer)

    def post(self, request: Any, version: int | None = None) -> None:
        assert self.call(request, version) is None

    def _pending(self, pending: Pending[Any]) -> Answer:
        def result() -> Any:
            assert self.cluster.runtime.scheduler.wait(pending, ANSWER_TIMEOUT_MS)
            return pending.result()

        return Answer(result, pending.done)


class LoopbackConnection:
    """A connection without a wire."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Loopback(InProcess):
    """Objects become bytes and objects again, both ways."""

    def __init__(self, cluster: Cluster, client_id: str = CLIENT_ID) -> None:
        super().__init__(cluster, client_id)
        self.connection = LoopbackConnection()

    def send(self, request: Any, version: int | None = None) -> Answer:
        if self.connection.is_closed:
            raise Closed
        self.find_coordinator_of(request)
        peer = ClientConnection(self.client_id)
        sent = bytearray().join(peer.send(request, newest(request, version)))
        head = RequestFrame(memoryview(sent)[4:])
        context = RequestContext(
            head.api_key,
            head.api_version,
            correlation_id=head.correlation_id,
            client_id=head.client_id,
            advertised_host="broker.example",
            advertised_port=9092,
            connection=self.connection,
            in_process=False,
        )
        answer = self.broker.handle(context, head.decode())

        def received(response: Any) -> Any:
            if response is None:
                return None
            frame = b"".join(
                ServerConnection().respond(
                    head.correlation_id, head.api_key, head.api_version, response
                )
            )
            return peer.receive(memoryview(frame)[4:])[1]

        if not isinstance(answer, Pending):
            return Answer(lambda: received(answer), lambda: True)
        waiting = self._pending(answer)
        return Answer(lambda: received(waiting.result()), waiting.done)

    def post(self, request: Any, version: int | None = None) -> None:
        super().post(request, version)
        if self.connection.is_closed:
            raise Closed

    def close(self) -> None:
        self.broker.parked.connection_closed(self.connection)


class Tcp(Client):
    """A socket to the cluster's listener."""

    simulates_time = False

    def __init__(self, cluster: Cluster, client_id: str = CLIENT_ID) -> None:
        super().__init__(cluster, client_id)
        if not cluster.broker().core.endpoints:
            cluster.listen("127.0.0.1", 0)
        _, host, port = cluster.broker().core.endpoints[0]
        self._socket = socket.create_connection((host, port), ANSWER_TIMEOUT_MS / 1000)
        self._peer = ClientConnection(client_id)

    def send(self, request: Any, version: int | None = None) -> Answer:
        self.find_coordinator_of(request)
        self._socket.sendall(b"".join(self._peer.send(request, newest(request, version))))
        return Answer(lambda: self._peer.receive(memoryview(self._receive()))[1], lambda: False)

    def post(self, request: Any, version: int | None = None) -> None:
        frame = self._peer.send(request, newest(request, version), expect_response=False)
        self._socket.sendall(b"".join(frame))
        # Answers come in order: the answer to a second request shows the outcome of the first.
        from wire.schemas.api_versions import ApiVersionsRequest

        self.call(ApiVersionsRequest(), 0)

    def close(self) -> None:
        self._socket.close()

    def _receive(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

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


TRANSPORTS: dict[str, type[Client]] = {"in-process": InProcess, "loopback": Loopback, "tcp": Tcp}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    take_turns(items, Path(__file__).parent, ["client", "durable_client"])


@pytest.fixture(params=list(TRANSPORTS))
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    kind = TRANSPORTS[request.param]
    runtime = sim_runtime(seed=1) if kind.simulates_time else None
    with Cluster(runtime=runtime) as cluster:
        made = kind(cluster)
        yield made
        made.close()


@pytest.fixture(params=list(TRANSPORTS))
def durable_client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    """Like `client`, on a disk (a simulated one with simulated time), at the level `fsync`."""
    kind = TRANSPORTS[request.param]
    runtime = sim_runtime(seed=1) if kind.simulates_time else None
    with Cluster(tmp_path, runtime=runtime, durability="fsync") as cluster:
        made = kind(cluster)
        yield made
        made.close()


@pytest.fixture
def call(client: Client) -> Callable[..., Any]:
    return client.call
