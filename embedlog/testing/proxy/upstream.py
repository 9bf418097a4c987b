"""`Upstream`: the proxy's connections to the brokers, one for each connection of a client."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from embedlog import errors
from embedlog.runtime.pending import Pending
from wire.connection import ClientConnection
from wire.errors import RemoteProtocolError
from wire.net.channel import Channel, ChannelEvent, EventKind
from wire.net.channels import SocketChannels

if TYPE_CHECKING:
    from embedlog.runtime.scheduler import Scheduler
    from wire.net.tls import TlsClient

_PRODUCE = 0


class Link:
    """One connection to a broker. Only the thread of `Upstream` uses it after its making."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.channel: Channel | None = None
        self.connection = ClientConnection(None)
        self.waiting: deque[Pending[Any]] = deque()
        """The answers that are still to come, in the order of the requests."""
        self.is_closed = False


class Upstream:
    """Sends requests over links and receives the answers, in a thread of its own."""

    def __init__(self, scheduler: Scheduler, tls: TlsClient | None = None) -> None:
        self._channels = SocketChannels(tls=tls)
        self._orders: deque[_Order] = deque()
        self._links: dict[Channel, Link] = {}
        self._is_stopping = False
        self._thread = scheduler.start_thread(self._run, "embedlog-proxy")

    def send(self, link: Link, request: Any, version: int, client_id: str | None) -> Pending[Any]:
        """Send a request. Return the answer's pending; it fails with `Network` if the link breaks.

        A Produce request with acks=0 is answered with None at once. Any thread may call it.
        """
        pending: Pending[Any] = Pending()
        self._orders.append(_Order(link, request, version, client_id, pending))
        self._channels.wake()
        return pending

    def drop(self, link: Link) -> None:
        """Close a link, soon. Any thread may call it."""
        self._orders.append(_Order(link, None, 0, None, Pending()))
        self._channels.wake()

    def close(self) -> None:
        """End the thread and all links."""
        self._is_stopping = True
        self._channels.wake()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                while self._orders:
                    self._obey(self._orders.popleft())
                for event in self._channels.poll(None):
                    self._take(event)
        finally:
            for link in list(self._links.values()):
                self._broke(link, "the proxy was closed")
            while self._orders:
                self._orders.popleft().pending.fail(errors.Network("the proxy was closed"))
            self._channels.close_all()

    def _obey(self, order: _Order) -> None:
        link = order.link
        if order.request is None:
            if link.channel is not None:
                self._channels.close(link.channel)
            self._broke(link, "the client has closed its connection")
            return
        if link.is_closed:
            order.pending.fail(errors.Network(f"{link.host}:{link.port} is gone"))
            return
        if link.channel is None:
            link.channel = self._channels.connect(link.host, link.port)
            self._links[link.channel] = link
        is_answered = getattr(order.request, "acks", 1) != 0
        link.connection.client_id = order.client_id
        buffers = link.connection.send(order.request, order.version, expect_response=is_answered)
        self._channels.send(link.channel, buffers)
        if is_answered:
            link.waiting.append(order.pending)
        else:
            order.pending.complete(None)

    def _take(self, event: ChannelEvent) -> None:
        link = self._links.get(event.channel)
        if link is None:
            return
        if event.kind == EventKind.CLOSED:
            self._broke(link, event.reason)
        elif event.kind == EventKind.FRAME:
            try:
                _, answer = link.connection.receive(bytes(event.frame or b""))
            except RemoteProtocolError as error:
                self._channels.close(event.channel)
                self._broke(link, str(error))
                return
            link.waiting.popleft().complete(answer)

    def _broke(self, link: Link, reason: str) -> None:
        link.is_closed = True
        if link.channel is not None:
            self._links.pop(link.channel, None)
        while link.waiting:
            link.waiting.popleft().fail(errors.Network(f"{link.host}:{link.port}: {reason}"))


class _Order:
    """A request to send, or a link to drop if there is no request."""

    __slots__ = ("client_id", "link", "pending", "request", "version")

    def __init__(
        self, link: Link, request: Any, version: int, client_id: str | None, pending: Pending[Any]
    ) -> None:
        self.link = link
        self.request = request
        self.version = version
        self.client_id = client_id
        self.pending = pending
