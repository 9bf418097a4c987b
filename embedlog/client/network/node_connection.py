"""One connection to one node, as a state machine; the sockets are somebody else's.

    DISCONNECTED -> CONNECTING -> CHECKING_VERSIONS -> AUTHENTICATING <-> READY
          ^-------------'-----------------'-------------------'-------------'

Requests wait until the versions are known and, with credentials, the node knows who asks; then go
out as many as may be in flight, and are answered in their order. Without credentials nobody
authenticates. A node may want it again after a while (KIP-368): then requests wait once more.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import deque
from embedlog.errors import KafkaError, error_for
from embedlog.pending import Pending
from embedlog.transport import newest_common
from embedlog.version import __version__
from wire.api_keys import ApiKey
from wire.connection import ClientConnection
from wire.error_codes import ErrorCode
from wire.errors import MalformedMessage, RemoteProtocolError, UnsupportedField
from wire.schema import declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.client.network.security import Credentials, SaslExchange
    from wire.schema import Payload, R, Request
    from wire.schemas.api_versions import ApiVersionsResponse
    from wire.schemas.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
    from wire.schemas.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

    Write = Callable[[list[Payload]], None]

_SOFTWARE_NAME = "embedlog"

_THROTTLED_SINCE = {
    0: 6, 1: 8, 2: 3, 3: 6, 8: 4, 9: 4, 10: 2, 11: 3, 12: 2, 13: 2, 14: 2, 15: 2, 16: 2, 18: 2,
    19: 3, 20: 2, 21: 1, 22: 1, 24: 1, 25: 1, 26: 1, 28: 1, 29: 1, 30: 1, 31: 1, 32: 2, 33: 1,
    34: 1, 35: 1, 37: 1, 42: 1,
}  # fmt: skip
"""By API key, the version from which on the client holds back (KIP-219): before, the broker did."""


class ConnectionState:
    """How far a connection is."""

    DISCONNECTED = 0
    CONNECTING = 1
    CHECKING_VERSIONS = 2
    READY = 3
    AUTHENTICATING = 4


VALID_PREVIOUS = {
    ConnectionState.DISCONNECTED: frozenset(
        (
            ConnectionState.CONNECTING,
            ConnectionState.CHECKING_VERSIONS,
            ConnectionState.AUTHENTICATING,
            ConnectionState.READY,
        )
    ),
    ConnectionState.CONNECTING: frozenset((ConnectionState.DISCONNECTED,)),
    ConnectionState.CHECKING_VERSIONS: frozenset((ConnectionState.CONNECTING,)),
    ConnectionState.AUTHENTICATING: frozenset(
        (ConnectionState.CHECKING_VERSIONS, ConnectionState.READY)
    ),
    ConnectionState.READY: frozenset(
        (ConnectionState.CHECKING_VERSIONS, ConnectionState.AUTHENTICATING)
    ),
}


class _Request:
    """A request without an answer. `asked_version` None: the newest both sides know."""

    __slots__ = ("api_key", "asked_version", "deadline_ms", "message", "pending", "version")

    def __init__(
        self, message: Any, version: int | None, deadline_ms: int, pending: Pending[Any]
    ) -> None:
        self.message = message
        self.asked_version = version
        self.api_key = -1
        self.version = -1
        """What it was sent with, once it was."""
        self.deadline_ms = deadline_ms
        self.pending = pending

    @property
    def name(self) -> str:
        """What it is called where people read it."""
        return type(self.message).__name__


class NodeConnection:
    """The requests of one node. `channel` is whatever carries the bytes, None without one."""

    def __init__(
        self,
        node_id: int,
        host: str,
        port: int,
        *,
        client_id: str,
        in_flight_max: int,
        credentials: Credentials | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.state = ConnectionState.DISCONNECTED
        self.channel: Any = None
        self.write: Any = None
        """Sends over the channel, where there is or was one."""
        self.versions: dict[int, tuple[int, int]] | None = None
        """What the node said it serves; kept while disconnected."""
        self.failure_count = 0
        """Attempts to connect that failed since the last that worked."""
        self.retry_at_ms = 0
        self.attempted_ms = 0
        self.used_ms = 0
        self.throttled_until_ms = 0
        self.has_answered = False
        """Has a request been answered since it was connected?"""
        self._client_id = client_id
        self._credentials = credentials
        self._exchange: SaslExchange | None = None
        self._reauthenticates_at_ms = 0
        """When the session is nearly over; 0 if it lasts as long as the connection."""
        self._in_flight_max = in_flight_max
        self._protocol = ClientConnection(client_id)
        self._waiting: deque[_Request] = deque()
        self._in_flight: deque[_Request] = deque()
        self.leaving: deque[tuple[int, _Request]] = deque()
        """Requests that get no answer (acks 0), and how many bytes the channel was given up to
        their ends: they are done when it has sent as many."""
        self._in_hand: _Request | None = None
        """On its way from one queue to the next, or to its end."""
        self._setup_deadline_ms = 0
        self._asked_again = False

    @property
    def load(self) -> int:
        """Requests without an answer."""
        return len(self._waiting) + len(self._in_flight) + len(self.leaving)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def transition_to(self, state: int) -> None:
        """Enter `state`. The only place that assigns it."""
        assert self.state in VALID_PREVIOUS[state], (self.state, state)
        self.state = state

    @property
    def is_being_set_up(self) -> bool:
        """Is it connected, and do requests wait for what the node says first?"""
        return (
            self.state == ConnectionState.CHECKING_VERSIONS
            or self.state == ConnectionState.AUTHENTICATING
        )

    @property
    def is_busy(self) -> bool:
        """Does anything wait for the node, so that deadlines count?"""
        return bool(
            self._in_flight
            or self._waiting
            or self.leaving
            or self.state == ConnectionState.CHECKING_VERSIONS
            or self.state == ConnectionState.AUTHENTICATING
        )

    # Requests

    def takes_requests(self, now_ms: int) -> bool:
        """Would a request go out at once?"""
        return (
            self.state == ConnectionState.READY
            and self.load < self._in_flight_max
            and now_ms >= self.throttled_until_ms
        )

    def rank(self, now_ms: int) -> tuple[int, int]:
        """The smaller, the sooner a request would be answered."""
        if self.takes_requests(now_ms):
            return 0, self.load
        if self.state == ConnectionState.READY:
            return 3, self.throttled_until_ms
        if self.state != ConnectionState.DISCONNECTED:
            return 1, self.load
        if now_ms >= self.retry_at_ms:
            return 2, self.attempted_ms
        return 3, self.retry_at_ms

    def enqueue(
        self,
        message: Request[R],
        version: int | None,
        deadline_ms: int,
        pending: Pending[R],
    ) -> None:
        """Send `message` when its turn comes; `pending` is answered by `deadline_ms` or never."""
        self._waiting.append(_Request(message, version, deadline_ms, pending))

    def flush(self, write: Write, now_ms: int) -> None:
        """Write what may go out now."""
        if not self._waiting:
            return
        if self.state != ConnectionState.READY or now_ms < self.throttled_until_ms:
            return
        if 0 < self._reauthenticates_at_ms <= now_ms:
            if not self._in_flight:
                self._setup_deadline_ms = self._waiting[0].deadline_ms
                self._authenticate(write)
            return
        while self._waiting and len(self._in_flight) < self._in_flight_max:
            self._in_hand = request = self._waiting[0]
            self._waiting.popleft()
            self._write(request, write, now_ms)
        self._in_hand = None

    def begin_versions(self, write: Write, deadline_ms: int) -> None:
        """The connection is made: ask what the node serves."""
        self.transition_to(ConnectionState.CHECKING_VERSIONS)
        self._protocol = ClientConnection(self._client_id)
        self._setup_deadline_ms = deadline_ms
        self._asked_again = self.has_answered = False
        self._ask_versions(None, write)

    def received(self, frame: memoryview, write: Write, now_ms: int) -> None:
        """Take one response.

        Raises:
            RemoteProtocolError, MalformedMessage: it is not one; the connection is of no use.
            KafkaError: the node refuses to say what it serves, or to be used by who asks.
        """
        _, response = self._protocol.receive(frame)
        self.used_ms = now_ms
        if self.state == ConnectionState.CHECKING_VERSIONS:
            self._take_versions(response, write)
        elif self.state == ConnectionState.AUTHENTICATING:
            self._take_authentication(response, write, now_ms)
        else:
            self._in_hand = request = self._in_flight[0]
            self._in_flight.popleft()
            self.has_answered = True
            throttle_ms = getattr(response, "throttle_time_ms", 0)
            if throttle_ms and request.version >= _THROTTLED_SINCE.get(request.api_key, 0):
                self.throttled_until_ms = now_ms + throttle_ms
            request.pending.complete(response)
        self.flush(write, now_ms)

    def next_deadline_ms(self) -> int | None:
        """When the next request runs out of time."""
        deadlines = [queue[0].deadline_ms for queue in (self._in_flight, self._waiting) if queue]
        if self.leaving:
            deadlines.append(self.leaving[0][1].deadline_ms)
        if self.is_being_set_up:
            deadlines.append(self._setup_deadline_ms)
        return min(deadlines, default=None)

    def take_overdue(self, now_ms: int) -> tuple[list[_Request], bool]:
        """Requests that ran out of time, and whether one was in flight: then the node hangs."""
        unanswered = [*self._in_flight, *[each for _, each in self.leaving]]
        overdue = [each for each in unanswered if each.deadline_ms <= now_ms]
        hangs = bool(overdue) or (self.is_being_set_up and self._setup_deadline_ms <= now_ms)
        while self._waiting and self._waiting[0].deadline_ms <= now_ms:
            overdue.append(self._waiting.popleft())
        return overdue, hangs

    def disconnected(self) -> list[_Request]:
        """The connection ended; the requests that get no answer any more, in their order."""
        if self.state != ConnectionState.DISCONNECTED:
            self.transition_to(ConnectionState.DISCONNECTED)
        self.channel = None
        self.throttled_until_ms = self._reauthenticates_at_ms = 0
        lost = [*[each for _, each in self.leaving], *self._in_flight, *self._waiting]
        if self._in_hand is not None and self._in_hand not in lost:
            lost.insert(0, self._in_hand)
        self._in_hand = None
        self._in_flight.clear()
        self.leaving.clear()
        self._waiting.clear()
        return [request for request in lost if not request.pending.done()]

    # Bytes

    def _write(self, request: _Request, write: Write, now_ms: int) -> None:
        message = request.message
        declared = type(message).__declaration__
        assert self.versions is not None, self
        assert declared is not None, message
        is_answered = not (declared.api == ApiKey.PRODUCE and message.acks == 0)
        try:
            version = request.asked_version
            if version is None:
                version = newest_common(type(message), self.versions.get(declared.api))
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
        write(frame)
        if is_answered:
            self._in_flight.append(request)
        else:
            # A channel that does not say has sent it.
            self.leaving.append((getattr(self.channel, "given_size", 0), request))
            self.take_left()

    def take_left(self) -> bool:
        """Complete the requests without an answer whose bytes have left; say whether any did."""
        leaving = self.leaving
        sent_size = getattr(self.channel, "sent_size", 0)
        count = len(leaving)
        while leaving and leaving[0][0] <= sent_size:
            _, request = leaving.popleft()
            request.pending.complete(None)
        return len(leaving) < count

    def _ask_versions(self, version: int | None, write: Write) -> None:
        from wire.schemas.api_versions import ApiVersionsRequest

        request = ApiVersionsRequest(
            client_software_name=_SOFTWARE_NAME, client_software_version=__version__
        )
        chosen = declaration(ApiVersionsRequest).last_version if version is None else version
        write(self._protocol.send(request, chosen))

    def _take_versions(self, response: ApiVersionsResponse, write: Write) -> None:
        """The node serves these versions; or not the one that was asked in, then ask in an older.

        A node that refuses version 0 too is given up.
        """
        listed = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and not self._asked_again:
            self._asked_again = True
            self._ask_versions(listed.get(ApiKey.API_VERSIONS, (0, 0))[1], write)
            return
        if response.error_code:
            raise error_for(response.error_code, f"{self.address} refused ApiVersions")
        self.versions = listed
        if self._credentials is not None:
            self._authenticate(write)
            return
        self.failure_count = 0
        self.transition_to(ConnectionState.READY)

    def _authenticate(self, write: Write) -> None:
        assert self._credentials is not None, self
        self.transition_to(ConnectionState.AUTHENTICATING)
        self._exchange = self._credentials.exchange()
        self._write_step(self._exchange.begin(), write)

    def _take_authentication(
        self, response: SaslHandshakeResponse | SaslAuthenticateResponse, write: Write, now_ms: int
    ) -> None:
        assert self._credentials is not None, self
        assert self._exchange is not None, self
        request = self._exchange.received(response)
        if request is not None:
            self._write_step(request, write)
            return
        lifetime_ms, self._exchange = self._exchange.session_lifetime_ms, None
        pause_ms = self._credentials.reauthenticate_after_ms(lifetime_ms)
        self._reauthenticates_at_ms = now_ms + pause_ms if lifetime_ms else 0
        self.failure_count = 0
        self.transition_to(ConnectionState.READY)

    def _write_step(
        self, request: SaslHandshakeRequest | SaslAuthenticateRequest, write: Write
    ) -> None:
        """Write a request of the authentication. Before Kafka 1.0 they were none: UNSUPPORTED."""
        assert self.versions is not None, self
        api_key = declaration(type(request)).api
        assert api_key is not None, request
        version = newest_common(type(request), self.versions.get(api_key))
        if api_key == ApiKey.SASL_HANDSHAKE and not version:
            raise errors.UnsupportedVersion("SASL as before Kafka 1.0")
        write(self._protocol.send(request, version))

    def __repr__(self) -> str:
        return f"<NodeConnection {self.node_id} {self.address} state {self.state}>"


PROTOCOL_ERRORS = (RemoteProtocolError, MalformedMessage, KafkaError)
"""What `received` raises when the connection is of no use any more."""
