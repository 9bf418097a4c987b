"""A client's sockets: many non-blocking connections that carry whole frames.

    channels = SocketChannels()
    channel = channels.connect("localhost", 9092)
    channels.send(channel, buffers)            # the bytes of whole frames, sizes included
    for event in channels.poll(1_000): ...     # connected, frame or closed

One thread at a time may use a `SocketChannels`; only `wake` may be called from any. Nothing
blocks but `poll` and, for a host name, the resolver inside `connect`.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from errno import EINPROGRESS, EWOULDBLOCK
from weakref import WeakSet

from wire.framing import FrameReader, InvalidFrameSize
from wire.net.channel_events import ChannelEvent, EventKind
from wire.net.clock import monotonic
from wire.net.poller import READ, WRITE, Waker, make_poller
from wire.net.resolver import resolve
from wire.net.send_queue import SendQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wire.net.poller import Poller
    from wire.net.resolver import Address
    from wire.net.tls import TlsClient, TlsStream


FIRST_FRAME_SIZE_MAX = 16 << 20
"""A peer that begins with a larger frame speaks something else: TLS looks like one of 350 MB, and
its end would be waited for."""

_TLS_READ_SIZE = 64 * 1024


class Channel:
    """One connection, open or on its way. Everything but `host`, `port`, `state` is internal.

    `state` is the caller's, for whatever belongs to the connection.
    """

    __slots__ = (
        "_address",
        "_addresses",
        "_deadline",
        "_fd",
        "_is_connected",
        "_mask",
        "_queue",
        "_reader",
        "_sock",
        "_timeout_s",
        "_tls",
        "_waiting",
        "host",
        "port",
        "state",
    )

    def __init__(self, host: str, port: int, frame_size_max: int, timeout_s: float) -> None:
        self.host = host
        self.port = port
        self.state: object = None
        self._addresses: list[Address] = []
        """Of the host, not tried yet."""
        self._address: Address | None = None
        self._sock: socket.socket | None = None
        self._fd = -1
        self._mask = 0
        self._is_connected = False
        self._tls: TlsStream | None = None
        self._timeout_s = timeout_s
        self._deadline = 0.0
        self._queue = SendQueue()
        self._waiting: list[bytes | bytearray | memoryview] = []
        self._reader = FrameReader(frame_size_max)

    @property
    def is_connected(self) -> bool:
        """May frames flow? False before the connection is made and after it ended."""
        return self._is_connected

    @property
    def is_closed(self) -> bool:
        """Has the channel ended, by either side?"""
        return self._sock is None

    @property
    def unsent_size(self) -> int:
        """Bytes given to `send` that the socket has not taken."""
        return self._queue.size + sum(map(len, self._waiting))

    @property
    def given_size(self) -> int:
        """Bytes given to the socket so far, taken by it or not."""
        return self._queue.sent_size + self._queue.size

    @property
    def sent_size(self) -> int:
        """Of these the bytes that the socket has taken."""
        return self._queue.sent_size

    @property
    def local_port(self) -> int:
        """The port on this side. Requires: not closed."""
        assert self._sock is not None, self
        return int(self._sock.getsockname()[1])

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class SocketChannels:
    """A set of client connections, polled together.

    `frame_size_max` bounds what a peer can make this side allocate: a larger frame closes its
    channel. `connect_timeout_ms` is for each address of a host, unless `connect` says otherwise.
    The sizes are those of the system's buffers for a socket; -1 leaves them to the system. With
    `tls` a channel is connected when the peers trust each other, in the same time.
    """

    def __init__(
        self,
        *,
        frame_size_max: int = 1 << 30,
        connect_timeout_ms: int = 10_000,
        send_buffer_size: int = -1,
        receive_buffer_size: int = -1,
        tls: TlsClient | None = None,
        poller: Poller | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._frame_size_max = frame_size_max
        self._connect_timeout_s = connect_timeout_ms / 1_000
        # With keepalive a peer that vanished is noticed also while nothing is sent.
        self._options = {socket.SO_KEEPALIVE: 1}
        if send_buffer_size >= 0:
            self._options[socket.SO_SNDBUF] = send_buffer_size
        if receive_buffer_size >= 0:
            self._options[socket.SO_RCVBUF] = receive_buffer_size
        self._tls = tls
        self._clock = clock
        self._poller = poller if poller is not None else make_poller()
        self._waker = Waker()
        self._poller.register(self._waker.fd, READ)
        self._channels: dict[int, Channel] = {}
        self._connecting: set[Channel] = set()
        self._left: dict[tuple[str, int], Address] = {}
        """The address, by host and port, whose connection ended last."""
        self._events: list[ChannelEvent] = []
        self.is_waiting = False
        """Does `poll` wait, or was it interrupted while it did? Then no byte was moved."""
        _open.add(self)

    def connect(self, host: str, port: int, *, timeout_ms: int | None = None) -> Channel:
        """Begin a connection. Each address of `host` is tried; a CONNECTED or CLOSED event follows.

        The first to be tried is the one after that whose connection ended last. A host that
        cannot be resolved also ends in a CLOSED event.
        """
        timeout_s = self._connect_timeout_s if timeout_ms is None else timeout_ms / 1_000
        first_size_max = min(self._frame_size_max, FIRST_FRAME_SIZE_MAX)
        channel = Channel(host, port, first_size_max, timeout_s)
        try:
            channel._addresses = self._in_turn(host, port)
        except OSError as error:
            self._events.append(
                ChannelEvent(
                    EventKind.CLOSED,
                    channel,
                    reason=f"cannot resolve {host!r}: {error.strerror or error}",
                )
            )
            return channel
        self._try_next_address(channel, "no address")
        return channel

    def send(self, channel: Channel, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        """Write bytes, at once as far as the socket takes them, the rest during `poll`.

        Buffers are held by reference until written. Before the channel is connected they wait;
        after it is closed they are dropped, and the CLOSED event says what happened.
        """
        if channel._sock is None:
            return
        if not channel._is_connected:
            channel._waiting.extend(buffers)
            return
        try:
            if channel._tls is not None:
                buffers = channel._tls.encrypt(buffers)
            if not channel._queue.send(channel._sock, buffers):
                self._set_mask(channel, READ | WRITE)
        except OSError as error:
            self._broke(channel, error)

    def poll(self, timeout_ms: int | None) -> list[ChannelEvent]:
        """What happened, waiting at most `timeout_ms` for the first event (None: no limit).

        Returns early, perhaps with nothing, when bytes moved or after `wake`. The frames of a
        channel come in order, and a CLOSED event is the last one of its channel.
        """
        timeout = 0.0 if self._events else None if timeout_ms is None else timeout_ms / 1_000
        if self._connecting:
            timeout = self._until_connect_deadline(timeout)
        self.is_waiting = True
        ready = self._poller.poll(timeout)
        self.is_waiting = False
        for fd, mask in ready:
            channel = self._channels.get(fd)
            if channel is None:
                if fd == self._waker.fd:
                    self._waker.clear()
            elif channel._is_connected:
                # Bits of an error or a hang-up belong to both: the call tells what it is.
                if mask & ~READ:
                    self._write(channel)
                if mask & ~WRITE and channel._sock is not None:
                    self._read(channel)
            elif channel._tls is not None:
                self._shake_hands(channel, mask)
            else:
                self._finish_connect(channel)
        if self._connecting:
            self._expire_connects()
        events, self._events = self._events, []
        return events

    def close(self, channel: Channel) -> None:
        """End a channel at once. No event follows, and those not yet polled are dropped."""
        self._drop(channel)
        self._events = [event for event in self._events if event.channel is not channel]

    def close_all(self) -> None:
        """End every channel and give the system's resources back. The last call."""
        for channel in list(self._channels.values()):
            self.close(channel)
        self._events.clear()
        self._waker.close()
        self._poller.close()
        _open.discard(self)

    def begin_again(self) -> None:
        """In a forked child: end every channel, and leave sockets and poller to the parent."""
        # Who takes a socket out of the poller does so for both.
        for channel in self._channels.values():
            if channel._sock is not None:
                channel._sock.close()
            channel._sock, channel._fd, channel._tls = None, -1, None
            channel._is_connected = False
            self._drop(channel)
            self._events.append(ChannelEvent(EventKind.CLOSED, channel, reason="forked"))
        self._channels.clear()
        self._connecting.clear()
        self._waker.abandon()
        self._poller.close()
        self._poller, self._waker = make_poller(), Waker()
        self._poller.register(self._waker.fd, READ)

    def wake(self) -> None:
        """Make the current or next `poll` return. May be called from any thread."""
        self._waker.wake()

    def _in_turn(self, host: str, port: int) -> list[Address]:
        """The addresses of a host, those that were not used lately first."""
        addresses = resolve(host, port)
        last = self._left.get((host, port))
        if last not in addresses:
            return addresses
        first = addresses.index(last) + 1
        return addresses[first:] + addresses[:first]

    def _try_next_address(self, channel: Channel, failure: str) -> None:
        """Start connecting to the next address; a CLOSED event with `failure` if none is left."""
        while channel._addresses:
            channel._address = family, address = channel._addresses.pop(0)
            try:
                sock = socket.socket(family, socket.SOCK_STREAM)
            except OSError as error:
                failure = _reason(error)
                continue
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for option, value in self._options.items():
                sock.setsockopt(socket.SOL_SOCKET, option, value)
            try:
                code = sock.connect_ex(address)
            except OSError as error:  # a port out of range is an OverflowError, a bug of the caller
                code, failure = error.errno or -1, _reason(error)
            if code in {0, EINPROGRESS, EWOULDBLOCK}:
                channel._sock, channel._fd = sock, sock.fileno()
                channel._deadline = self._clock() + channel._timeout_s
                channel._mask = WRITE
                self._channels[channel._fd] = channel
                self._connecting.add(channel)
                self._poller.register(channel._fd, WRITE)
                return
            sock.close()
            failure = os.strerror(code) if code > 0 else failure
        self._events.append(ChannelEvent(EventKind.CLOSED, channel, reason=failure))

    def _finish_connect(self, channel: Channel) -> None:
        assert channel._sock is not None, channel
        code = channel._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._drop_socket(channel)
            self._try_next_address(channel, os.strerror(code))
        elif self._tls is not None:
            channel._tls = self._tls.stream(channel.host)
            self._shake_hands(channel, WRITE)
        else:
            self._open(channel)

    def _shake_hands(self, channel: Channel, mask: int) -> None:
        """Go on with the TLS handshake, after what the poll said about the socket."""
        sock, tls = channel._sock, channel._tls
        assert sock is not None, channel
        assert tls is not None, channel
        try:
            if mask & ~WRITE:
                data = sock.recv(_TLS_READ_SIZE)
                if not data:
                    self._closed(channel, tls.end_reason)
                    return
                tls.feed(data)
            is_done = tls.handshake()
            if answer := tls.outgoing():
                channel._queue.send(sock, [answer])
            else:
                channel._queue.flush(sock)
        except BlockingIOError:
            return
        except OSError as error:
            tls.say_goodbye(sock)
            self._broke(channel, error)
            return
        if is_done:
            self._open(channel)
        if channel._sock is not None:
            self._set_mask(channel, READ | WRITE if channel._queue.size else READ)

    def _open(self, channel: Channel) -> None:
        """The channel is connected; what waited for that is sent."""
        self._connecting.discard(channel)
        channel._is_connected = True
        channel._addresses.clear()
        self._events.append(ChannelEvent(EventKind.CONNECTED, channel))
        waiting, channel._waiting = channel._waiting, []
        self._set_mask(channel, READ)
        if waiting:
            self.send(channel, waiting)

    def _until_connect_deadline(self, timeout: float | None) -> float:
        left = min(channel._deadline for channel in self._connecting) - self._clock()
        return max(left, 0.0) if timeout is None else max(min(timeout, left), 0.0)

    def _expire_connects(self) -> None:
        now = self._clock()
        for channel in [each for each in self._connecting if each._deadline <= now]:
            what = "no answer" if channel._tls is None else "no answer to the TLS handshake"
            self._drop_socket(channel)
            self._try_next_address(channel, f"{what} in {channel._timeout_s:g} s")

    def _write(self, channel: Channel) -> None:
        assert channel._sock is not None, channel
        try:
            if channel._queue.flush(channel._sock):
                self._set_mask(channel, READ)
        except OSError as error:
            self._broke(channel, error)

    def _read(self, channel: Channel) -> None:
        assert channel._sock is not None, channel
        try:
            frames = self._receive(channel, channel._sock)
        except BlockingIOError:
            return
        except OSError as error:
            self._broke(channel, error)
            return
        except InvalidFrameSize as error:
            self._closed(channel, str(error))
            return
        if frames is None:
            tls = channel._tls
            self._closed(channel, "closed by the peer" if tls is None else tls.end_reason)
            return
        if frames:
            channel._reader.size_max = self._frame_size_max
        self._events += [ChannelEvent(EventKind.FRAME, channel, frame=frame) for frame in frames]

    def _receive(self, channel: Channel, sock: socket.socket) -> list[memoryview] | None:
        """The frames that what has arrived completes; None when the peer has closed."""
        tls = channel._tls
        if tls is None:
            count = sock.recv_into(channel._reader.free_space())
            return channel._reader.received(count) if count else None
        data = sock.recv(_TLS_READ_SIZE)
        frames = tls.decrypt(data, channel._reader) if data else None
        if (answer := tls.outgoing()) and not channel._queue.send(sock, [answer]):
            self._set_mask(channel, READ | WRITE)
        return frames

    def _set_mask(self, channel: Channel, mask: int) -> None:
        if channel._mask != mask:
            channel._mask = mask
            self._poller.modify(channel._fd, mask)

    def _broke(self, channel: Channel, error: OSError) -> None:
        tls, reason = channel._tls, _reason(error)
        if tls is None:
            self._closed(channel, reason)
            return
        from wire.net.tls import TlsRefused

        if isinstance(error, ConnectionError):
            reason = tls.end_reason if not tls.has_heard else reason
        self._closed(channel, reason, is_refused=isinstance(error, TlsRefused))

    def _closed(self, channel: Channel, reason: str, *, is_refused: bool = False) -> None:
        self._drop(channel)
        self._events.append(
            ChannelEvent(EventKind.CLOSED, channel, reason=reason, is_refused=is_refused)
        )

    def _drop(self, channel: Channel) -> None:
        if channel._sock is not None:
            self._drop_socket(channel)
        channel._waiting.clear()
        channel._addresses.clear()
        channel._queue.clear()

    def _drop_socket(self, channel: Channel) -> None:
        assert channel._sock is not None, channel
        self._connecting.discard(channel)
        channel._is_connected = False
        if channel._address is not None:
            self._left[channel.host, channel.port] = channel._address
        # Forgotten first: if a KeyboardInterrupt comes on the way, this must not be done again
        # when another socket has the descriptor.
        sock, fd = channel._sock, channel._fd
        channel._sock, channel._fd, channel._tls = None, -1, None
        with suppress(OSError, KeyError):  # it was interrupted before it was registered
            self._poller.unregister(fd)
        self._channels.pop(fd, None)
        sock.close()
        channel._queue.clear()


_open: WeakSet[SocketChannels] = WeakSet()


def _begin_again_after_fork() -> None:
    for channels in list(_open):
        channels.begin_again()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again_after_fork)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
