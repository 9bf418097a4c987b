"""`Channel`: one connection of a client; its events; and `ChannelSockets`, the open sockets."""

from __future__ import annotations

from contextlib import suppress

from wire.framing import FrameReader
from wire.net.poller import make_poller
from wire.net.send_queue import SendQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket

    from wire.net.poller import Poller
    from wire.net.resolver import Address
    from wire.net.tls import TlsStream


class Channel:
    """A client's connection to one host and port, from the first attempt to the end.

    Callers may use `host`, `port` and the properties. `state` is free for the caller's data. The
    other attributes belong to `SocketChannels`.
    """

    __slots__ = (
        "address",
        "addresses",
        "deadline",
        "fd",
        "host",
        "is_connected",
        "mask",
        "port",
        "queue",
        "reader",
        "sock",
        "state",
        "timeout_s",
        "tls",
        "waiting",
    )

    def __init__(self, host: str, port: int, frame_size_max: int, timeout_s: float) -> None:
        self.host = host
        self.port = port
        self.state: object = None
        self.addresses: list[Address] = []
        """Addresses of the host that were not tried yet."""
        self.address: Address | None = None
        """The address that is being tried, or that the channel is connected to."""
        self.sock: socket | None = None
        self.fd = -1
        self.mask = 0
        self.is_connected = False
        """True while frames can be exchanged: not during the setup, nor after the end."""
        self.tls: TlsStream | None = None
        self.timeout_s = timeout_s
        self.deadline = 0.0
        """Time at which the attempt to connect to `address` counts as failed."""
        self.queue = SendQueue()
        self.waiting: list[bytes | bytearray | memoryview] = []
        """Buffers that are sent as soon as the channel is connected."""
        self.reader = FrameReader(frame_size_max)

    @property
    def is_closed(self) -> bool:
        """True once either side has ended the connection."""
        return self.sock is None

    @property
    def unsent_size(self) -> int:
        """Size of the buffers passed to `send` that the socket has not taken yet."""
        return self.queue.size + sum(map(len, self.waiting))

    @property
    def given_size(self) -> int:
        """Size of all buffers given to the socket's queue so far, sent or not."""
        return self.queue.sent_size + self.queue.size

    @property
    def sent_size(self) -> int:
        """Number of bytes that the socket has taken so far."""
        return self.queue.sent_size

    @property
    def local_port(self) -> int:
        """The local port. Requires: not closed."""
        assert self.sock is not None, self
        return int(self.sock.getsockname()[1])

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class EventKind:
    """The kinds of events."""

    CONNECTED = 1
    FRAME = 2
    CLOSED = 3


class ChannelEvent:
    """An event of a channel.

    FRAME sets `frame`, a view of the frame without its size. The caller may keep the view: its
    bytes do not change. CLOSED sets `reason`, one line of text. It also sets `is_refused` if the
    two sides do not agree on TLS, so that a retry would fail as well.
    """

    __slots__ = ("channel", "frame", "is_refused", "kind", "reason")

    def __init__(
        self,
        kind: int,
        channel: Channel,
        *,
        frame: memoryview | None = None,
        reason: str = "",
        is_refused: bool = False,
    ) -> None:
        self.kind = kind
        self.channel = channel
        self.frame = frame
        self.reason = reason
        self.is_refused = is_refused

    def __repr__(self) -> str:
        name = {1: "CONNECTED", 2: "FRAME", 3: "CLOSED"}[self.kind]
        detail = f" {len(self.frame)} bytes" if self.frame is not None else ""
        return f"<ChannelEvent {name} {self.channel}{detail}{self.reason and ': ' + self.reason}>"


class ChannelSockets:
    """The sockets of all channels, and the poller that waits for them."""

    def __init__(self, poller: Poller | None) -> None:
        self.poller = poller if poller is not None else make_poller()
        self.by_fd: dict[int, Channel] = {}
        self.left: dict[tuple[str, int], Address] = {}
        """(host, port) -> the address whose connection (to this host and port) ended last."""

    def give(self, channel: Channel, sock: socket, mask: int) -> None:
        """Make `sock` the channel's socket, and make the poller report `mask` for it."""
        channel.sock, channel.fd, channel.mask = sock, sock.fileno(), mask
        self.by_fd[channel.fd] = channel
        self.poller.register(channel.fd, mask)

    def wait_for(self, channel: Channel, mask: int) -> None:
        """Make the poller report `mask` for the channel's socket."""
        if channel.mask != mask:
            channel.mask = mask
            self.poller.modify(channel.fd, mask)

    def take(self, channel: Channel) -> None:
        """Close the channel's socket. Idempotent."""
        sock, fd = channel.sock, channel.fd
        if sock is None:
            return
        channel.is_connected = False
        if channel.address is not None:
            self.left[channel.host, channel.port] = channel.address
        # Clear the attributes first: if a KeyboardInterrupt comes in between, a second call must
        # not unregister the descriptor, which may belong to another socket by then.
        channel.sock, channel.fd, channel.tls = None, -1, None
        with suppress(OSError, KeyError):  # an interrupt came before the registration
            self.poller.unregister(fd)
        self.by_fd.pop(fd, None)
        sock.close()
        channel.queue.clear()

    def abandon(self) -> list[Channel]:
        """In a forked child: close this process's descriptors; return the channels that had one.

        Unregistering a socket from the poller would unregister it in the parent as well.
        """
        channels = list(self.by_fd.values())
        for channel in channels:
            if channel.sock is not None:
                channel.sock.close()
            channel.sock, channel.fd, channel.tls = None, -1, None
            channel.is_connected = False
        self.by_fd.clear()
        self.poller.close()
        self.poller = make_poller()
        return channels
