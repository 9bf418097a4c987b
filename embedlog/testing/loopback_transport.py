"""`LoopbackTransport`: a connection through both ends of the protocol, without sockets.

It runs the network client, the encoders and decoders at the negotiated versions, and the broker's
network service, in one thread, also with a simulated clock. A test can cut a connection
(`channels.cut`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any

from embedlog.client.network.network_client import NetworkClient
from embedlog.client.parse_settings import parse
from embedlog.client.settings import COMMON
from embedlog.cluster.cluster import Cluster
from embedlog.runtime.pending import Pending
from embedlog.server.service import BrokerService
from wire.schema import Payload

_SIZE = Struct(">i")
_HOST, _PORT = "loopback", 9092


class LoopbackTransport(NetworkClient):
    """A transport to a cluster of this process, through bytes.

    >>> import embedlog
    >>> with embedlog.open() as cluster, embedlog.Admin(LoopbackTransport(cluster)) as admin:
    ...     sorted(admin.create_topics(["events"]).check())
    ['events']
    """

    def __init__(self, cluster: Cluster, settings: Mapping[str, Any] | None = None) -> None:
        """`settings` are client settings; only the settings of the transport have an effect."""
        self.channels = LoopbackChannels(cluster)
        super().__init__(
            [(_HOST, _PORT)],
            parse(COMMON, settings),
            runtime=cluster.runtime,
            channels=self.channels,
        )


class LoopbackChannels:
    """The twin of `wire.net.SocketChannels`: it calls the broker's network service directly."""

    def __init__(self, cluster: Cluster, node_id: int | None = None) -> None:
        """`node_id` chooses one of several brokers."""
        self._service = BrokerService(cluster.broker(node_id).core)
        self._scheduler = cluster.runtime.scheduler
        self._clock = cluster.runtime.clock
        self._events: deque[_Event] = deque()
        self._signal: Pending[object] = Pending()
        self._ends: list[_End] = []
        self.is_waiting = False

    def connect(self, host: str, port: int, *, timeout_ms: int | None = None) -> _End:
        """Return an open connection; the address does not matter."""
        end = _End(self, host, port)
        self._ends.append(end)
        self._service.connected(end)  # type: ignore[arg-type]
        self.happened(_Event(end))
        return end

    def send(self, channel: _End, buffers: Sequence[Payload]) -> None:
        """Give whole frames to the service, each after the answer to the previous frame."""
        if not channel.is_closed:
            channel.take(b"".join(buffers))

    def poll(self, timeout_ms: int | None) -> list[_Event]:
        """Return the queued events; wait at most `timeout_ms` for the first one."""
        if not self._events:
            self._scheduler.run_due(self._clock.monotonic_ms())
        if not self._events and timeout_ms != 0:
            self.is_waiting = True
            self._scheduler.wait(self._signal, timeout_ms)
            self.is_waiting = False
        self._signal = Pending()
        events = list(self._events)
        for _ in events:
            self._events.popleft()
        return events

    def close(self, channel: _End) -> None:
        """Close a connection from the client's side, without an event."""
        if not channel.is_closed:
            channel.is_closed = True
            self._ends.remove(channel)
            self._service.disconnected(channel)  # type: ignore[arg-type]

    def close_all(self) -> None:
        """Close every connection."""
        for end in list(self._ends):
            self.close(end)

    def wake(self) -> None:
        """End the present or the next wait of `poll`."""
        self._signal.complete(None)

    def cut(self, reason: str = "cut by the test") -> None:
        """Break every connection, as a network failure does."""
        for end in list(self._ends):
            self.close(end)
            self.happened(_Event(end, reason=reason))

    def serve(self, end: _End, frame: memoryview) -> Sequence[Payload] | None:
        """Return the service's answer; None if the answer comes later."""
        return self._service.handle(end, frame)  # type: ignore[arg-type]

    def happened(self, event: _Event) -> None:
        """Queue an event. Any thread may call this."""
        self._events.append(event)
        self._signal.complete(None)


class _Event:
    """A new connection (neither frame nor reason), a frame, or a close with its reason."""

    __slots__ = ("channel", "frame", "reason")

    is_refused = False

    def __init__(self, channel: _End, *, frame: memoryview | None = None, reason: str = "") -> None:
        self.channel = channel
        self.frame = frame
        self.reason = reason


class _End:
    """One connection: the peer that the service sees."""

    def __init__(self, channels: LoopbackChannels, host: str, port: int) -> None:
        self.local_host = host
        self.local_port = port
        self.peer_host = host
        self.state: object = None
        self.is_closed = False
        self._channels = channels
        self._frames: deque[memoryview] = deque()
        self._is_busy = False

    def take(self, data: bytes) -> None:
        """Take bytes from the client: whole frames, each with its size."""
        position = 0
        while position < len(data):
            (size,) = _SIZE.unpack_from(data, position)
            position += _SIZE.size
            self._frames.append(memoryview(data)[position : position + size])
            position += size
        self._serve()

    def respond(self, buffers: Sequence[Payload] | None) -> None:
        """Send a late answer of the service. Any thread may call this."""
        self._answer(buffers)
        self._serve()

    def respond_with(self, make: Callable[[], Sequence[Payload] | None]) -> None:
        """Like `respond`, with a function that makes the answer."""
        self.respond(make())

    def close(self) -> None:
        """Close the connection from the service's side."""
        if not self.is_closed:
            self._channels.close(self)
            self._channels.happened(_Event(self, reason="closed by the broker"))

    def _serve(self) -> None:
        while self._frames and not self._is_busy and not self.is_closed:
            self._is_busy = True
            answer = self._channels.serve(self, self._frames.popleft())
            if answer is None:
                return
            self._answer(answer)

    def _answer(self, buffers: Sequence[Payload] | None) -> None:
        self._is_busy = False
        if buffers and not self.is_closed:
            frame = memoryview(b"".join(buffers))[_SIZE.size :]
            self._channels.happened(_Event(self, frame=frame))
