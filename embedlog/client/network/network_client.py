"""`NetworkClient`: the transport over the network, with one connection to each node.

It connects when a request needs a node, and asks the node for its versions. It keeps up to
max.in.flight requests on the way, closes a connection whose answer is overdue, and waits longer
after each failed attempt to reach a node. Only one thread at a time may use it; `wake` may be
called from any thread.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client.network.connector import Connector, HeldWrites
from embedlog.client.network.node_connection import PROTOCOL_ERRORS, ConnectionState, NodeConnection
from embedlog.client.network.node_connections import NodeConnections
from embedlog.client.network.node_requests import NEVER_MS, NodeRequest
from embedlog.errors import ClosedError, KafkaError, error_for
from embedlog.runtime.pending import Pending
from embedlog.transport import ANY_NODE
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from embedlog.client.network.bootstrap import Find
    from embedlog.client.network.connector import ChannelEvent, Channels
    from embedlog.client.network.security import Credentials
    from embedlog.client.settings import Settings
    from embedlog.runtime import Runtime
    from wire.schema import R, Request


_STATES = {
    ConnectionState.DISCONNECTED: "not connected",
    ConnectionState.CONNECTING: "being connected",
    ConnectionState.CHECKING_VERSIONS: "connected, silent so far",
    ConnectionState.AUTHENTICATING: "connected, authenticating",
    ConnectionState.READY: "connected",
}
_SILENT = "; it never named its versions: is it a Kafka listener, and without TLS?"
_UNAUTHENTICATED = "; the authentication was still under way"
_UNANSWERED = "; it answered no request: does the listener want SASL?"
_LONGEST_POLL_MS = 60_000
_UNTOLD_COUNT = 50
"""A shared directory has no owner for a moment while its owner changes: warn after some 10 s."""
_IN_FLIGHT_MAX = 100
"""Stands for max.in.flight.requests.per.connection in clients that lack it: a limit that they never
reach, because they send one request at a time."""


class NetworkClient:
    """A transport to the cluster that listens at `addresses`."""

    concurrent = False
    in_process = False
    loses_answers = True
    is_authority = False
    makes_topics = True
    before_end: Callable[[], None] | None = None
    ends_soon: Callable[[], None] | None = None
    disk_error: Callable[[str, int], Exception | None]

    def __init__(
        self,
        addresses: Sequence[tuple[str, int]],
        settings: Settings,
        *,
        runtime: Runtime | None = None,
        channels: Channels | None = None,
        find: Find | None = None,
    ) -> None:
        """`addresses` are tried until a broker answers with the cluster's list of nodes.

        `find` replaces them: see `NodeConnections`.
        """
        self.is_driven = runtime is not None
        if runtime is None:
            from embedlog.runtime import real_runtime

            runtime = real_runtime()
        if channels is None:
            from embedlog.client.network.tls_settings import tls_client
            from wire.net.channels import SocketChannels

            channels = SocketChannels(
                send_buffer_size=settings["send.buffer.bytes"],
                receive_buffer_size=settings["receive.buffer.bytes"],
                tls=tls_client(settings),
            )
        self.runtime = runtime
        self._channels = channels
        self._request_timeout_ms: int = settings["request.timeout.ms"]
        self._idle_max_ms: int = settings["connections.max.idle.ms"]
        self._is_encrypted = settings["security.protocol"].endswith("SSL")
        self.writes = HeldWrites(channels)
        self._connector = Connector(
            channels,
            self.writes,
            settings,
            runtime.random.below,
            untold_count=0 if find is None else _UNTOLD_COUNT,
        )
        self._nodes = NodeConnections(
            addresses,
            _maker(settings, runtime, self._connector.leaving),
            self._connector.drop,
            below=runtime.random.below,
            returns_to_bootstrap=settings["metadata.recovery.strategy"] == "rebootstrap",
            checks_identity=settings["metadata.cluster.check.enable"],
            find=find,
        )
        self._due_ms = 0
        """No deadline, back-off or throttling ends before this time."""
        self._idle_due_ms = 0
        """Before this time no connection reaches connections.max.idle.ms."""
        self._owes_time = False
        """True after a poll with events, until `_keep_time` has run."""
        self._is_woken = False
        self.is_closed = False

    # Methods of `Transport`

    def send(
        self,
        node_id: int,
        request: Request[R],
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Pending[R]:
        if self.is_closed:
            return _failed(ClosedError("the client was closed"))
        now_ms = self.runtime.clock.monotonic_ms()
        if node_id == ANY_NODE:
            connection = self._nodes.least_loaded(now_ms)
        else:
            found = self._nodes.of(node_id)
            if found is None:
                return _failed(errors.Network(f"node {node_id} is not known"))
            connection = found
        due_ms = now_ms + (self._request_timeout_ms if timeout_ms is None else timeout_ms)
        self._due_ms = min(self._due_ms, due_ms)
        pending: Pending[R] = Pending()
        try:
            connection.requests.add(NodeRequest(request, version, due_ms, pending))
            if connection.state == ConnectionState.READY:
                connection.flush(now_ms)
                if connection.throttled_until_ms > now_ms:
                    self._due_ms = min(self._due_ms, connection.throttled_until_ms)
            elif connection.state == ConnectionState.DISCONNECTED:
                self._connector.connect_if_due(connection, now_ms)
                if connection.retry_at_ms > now_ms:
                    self._due_ms = min(self._due_ms, connection.retry_at_ms)
        except BaseException as error:
            self._cut_short(error)
            raise
        return pending

    def versions(self, node_id: int) -> Mapping[int, tuple[int, int]] | None:
        if node_id == ANY_NODE:
            told = (each.setup.versions for each in self._nodes.all())
            return next((versions for versions in told if versions is not None), None)
        connection = self._nodes.of(node_id)
        return None if connection is None else connection.setup.versions

    def set_nodes(
        self, nodes: Mapping[int, tuple[str, int]], cluster_id: str | None = None
    ) -> None:
        self._nodes.set_nodes(nodes, cluster_id)

    def set_coordinator(self, node_id: int, host: str, port: int) -> int:
        return self._nodes.set_coordinator(node_id, host, port)

    def is_ready(self, node_id: int) -> bool:
        connection = self._nodes.of(node_id)
        return connection is not None and connection.takes_requests(
            self.runtime.clock.monotonic_ms()
        )

    def prepare(self, node_id: int) -> int | None:
        connection = self._nodes.of(node_id)
        if connection is None:
            return None
        now_ms = self.runtime.clock.monotonic_ms()
        if connection.state == ConnectionState.DISCONNECTED:
            self._connector.connect_if_due(connection, now_ms)
            left = connection.retry_at_ms - now_ms
        else:
            left = connection.throttled_until_ms - now_ms
        return left if left > 0 else None

    def bootstrap_again(self) -> None:
        self._nodes.forget_nodes()

    @property
    def failure_count(self) -> int:
        return self._connector.failure_count

    def drop_requests(self, reason: str) -> None:
        now_ms = self.runtime.clock.monotonic_ms()
        for connection in self._nodes.all():
            if connection.requests.count or connection.state != ConnectionState.DISCONNECTED:
                self._connector.broke(connection, reason, now_ms)
        self.writes.release()  # an interrupt may have left writes held

    def wait(self, pending: Pending[Any], timeout_ms: int | None) -> bool:
        now_ms = self.runtime.clock.monotonic_ms()
        deadline = now_ms + (_LONGEST_POLL_MS if timeout_ms is None else timeout_ms)
        self._connector.has_news = False
        while not pending.done() and not self._is_woken and not self.is_closed:
            self._round(max(deadline - now_ms, 0))
            now_ms = self.runtime.clock.monotonic_ms()
            if self._connector.has_news or now_ms >= deadline:
                break
        self._is_woken = False
        return pending.done()

    def poll(self) -> None:
        self._round(0)

    def wake(self) -> None:
        self._is_woken = True
        self._channels.wake()

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        for connection in self._nodes.all():
            self._connector.drop(connection, "the client was closed")
        self._channels.close_all()

    def __repr__(self) -> str:
        each = [f"{each.address} ({_STATES[each.state]})" for each in self._nodes.all()]
        return f"<NetworkClient of {', '.join(each)}>"

    # Rounds

    def _round(self, timeout_ms: int) -> None:
        """Poll the channels for at most `timeout_ms`, take the events, and check the deadlines."""
        if self.is_closed:
            return
        now_ms = self.runtime.clock.monotonic_ms()
        try:
            is_due = now_ms >= self._due_ms or now_ms >= self._idle_due_ms
            if is_due and (self._owes_time or not timeout_ms):
                self._keep_time(now_ms)
            poll_ms = 0
            if timeout_ms:
                until_ms = now_ms + min(timeout_ms, _LONGEST_POLL_MS)
                poll_ms = max(min(self._due_ms, until_ms) - now_ms, 0)
            events = self._channels.poll(poll_ms)
            for event in events:
                connection = self._connector.of(event.channel)
                if connection is not None:
                    self._take(connection, event)
            if self._connector.leaving:
                self._connector.take_left()
            # Take answers before deadlines: an answer that has arrived is not overdue.
            self._owes_time = bool(events)
            if timeout_ms and not events:
                now_ms = self.runtime.clock.monotonic_ms()
                if now_ms >= self._due_ms or now_ms >= self._idle_due_ms:
                    self._keep_time(now_ms)
        except BaseException as error:
            self._cut_short(error)
            raise

    def _cut_short(self, error: BaseException) -> None:
        """Drop all connections if an interrupt came after bytes were read, before they were noted.

        Otherwise an answer could be taken for the answer to another request. An interrupt while the
        client only waits for bytes affects no connection.
        """
        self._due_ms = 0  # the error may have prevented an update
        if not isinstance(error, Exception) and not self._channels.is_waiting:
            self.drop_requests("interrupted")
        self._channels.is_waiting = False

    def _take(self, connection: NodeConnection, event: ChannelEvent) -> None:
        now_ms = self.runtime.clock.monotonic_ms()
        if event.frame is not None:
            try:
                connection.received(event.frame, now_ms)
            except PROTOCOL_ERRORS as error:
                refusal = _refusal(connection, error)
                self._connector.broke(
                    connection, f"{type(error).__name__}: {error}", now_ms, refusal
                )
                if isinstance(error, KafkaError) and error.code == ErrorCode.REBOOTSTRAP_REQUIRED:
                    # Another broker listens at this address (KIP-1242): trust no known node.
                    self._nodes.forget_nodes()
            if connection.throttled_until_ms > now_ms:
                self._due_ms = min(self._due_ms, connection.throttled_until_ms)
            self._connector.has_news = True
        elif event.reason:
            refusal = None
            if event.is_refused:
                from embedlog.client.network.security import SslHandshakeFailed

                refusal = SslHandshakeFailed(f"{connection.address}: {event.reason}")
            reason = event.reason + _hint(connection, is_encrypted=self._is_encrypted)
            self._connector.broke(connection, reason, now_ms, refusal)
            self._connector.has_news = True
        else:
            deadline_ms = now_ms + self._request_timeout_ms
            self._due_ms = min(self._due_ms, deadline_ms)
            connection.connected(now_ms, deadline_ms)

    def _keep_time(self, now_ms: int) -> None:
        """Do everything that is due by `now_ms` on every connection; find the next due time."""
        for connection in self._nodes.all():
            self._keep_time_of(connection, now_ms)
        # List the connections again: callbacks of failed requests may have sent other requests.
        connections = self._nodes.all()
        self._due_ms = min([each.next_due_ms(now_ms) for each in connections], default=NEVER_MS)
        used = [each.used_ms for each in connections if each.state == ConnectionState.READY]
        is_limited = self._idle_max_ms >= 0
        self._idle_due_ms = min([*used, now_ms]) + self._idle_max_ms if is_limited else NEVER_MS

    def _keep_time_of(self, connection: NodeConnection, now_ms: int) -> None:
        if not connection.is_busy:
            is_idle = 0 <= self._idle_max_ms <= now_ms - connection.used_ms
            if is_idle and connection.state == ConnectionState.READY:
                self._connector.drop(connection, "idle")
            return
        overdue, hangs = connection.take_overdue(now_ms)
        for request in overdue:
            self._connector.has_news = True
            waited = f"{connection.address} did not answer {request.name} in time"
            request.pending.fail(errors.RequestTimedOut(waited))
        if hangs:
            self._connector.broke(connection, "a request timed out", now_ms)
        elif connection.state == ConnectionState.READY:
            connection.flush(now_ms)
        elif connection.state == ConnectionState.DISCONNECTED and connection.requests.count:
            self._connector.connect_if_due(connection, now_ms)


def _credentials(settings: Settings, runtime: Runtime) -> Credentials | None:
    if not settings["security.protocol"].startswith("SASL"):
        return None
    from embedlog.client.network.security import credentials

    return credentials(settings, runtime.random)


def _maker(
    settings: Settings, runtime: Runtime, leaving: dict[NodeConnection, None]
) -> Callable[[int, str, int], NodeConnection]:
    client_id: str = settings["client.id"]
    in_flight_max: int = settings.get("max.in.flight.requests.per.connection", _IN_FLIGHT_MAX)
    credentials = _credentials(settings, runtime)

    def make(node_id: int, host: str, port: int) -> NodeConnection:
        return NodeConnection(
            node_id,
            host,
            port,
            client_id=client_id,
            in_flight_max=in_flight_max,
            leaving=leaving,
            credentials=credentials,
        )

    return make


def _hint(connection: NodeConnection, *, is_encrypted: bool) -> str:
    """Return the likely reason of a connection's early end, for its error text."""
    if connection.state == ConnectionState.CHECKING_VERSIONS and not is_encrypted:
        return _SILENT
    if connection.state == ConnectionState.AUTHENTICATING:
        return _UNAUTHENTICATED
    if connection.state == ConnectionState.READY and not connection.setup.has_answered:
        return "" if connection.setup.has_credentials else _UNANSWERED
    return ""


def _refusal(connection: NodeConnection, error: Exception) -> KafkaError | None:
    """Return the error if the node refuses to authenticate this client, else None."""
    if connection.state != ConnectionState.AUTHENTICATING or not isinstance(error, KafkaError):
        return None
    return error_for(error.code, f"{connection.address}: {error}")


def _failed(error: Exception) -> Pending[Any]:
    pending: Pending[Any] = Pending()
    pending.fail(error)
    return pending
