"""`NetworkClient`: the transport over the network. Requests become frames on one connection a node.

It connects when a request needs a node, asks for the versions it serves, keeps up to
max.in.flight requests on the way, closes a connection whose answer is overdue, and waits longer
and longer before it tries a node that cannot be reached. One thread at a time may use it; only
`wake` is free.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client.backoff import Backoff
from embedlog.client.network.node_connection import PROTOCOL_ERRORS, ConnectionState, NodeConnection
from embedlog.errors import ClosedError, ConfigError, KafkaError, error_for
from embedlog.pending import Pending
from embedlog.transport import ANY_NODE, BOOTSTRAP_NODES, COORDINATOR_NODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    from embedlog.client.network.security import Credentials
    from embedlog.client.settings import Settings
    from embedlog.runtime import Runtime
    from wire.net.tls import TlsClient
    from wire.schema import Payload, R, Request

    class ChannelEvent(Protocol):
        """Something happened to a channel: a frame came, or (`reason`) it closed, or it opened.

        `is_refused`: it closed because there is no trust, and another attempt ends the same.
        """

        channel: Any
        frame: memoryview | None
        reason: str
        is_refused: bool

    class Channels(Protocol):
        """Many connections that carry whole frames; `wire.net.SocketChannels` is one."""

        is_waiting: bool

        def connect(self, host: str, port: int, *, timeout_ms: int) -> Any: ...
        def send(self, channel: Any, buffers: Sequence[Payload]) -> None: ...
        def poll(self, timeout_ms: int | None) -> Sequence[ChannelEvent]: ...
        def close(self, channel: Any) -> None: ...
        def close_all(self) -> None: ...
        def wake(self) -> None: ...


_STATES = {
    ConnectionState.DISCONNECTED: "not connected",
    ConnectionState.CONNECTING: "being connected",
    ConnectionState.CHECKING_VERSIONS: "connected, silent so far",
    ConnectionState.AUTHENTICATING: "connected, authenticating",
    ConnectionState.READY: "connected",
}
_SILENT = "; it never said what it serves: is it a Kafka listener, and without TLS?"
_UNAUTHENTICATED = "; the authentication was not over"
_UNANSWERED = "; it answered no request: does the listener want SASL?"
_LONGEST_POLL_MS = 60_000
_IN_FLIGHT_MAX = 100
"""For clients without such a setting: they have one request in flight by themselves."""


class NetworkClient:
    """A transport to the cluster that listens at `addresses`."""

    concurrent = False
    in_process = False
    makes_topics = True
    before_end: Callable[[], None] | None = None
    disk_error: Callable[[str, int], Exception | None]

    def __init__(
        self,
        addresses: Sequence[tuple[str, int]],
        settings: Settings,
        *,
        runtime: Runtime | None = None,
        channels: Channels | None = None,
    ) -> None:
        """`addresses` are asked until one answers with the cluster's own list of nodes."""
        self.is_driven = runtime is not None
        if runtime is None:
            from embedlog.runtime import real_runtime

            runtime = real_runtime()
        if channels is None:
            from wire.net.channels import SocketChannels

            channels = SocketChannels(
                send_buffer_size=settings["send.buffer.bytes"],
                receive_buffer_size=settings["receive.buffer.bytes"],
                tls=_tls_client(settings),
            )
        self.runtime = runtime
        self._channels = channels
        self._clock = runtime.clock
        self._client_id: str = settings["client.id"]
        self._request_timeout_ms: int = settings["request.timeout.ms"]
        below = runtime.random.below
        self._backoff = Backoff(
            settings["reconnect.backoff.ms"], settings["reconnect.backoff.max.ms"], below
        )
        self._setup_timeout = Backoff(
            settings["socket.connection.setup.timeout.ms"],
            settings["socket.connection.setup.timeout.max.ms"],
            below,
        )
        self._returns_to_bootstrap = settings["metadata.recovery.strategy"] == "rebootstrap"
        self.failure_count = 0
        self._idle_max_ms: int = settings["connections.max.idle.ms"]
        self._in_flight_max: int = settings.get(
            "max.in.flight.requests.per.connection", _IN_FLIGHT_MAX
        )
        self._is_encrypted = settings["security.protocol"].endswith("SSL")
        self._credentials = _credentials(settings, runtime)
        self._nodes: dict[int, NodeConnection] = {}
        """The cluster's nodes, once Metadata named them."""
        self._coordinators: dict[int, NodeConnection] = {}
        """Second connections to nodes, by COORDINATOR_NODES - node id."""
        self._bootstrap = {
            BOOTSTRAP_NODES - index: self._connection(BOOTSTRAP_NODES - index, *address)
            for index, address in enumerate(addresses)
        }
        self._by_channel: dict[Any, NodeConnection] = {}
        """By channel what `release` writes; None when frames are written at once."""
        self._has_news = False
        self._owes_time = False
        """Has nobody looked at deadlines since the last poll?"""
        self._is_woken = False
        self._is_closed = False

    # The transport

    def send(
        self,
        node_id: int,
        request: Request[R],
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Pending[R]:
        if self._is_closed:
            return _failed(ClosedError("the client was closed"))
        now_ms = self._clock.monotonic_ms()
        if node_id == ANY_NODE:
            connection = self._least_loaded(now_ms)
        else:
            found = self._nodes.get(node_id) or self._coordinators.get(node_id)
            found = found or self._bootstrap.get(node_id)
            if found is None:
                return _failed(errors.Network(f"node {node_id} is not known"))
            connection = found
        limit = self._request_timeout_ms if timeout_ms is None else timeout_ms
        pending: Pending[R] = Pending()
        try:
            connection.enqueue(request, version, now_ms + limit, pending)
            if connection.state == ConnectionState.READY:
                connection.flush(connection.write, now_ms)
            elif connection.state == ConnectionState.DISCONNECTED:
                self._connect_if_due(connection, now_ms)
        except BaseException as error:
            self._cut_short(error)
            raise
        return pending

    def versions(self, node_id: int) -> Mapping[int, tuple[int, int]] | None:
        if node_id == ANY_NODE:
            return next((each.versions for each in self._all() if each.versions is not None), None)
        connection = self._nodes.get(node_id) or self._coordinators.get(node_id)
        return None if connection is None else connection.versions

    def set_nodes(self, nodes: Mapping[int, tuple[str, int]]) -> None:
        for node_id, (host, port) in nodes.items():
            known = self._nodes.get(node_id)
            if known is None or (known.host, known.port) != (host, port):
                if known is not None:
                    self._drop(known, "the node has a new address")
                self._nodes[node_id] = self._connection(node_id, host, port)
        for node_id in [each for each in self._nodes if each not in nodes]:
            self._drop(self._nodes.pop(node_id), "the node left the cluster")
        for connection in self._bootstrap.values():
            if nodes and connection.channel is not None and not connection.load:
                self._drop(connection, "the cluster's own addresses are known")

    def set_coordinator(self, node_id: int, host: str, port: int) -> int:
        chosen = COORDINATOR_NODES - node_id
        known = self._coordinators.get(chosen)
        if known is None or (known.host, known.port) != (host, port):
            if known is not None:
                self._drop(known, "the coordinator has a new address")
            self._coordinators[chosen] = self._connection(chosen, host, port)
        return chosen

    def is_ready(self, node_id: int) -> bool:
        connection = self._nodes.get(node_id)
        return connection is not None and connection.takes_requests(self._clock.monotonic_ms())

    def prepare(self, node_id: int) -> int | None:
        connection = self._nodes.get(node_id)
        if connection is None:
            return None
        now_ms = self._clock.monotonic_ms()
        if connection.state == ConnectionState.DISCONNECTED:
            self._connect_if_due(connection, now_ms)
            left = connection.retry_at_ms - now_ms
        else:
            left = connection.throttled_until_ms - now_ms
        return left if left > 0 else None

    def bootstrap_again(self) -> None:
        if self._returns_to_bootstrap:
            self.set_nodes({})

    def drop_requests(self, reason: str) -> None:
        now_ms = self._clock.monotonic_ms()
        for connection in self._all():
            if connection.load or connection.state != ConnectionState.DISCONNECTED:
                self._failed(connection, reason, now_ms)

    def wait(self, pending: Pending[Any], timeout_ms: int | None) -> bool:
        now_ms = self._clock.monotonic_ms()
        deadline = now_ms + (_LONGEST_POLL_MS if timeout_ms is None else timeout_ms)
        self._has_news = False
        while not pending.done() and not self._is_woken and not self._is_closed:
            self._round(max(deadline - now_ms, 0))
            now_ms = self._clock.monotonic_ms()
            if self._has_news or now_ms >= deadline:
                break
        self._is_woken = False
        return pending.done()

    def poll(self) -> None:
        self._round(0)

    def wake(self) -> None:
        self._is_woken = True
        self._channels.wake()

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for connection in self._all():
            self._drop(connection, "the client was closed")
        self._channels.close_all()

    def __repr__(self) -> str:
        each = [f"{each.address} ({_STATES[each.state]})" for each in self._all()]
        return f"<NetworkClient of {', '.join(each)}>"

    # Connections

    def _all(self) -> list[NodeConnection]:
        return [
            *self._nodes.values(),
            *self._coordinators.values(),
            *self._bootstrap.values(),
        ]

    def _connection(self, node_id: int, host: str, port: int) -> NodeConnection:
        return NodeConnection(
            node_id,
            host,
            port,
            client_id=self._client_id,
            in_flight_max=self._in_flight_max,
            credentials=self._credentials,
        )

    def _least_loaded(self, now_ms: int) -> NodeConnection:
        """The node that most likely answers first.

        A ready one with the fewest requests; else one that is being connected; else the one whose
        last attempt is the longest ago, not before its back-off is over. The first addresses
        count while the cluster's own are unknown, or all of those fail and
        metadata.recovery.strategy allows it.
        """
        candidates = list(self._nodes.values())
        is_lost = self._returns_to_bootstrap and all(each.failure_count for each in candidates)
        if is_lost or not candidates:
            candidates += self._bootstrap.values()
        start = self.runtime.random.below(len(candidates))
        candidates = candidates[start:] + candidates[:start]
        return min(candidates, key=lambda each: each.rank(now_ms))

    def _connect_if_due(self, connection: NodeConnection, now_ms: int) -> None:
        if now_ms < connection.retry_at_ms:
            return
        connection.attempted_ms = now_ms
        connection.transition_to(ConnectionState.CONNECTING)
        connection.channel = self._channels.connect(
            connection.host,
            connection.port,
            timeout_ms=self._setup_timeout.delay_ms(connection.failure_count),
        )
        self._by_channel[connection.channel] = connection
        send, channel = self._channels.send, connection.channel
        connection.write = lambda frame: send(channel, frame)

    def _drop(
        self, connection: NodeConnection, reason: str, refusal: KafkaError | None = None
    ) -> None:
        """End the connection from this side; its requests fail, with `refusal` if that is why."""
        if connection.channel is not None:
            self._by_channel.pop(connection.channel, None)
            self._channels.close(connection.channel)
        told = f"connection to {connection.address} (node {connection.node_id}): {reason}"
        for request in connection.disconnected():
            self._has_news = True
            request.pending.fail(refusal or errors.Network(told))

    def _failed(
        self,
        connection: NodeConnection,
        reason: str,
        now_ms: int,
        refusal: KafkaError | None = None,
    ) -> None:
        """The connection broke or could not be made: try again later, each time later.

        What waited for it may do so too, unless the node and this client do not trust each other
        (`refusal`): that is for the user to know at once.
        """
        self.failure_count += 1
        self._has_news = True
        connection.retry_at_ms = now_ms + self._backoff.delay_ms(connection.failure_count)
        connection.failure_count += 1
        self._drop(connection, reason, refusal)

    # Rounds

    def _round(self, timeout_ms: int) -> None:
        """Wait for something to happen, and do what it calls for."""
        if self._is_closed:
            return
        now_ms = self._clock.monotonic_ms()
        try:
            if self._owes_time or not timeout_ms:
                self._keep_time(now_ms)
            events = self._channels.poll(self._poll_ms(timeout_ms, now_ms) if timeout_ms else 0)
            for event in events:
                connection = self._by_channel.get(event.channel)
                if connection is not None:
                    self._take(connection, event)
            for connection in list(self._by_channel.values()):
                if connection.leaving and connection.take_left():
                    self._has_news = True
            # Who waits for an answer that came has it first.
            self._owes_time = bool(events)
            if timeout_ms and not events:
                self._keep_time(self._clock.monotonic_ms())
        except BaseException as error:
            self._cut_short(error)
            raise

    def _cut_short(self, error: BaseException) -> None:
        """A KeyboardInterrupt came: between bytes and the note of what they were every stream is in
        doubt, as an answer could be taken for another's. While bytes are waited for none is.
        """
        if not isinstance(error, Exception) and not self._channels.is_waiting:
            self.drop_requests("interrupted")
        self._channels.is_waiting = False

    def _take(self, connection: NodeConnection, event: ChannelEvent) -> None:
        now_ms = self._clock.monotonic_ms()
        if event.frame is not None:
            try:
                connection.received(event.frame, connection.write, now_ms)
            except PROTOCOL_ERRORS as error:
                refusal = _refusal(connection, error)
                self._failed(connection, f"{type(error).__name__}: {error}", now_ms, refusal)
            self._has_news = True
        elif event.reason:
            refusal = None
            if event.is_refused:
                from embedlog.client.network.security import SslHandshakeFailed

                refusal = SslHandshakeFailed(f"{connection.address}: {event.reason}")
            self._failed(connection, event.reason + self._hint(connection), now_ms, refusal)
            self._has_news = True
        else:
            connection.used_ms = now_ms
            deadline = now_ms + self._request_timeout_ms
            connection.begin_versions(connection.write, deadline)

    def _hint(self, connection: NodeConnection) -> str:
        """What it may mean that a connection ended as early as this."""
        if connection.state == ConnectionState.CHECKING_VERSIONS and not self._is_encrypted:
            return _SILENT
        if connection.state == ConnectionState.AUTHENTICATING:
            return _UNAUTHENTICATED
        if connection.state == ConnectionState.READY and not connection.has_answered:
            return _UNANSWERED if self._credentials is None else ""
        return ""

    def _poll_ms(self, timeout_ms: int, now_ms: int) -> int:
        """How long the next poll may take: until a deadline, or the end of a back-off."""
        until = now_ms + min(timeout_ms, _LONGEST_POLL_MS)
        for connection in self._all():
            if connection.is_busy:
                deadline = connection.next_deadline_ms()
                if deadline is not None:
                    until = min(until, deadline)
                if connection.state == ConnectionState.DISCONNECTED:
                    until = min(until, connection.retry_at_ms)
                elif now_ms < connection.throttled_until_ms:
                    until = min(until, connection.throttled_until_ms)
        return max(until - now_ms, 0)

    def _keep_time(self, now_ms: int) -> None:
        for connection in self._all():
            if not connection.is_busy:
                is_idle = 0 <= self._idle_max_ms <= now_ms - connection.used_ms
                if is_idle and connection.state == ConnectionState.READY:
                    self._drop(connection, "idle")
                continue
            overdue, hangs = connection.take_overdue(now_ms)
            for request in overdue:
                self._has_news = True
                waited = f"{connection.address} did not answer {request.name} in time"
                request.pending.fail(errors.RequestTimedOut(waited))
            if hangs:
                self._failed(connection, "a request timed out", now_ms)
            elif connection.state == ConnectionState.READY:
                connection.flush(connection.write, now_ms)
            elif connection.state == ConnectionState.DISCONNECTED and connection.load:
                self._connect_if_due(connection, now_ms)


def _tls_client(settings: Settings) -> TlsClient | None:
    """What makes connections TLS ones, if the settings want it.

    Raises:
        ConfigError: the settings contradict each other, or name certificates that are none.
    """
    if not settings["security.protocol"].endswith("SSL"):
        return None
    from embedlog.client.network.security import tls_arguments
    from wire.net.tls import TlsClient, TlsOptions

    options = TlsOptions(**tls_arguments(settings))
    try:
        return TlsClient(options)
    except ValueError as error:
        raise ConfigError(f"TLS as configured by ssl.* is not possible: {error}") from None


def _credentials(settings: Settings, runtime: Runtime) -> Credentials | None:
    if not settings["security.protocol"].startswith("SASL"):
        return None
    from embedlog.client.network.security import credentials

    return credentials(settings, runtime.random)


def _refusal(connection: NodeConnection, error: Exception) -> KafkaError | None:
    """The error that the node refuses this client with; None when it is another one."""
    if connection.state != ConnectionState.AUTHENTICATING or not isinstance(error, KafkaError):
        return None
    return error_for(error.code, f"{connection.address}: {error}")


def _failed(error: Exception) -> Pending[Any]:
    pending: Pending[Any] = Pending()
    pending.fail(error)
    return pending
