"""One connection to one node, as a state machine without a socket.

    DISCONNECTED -> CONNECTING -> CHECKING_VERSIONS -> AUTHENTICATING <-> READY
          ^-------------'-----------------'-------------------'-------------'

Requests wait until the versions are known and, with credentials, the node has accepted the client.
Then up to max.in.flight requests are written, and the node answers them in order. When the node
wants the client to authenticate again (KIP-368), new requests wait until that is done.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client.network.connection_setup import ConnectionSetup
from embedlog.client.network.node_requests import NEVER_MS, NodeRequests
from embedlog.errors import KafkaError
from wire.api_keys import ApiKey
from wire.connection import ClientConnection
from wire.errors import MalformedMessage, RemoteProtocolError, UnsupportedField

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.client.network.connection_setup import Step
    from embedlog.client.network.node_requests import NodeRequest
    from embedlog.client.network.security import Credentials
    from wire.schema import Payload

    Write = Callable[[list[Payload]], None]

_THROTTLED_SINCE = {
    0: 6, 1: 8, 2: 3, 3: 6, 8: 4, 9: 4, 10: 2, 11: 3, 12: 2, 13: 2, 14: 2, 15: 2, 16: 2, 18: 2,
    19: 3, 20: 2, 21: 1, 22: 1, 24: 1, 25: 1, 26: 1, 28: 1, 29: 1, 30: 1, 31: 1, 32: 2, 33: 1,
    34: 1, 35: 1, 37: 1, 42: 1,
}  # fmt: skip
"""By API key, the version from which clients, not brokers, apply throttling (KIP-219)."""


class ConnectionState:
    """The states of a connection."""

    DISCONNECTED = 0
    CONNECTING = 1
    CHECKING_VERSIONS = 2
    READY = 3
    AUTHENTICATING = 4


_S = ConnectionState
VALID_PREVIOUS = {
    _S.DISCONNECTED: {_S.CONNECTING, _S.CHECKING_VERSIONS, _S.AUTHENTICATING, _S.READY},
    _S.CONNECTING: {_S.DISCONNECTED},
    _S.CHECKING_VERSIONS: {_S.CONNECTING},
    _S.AUTHENTICATING: {_S.CHECKING_VERSIONS, _S.READY},
    _S.READY: {_S.CHECKING_VERSIONS, _S.AUTHENTICATING},
}


class NodeConnection:
    """The successive connections to one node, and their requests."""

    def __init__(
        self,
        node_id: int,
        host: str,
        port: int,
        *,
        client_id: str,
        in_flight_max: int,
        leaving: dict[NodeConnection, None],
        credentials: Credentials | None = None,
    ) -> None:
        """`leaving` collects the connections that have written acks=0 requests."""
        self.node_id = node_id
        self.host = host
        self.port = port
        self.state = ConnectionState.DISCONNECTED
        self.channel: Any = None
        """Carries the bytes; None while disconnected."""
        self._write: Write = _write_nowhere
        self.failure_count = 0
        self.retry_at_ms = 0
        self.attempted_ms = 0
        self.used_ms = 0
        self.throttled_until_ms = 0
        self.requests = NodeRequests(in_flight_max)
        self._leaving = leaving
        self.setup = ConnectionSetup(self.address, credentials)
        self._protocol = ClientConnection(client_id)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def transition_to(self, state: int) -> None:
        """Enter `state`. No other code assigns it."""
        assert self.state in VALID_PREVIOUS[state], (self.state, state)
        self.state = state

    @property
    def is_being_set_up(self) -> bool:
        return (
            self.state == ConnectionState.CHECKING_VERSIONS
            or self.state == ConnectionState.AUTHENTICATING
        )

    @property
    def is_busy(self) -> bool:
        """True if requests or the setup wait for the node, so that deadlines count."""
        return self.requests.count > 0 or self.is_being_set_up

    # The connection

    def use(self, channel: Any, write: Write) -> None:
        """Use `channel`, which is being connected; `write` sends a frame over it."""
        self.channel = channel
        self._write = write

    def connected(self, now_ms: int, deadline_ms: int) -> None:
        """Begin the setup on the new connection; the node must answer by `deadline_ms`."""
        self.transition_to(ConnectionState.CHECKING_VERSIONS)
        self.used_ms = now_ms
        self._protocol = ClientConnection(self._protocol.client_id)
        self._write_step(self.setup.begin(deadline_ms))

    def disconnected(self) -> list[NodeRequest]:
        """Note the end of the connection; return the unanswered requests in order."""
        if self.state != ConnectionState.DISCONNECTED:
            self.transition_to(ConnectionState.DISCONNECTED)
        self.channel = None
        self.throttled_until_ms = 0
        self.setup.ended()
        return self.requests.take_all()

    # Requests

    def takes_requests(self, now_ms: int) -> bool:
        return (
            self.state == ConnectionState.READY
            and self.requests.has_room
            and now_ms >= self.throttled_until_ms
        )

    def rank(self, now_ms: int) -> tuple[int, int]:
        """Return a sort key: the node with the smallest key would answer a request soonest."""
        if self.takes_requests(now_ms):
            return 0, self.requests.count
        if self.state == ConnectionState.READY:
            return 3, self.throttled_until_ms
        if self.state != ConnectionState.DISCONNECTED:
            return 1, self.requests.count
        if now_ms >= self.retry_at_ms:
            return 2, self.attempted_ms
        return 3, self.retry_at_ms

    def flush(self, now_ms: int) -> None:
        requests = self.requests
        deadline_ms = requests.waiting_deadline_ms
        if deadline_ms is None:
            return
        if self.state != ConnectionState.READY or now_ms < self.throttled_until_ms:
            return
        if self.setup.is_session_over(now_ms):
            if not requests.any_in_flight:
                self.setup.deadline_ms = deadline_ms
                self._authenticate()
            return
        while (request := requests.next_to_write()) is not None:
            self._write_request(request, now_ms)

    def received(self, frame: memoryview, now_ms: int) -> None:
        """Take one response.

        Raises:
            RemoteProtocolError, MalformedMessage: the frame is no valid response; close the
                connection.
            KafkaError: the node refuses ApiVersions, or refuses to authenticate this client.
        """
        _, response = self._protocol.receive(frame)
        self.used_ms = now_ms
        if self.state != ConnectionState.READY:
            self._take_setup(response, now_ms)
        else:
            request = self.requests.next_answered()
            self.setup.has_answered = True
            throttle_ms = getattr(response, "throttle_time_ms", 0)
            if throttle_ms and request.version >= _THROTTLED_SINCE.get(request.api_key, 0):
                self.throttled_until_ms = now_ms + throttle_ms
            request.pending.complete(response)
        self.flush(now_ms)

    def next_due_ms(self, now_ms: int) -> int:
        """Return the next end of a deadline, back-off or throttling; NEVER_MS if there is none."""
        due_ms = self.requests.next_deadline_ms()
        if self.is_being_set_up:
            due_ms = min(due_ms, self.setup.deadline_ms)
        if due_ms < NEVER_MS:
            if self.state == ConnectionState.DISCONNECTED:
                due_ms = min(due_ms, self.retry_at_ms)
            elif now_ms < self.throttled_until_ms:
                due_ms = min(due_ms, self.throttled_until_ms)
        return due_ms

    def take_overdue(self, now_ms: int) -> tuple[list[NodeRequest], bool]:
        """Return the overdue requests, and whether the node hangs.

        A node hangs if it has not answered a written request, or a step of the setup, in time.
        """
        overdue = self.requests.overdue(now_ms)
        hangs = bool(overdue) or (self.is_being_set_up and self.setup.deadline_ms <= now_ms)
        return overdue + self.requests.take_overdue_waiting(now_ms), hangs

    def take_left(self) -> bool:
        # A channel without `sent_size` counts as having sent everything.
        return self.requests.any_leaving and self.requests.take_left(
            getattr(self.channel, "sent_size", 0)
        )

    # Bytes

    def _write_request(self, request: NodeRequest, now_ms: int) -> None:
        message = request.message
        declared = type(message).__declaration__
        assert declared is not None, message
        is_answered = not (declared.api == ApiKey.PRODUCE and message.acks == 0)
        try:
            version = request.asked_version
            if version is None:
                version = self.setup.newest_version(type(message))
            request.api_key, request.version = declared.api, version
            frame = self._protocol.send(message, version, expect_response=is_answered)
        except KafkaError as error:
            request.pending.fail(error)
            return
        except UnsupportedField as error:
            refusal = errors.UnsupportedVersion(f"{self.address}: {error}")
            request.pending.fail(refusal)
            return
        self.used_ms = now_ms
        self._write(frame)
        if is_answered:
            self.requests.written(request)
        else:
            self._leaving[self] = None
            self.requests.written_unanswered(request, getattr(self.channel, "given_size", 0))
            self.take_left()

    def _take_setup(self, response: Any, now_ms: int) -> None:
        """Take the node's versions, or its answer to a step of the authentication."""
        if self.state == ConnectionState.CHECKING_VERSIONS:
            step = self.setup.take_versions(response)
            if step is None and self.setup.has_credentials:
                self._authenticate()
                return
        else:
            step = self.setup.take_authentication(response, now_ms)
        if step is not None:
            self._write_step(step)
            return
        self.failure_count = 0
        self.transition_to(ConnectionState.READY)

    def _authenticate(self) -> None:
        self.transition_to(ConnectionState.AUTHENTICATING)
        self._write_step(self.setup.authenticate())

    def _write_step(self, step: Step) -> None:
        self._write(self._protocol.send(*step))

    def __repr__(self) -> str:
        return f"<NodeConnection {self.node_id} {self.address} state {self.state}>"


def _write_nowhere(_frame: list[Payload]) -> None:
    raise AssertionError("written without a connection")


PROTOCOL_ERRORS = (RemoteProtocolError, MalformedMessage, KafkaError)
"""Errors of `received` after which the connection must be closed."""
