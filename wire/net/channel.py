"""`Channel`: one connection of a client, and the sockets of all of them."""

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
    """One connection, open or on its way. `state` is the caller's, for what belongs to it.

    For the caller: `host`, `port`, `state`, and what is a property. The rest is `SocketChannels`'s.
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
        """Of the host, not tried yet."""
        self.address: Address | None = None
        """The one that is tried, or in use."""
        self.sock: socket | None = None
        self.fd = -1
        self.mask = 0
        self.is_connected = False
        """May frames flow? False before the connection is made and after it ended."""
        self.tls: TlsStream | None = None
        self.timeout_s = timeout_s
        self.deadline = 0.0
        """When the attempt to connect has failed."""
        self.queue = SendQueue()
        self.waiting: list[bytes | bytearray | memoryview] = []
        """To be sent once connected."""
        self.reader = FrameReader(frame_size_max)

    @property
    def is_closed(self) -> bool:
        """Has the channel ended, by either side?"""
        return self.sock is None

    @property
    def unsent_size(self) -> int:
        """Bytes given to `send` that the socket has not taken."""
        return self.queue.size + sum(map(len, self.waiting))

    @property
    def given_size(self) -> int:
        """Bytes given to the socket so far, taken by it or not."""
        return self.queue.sent_size + self.queue.size

    @property
    def sent_size(self) -> int:
        """Of these the bytes that the socket has taken."""
        return self.queue.sent_size

    @property
    def local_port(self) -> int:
        """The port on this side. Requires: not closed."""
        assert self.sock is not None, self
        return int(self.sock.getsockname()[1])

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class ChannelSockets:
    """The channels that have a socket, by its descriptor, and the poller that waits for them."""

    __slots__ = ("by_fd", "left", "poller")

    def __init__(self, poller: Poller | None) -> None:
        self.poller = poller if poller is not None else make_poller()
        self.by_fd: dict[int, Channel] = {}
        self.left: dict[tuple[str, int], Address] = {}
        """The address, by host and port, whose connection ended last."""

    def give(self, channel: Channel, sock: socket, mask: int) -> None:
        """The channel has this socket from here on."""
        channel.sock, channel.fd, channel.mask = sock, sock.fileno(), mask
        self.by_fd[channel.fd] = channel
        self.poller.register(channel.fd, mask)

    def wait_for(self, channel: Channel, mask: int) -> None:
        """Have the system report that of the channel's socket."""
        if channel.mask != mask:
            channel.mask = mask
            self.poller.modify(channel.fd, mask)

    def take(self, channel: Channel) -> None:
        """Close the channel's socket. Again is allowed."""
        sock, fd = channel.sock, channel.fd
        if sock is None:
            return
        channel.is_connected = False
        if channel.address is not None:
            self.left[channel.host, channel.port] = channel.address
        # Forgotten first: if a KeyboardInterrupt comes on the way, this must not be done again
        # when another socket has the descriptor.
        channel.sock, channel.fd, channel.tls = None, -1, None
        with suppress(OSError, KeyError):  # it was interrupted before it was registered
            self.poller.unregister(fd)
        self.by_fd.pop(fd, None)
        sock.close()
        channel.queue.clear()

    def abandon(self) -> list[Channel]:
        """In a forked child: close this process's descriptors; returns the channels that had one.

        Who takes a socket out of the poller would do so for the parent too.
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
