"""`Connector`: opens and closes connections to nodes, with a back-off after each failure."""

from __future__ import annotations

from embedlog import errors
from embedlog.client.backoff import Backoff
from embedlog.client.network.node_connection import ConnectionState
from embedlog.client.rare_warnings import RareWarnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from embedlog.client.network.node_connection import NodeConnection
    from embedlog.client.settings import Settings
    from embedlog.errors import KafkaError
    from wire.schema import Payload

    class ChannelEvent(Protocol):
        """An event of a channel: it opened, received a `frame`, or closed for a `reason`.

        `is_refused`: one side does not trust the other, and would refuse the next attempt.
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


class HeldWrites:
    """Writes frames to the channels of one client: see `embedlog.transport.Writes`."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._held: dict[Any, list[Payload]] | None = None
        """The gathered frames of each channel, between `hold` and `release`."""

    def hold(self) -> None:
        self._held = {}

    def release(self) -> None:
        held, self._held = self._held, None
        for channel, buffers in (held or {}).items():
            self._channels.send(channel, buffers)

    def write(self, channel: Any, frame: Sequence[Payload]) -> None:
        """Write a frame now, or gather it after `hold`."""
        if self._held is None:
            self._channels.send(channel, frame)
        else:
            self._held.setdefault(channel, []).extend(frame)

    def forget(self, channel: Any) -> None:
        if self._held is not None:
            self._held.pop(channel, None)


class Connector:
    """The channels of one client's connections, and the pauses before new attempts."""

    def __init__(
        self,
        channels: Channels,
        writes: HeldWrites,
        settings: Settings,
        below: Callable[[int], int],
        *,
        untold_count: int = 0,
    ) -> None:
        """`untold_count`: failures to reach a node, in a row, before the client warns of it."""
        self._channels = channels
        self._writes = writes
        self._untold_count = untold_count
        self._backoff = Backoff(
            settings["reconnect.backoff.ms"], settings["reconnect.backoff.max.ms"], below
        )
        self._setup_timeout = Backoff(
            settings["socket.connection.setup.timeout.ms"],
            settings["socket.connection.setup.timeout.max.ms"],
            below,
        )
        self._by_channel: dict[Any, NodeConnection] = {}
        self.leaving: dict[NodeConnection, None] = {}
        """The connections with acks=0 requests whose bytes perhaps have not left yet."""
        self._warnings = RareWarnings()
        self.failure_count = 0
        self.has_news = False
        """True if a request or connection ended since the client set this to False."""

    def of(self, channel: Any) -> NodeConnection | None:
        """Return the connection that a channel carries; None if it has ended."""
        return self._by_channel.get(channel)

    def take_left(self) -> None:
        """Complete the acks=0 requests whose bytes have left."""
        for connection in list(self.leaving):
            if connection.take_left():
                self.has_news = True
            if not connection.requests.any_leaving:
                del self.leaving[connection]

    def connect_if_due(self, connection: NodeConnection, now_ms: int) -> None:
        """Begin to connect, unless the back-off is still running."""
        if now_ms < connection.retry_at_ms:
            return
        connection.attempted_ms = now_ms
        connection.transition_to(ConnectionState.CONNECTING)
        channel = self._channels.connect(
            connection.host,
            connection.port,
            timeout_ms=self._setup_timeout.delay_ms(connection.failure_count),
        )
        write = self._writes.write
        connection.use(channel, lambda frame: write(channel, frame))
        self._by_channel[channel] = connection

    def drop(
        self, connection: NodeConnection, reason: str, refusal: KafkaError | None = None
    ) -> None:
        """Close the connection; its requests fail, with `refusal` if it is given."""
        if connection.channel is not None:
            self._by_channel.pop(connection.channel, None)
            self._writes.forget(connection.channel)
            self._channels.close(connection.channel)
        told = f"connection to {connection.address} (node {connection.node_id}): {reason}"
        for request in connection.disconnected():
            self.has_news = True
            request.pending.fail(refusal or errors.Network(told))

    def broke(
        self,
        connection: NodeConnection,
        reason: str,
        now_ms: int,
        refusal: KafkaError | None = None,
    ) -> None:
        """Note that the connection broke or could not be made; begin a longer back-off.

        Its requests fail with `Network`, and callers may send them again. If the node and this
        client do not trust each other, its requests fail with `refusal`, so that the user learns
        that at once.
        """
        self.failure_count += 1
        self.has_news = True
        is_ready = connection.state == ConnectionState.READY
        if not is_ready and connection.failure_count >= self._untold_count:
            self._warnings.warn(
                (connection.address, reason),
                now_ms,
                "cannot use %s: %s; it is tried again: is a broker running there?",
                connection.address,
                refusal or reason,
            )
        connection.retry_at_ms = now_ms + self._backoff.delay_ms(connection.failure_count)
        connection.failure_count += 1
        self.drop(connection, reason, refusal)
