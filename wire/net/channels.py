"""A client's connections: many non-blocking sockets that send and receive whole frames.

    channels = SocketChannels()
    channel = channels.connect("localhost", 9092)
    channels.send(channel, buffers)            # the bytes of whole frames, sizes included
    for event in channels.poll(1_000): ...     # connected, frame or closed

One thread at a time may use a `SocketChannels`, except that any thread may call `wake`. Only `poll`
blocks, and `connect` while it resolves a host name.
"""

from __future__ import annotations

import os
import socket
from weakref import WeakSet

from wire.framing import InvalidFrameSize
from wire.net.channel import Channel, ChannelEvent, ChannelSockets, EventKind
from wire.net.clock import monotonic
from wire.net.connecting import TLS_READ_SIZE, ConnectFailed, Connecting, error_text
from wire.net.poller import READ, WRITE, Waker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wire.net.poller import Poller
    from wire.net.tls import TlsClient


FIRST_FRAME_SIZE_MAX = 16 << 20
"""A larger first frame closes the channel. If the peer speaks TLS, its first bytes look like the
size of a frame of 350 MB, and the channel would wait for that frame's end."""


class SocketChannels:
    """A set of client connections, polled together.

    A frame larger than `frame_size_max` closes its channel, so that a peer cannot use more memory.
    `connect_timeout_ms` is the time for each address of a host, TLS handshake included; `connect`
    may give another. The buffer sizes are set on the sockets; -1 keeps the system's default. With
    `tls` a channel counts as connected after the handshake.
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
        # Keepalive detects a peer that vanished while nothing is sent.
        options = {socket.SO_KEEPALIVE: 1}
        if send_buffer_size >= 0:
            options[socket.SO_SNDBUF] = send_buffer_size
        if receive_buffer_size >= 0:
            options[socket.SO_RCVBUF] = receive_buffer_size
        self._sockets = ChannelSockets(poller)
        self._connecting = Connecting(self._sockets, options=options, tls=tls, clock=clock)
        self._waker = Waker()
        self._sockets.poller.register(self._waker.fd, READ)
        self._events: list[ChannelEvent] = []
        self.is_waiting = False
        """True while `poll` waits. If still True after an interrupt of `poll`, the interrupt came
        during the wait, before any bytes were moved."""
        _open.add(self)

    def connect(self, host: str, port: int, *, timeout_ms: int | None = None) -> Channel:
        """Begin to connect. A CONNECTED or CLOSED event follows, even if `host` cannot be resolved.

        The channel tries each address of `host` in turn. It begins after the address
        whose connection (to this host and port) ended last.
        """
        timeout_s = self._connect_timeout_s if timeout_ms is None else timeout_ms / 1_000
        first_size_max = min(self._frame_size_max, FIRST_FRAME_SIZE_MAX)
        channel = Channel(host, port, first_size_max, timeout_s)
        try:
            self._connecting.begin(channel)
        except ConnectFailed as failure:
            self._closed(channel, failure.reason)
        return channel

    def send(self, channel: Channel, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        """Write as many bytes as the socket takes at once, and the rest during `poll`.

        The buffers are not copied: they must not change until they are written. Before the channel
        is connected they wait. A closed channel drops them; its CLOSED event gives the reason.
        """
        if channel.sock is None:
            return
        if not channel.is_connected:
            channel.waiting.extend(buffers)
            return
        try:
            if channel.tls is not None:
                buffers = channel.tls.encrypt(buffers)
            if not channel.queue.send(channel.sock, buffers):
                self._sockets.wait_for(channel, READ | WRITE)
        except OSError as error:
            self._broke(channel, error)

    def poll(self, timeout_ms: int | None) -> list[ChannelEvent]:
        """Return the events; wait at most `timeout_ms` for the first one (None: no limit).

        After `wake`, or if bytes were moved, the wait ends early, perhaps without an event. The
        frames of a channel come in order, and a CLOSED event is the last event of its channel.
        """
        timeout = 0.0 if self._events else None if timeout_ms is None else timeout_ms / 1_000
        connecting, sockets = self._connecting, self._sockets
        if not connecting.is_idle:
            left = connecting.seconds_left()
            timeout = max(left if timeout is None else min(timeout, left), 0.0)
        self.is_waiting = True
        ready = sockets.poller.poll(timeout)
        self.is_waiting = False
        for fd, mask in ready:
            channel = sockets.by_fd.get(fd)
            if channel is None:
                if fd == self._waker.fd:
                    self._waker.clear()
            elif channel.is_connected:
                # Treat an error or hang-up as both READ and WRITE: the call on the socket then
                # raises the error.
                if mask & ~READ:
                    self._write(channel)
                if mask & ~WRITE and channel.sock is not None:
                    self._read(channel)
            else:
                self._go_on_connecting(channel, mask)
        if not connecting.is_idle:
            for channel, reason in connecting.expire():
                self._closed(channel, reason)
        events, self._events = self._events, []
        return events

    def close(self, channel: Channel) -> None:
        """Close a channel at once, and drop its events that were not polled."""
        self._drop(channel)
        self._events = [event for event in self._events if event.channel is not channel]

    def close_all(self) -> None:
        """Close every channel, the waker and the poller. No other call may follow."""
        for channel in list(self._sockets.by_fd.values()):
            self.close(channel)
        self._events.clear()
        self._waker.close()
        self._sockets.poller.close()
        _open.discard(self)

    def begin_again(self) -> None:
        """In a forked child: end every channel; the parent keeps its sockets and its poller."""
        for channel in self._sockets.abandon():
            self._closed(channel, "forked")
        self._waker.abandon()
        self._waker = Waker()
        self._sockets.poller.register(self._waker.fd, READ)

    def wake(self) -> None:
        """Make the current or next `poll` return. Any thread may call it."""
        self._waker.wake()

    def _go_on_connecting(self, channel: Channel, mask: int) -> None:
        try:
            is_connected = self._connecting.go_on(channel, mask)
        except ConnectFailed as failure:
            if failure.cause is None:
                self._closed(channel, failure.reason)
            else:
                self._broke(channel, failure.cause)
            return
        if is_connected:
            channel.is_connected = True
            self._events.append(ChannelEvent(EventKind.CONNECTED, channel))
            waiting, channel.waiting = channel.waiting, []
            self._sockets.wait_for(channel, READ | WRITE if channel.queue.size else READ)
            if waiting:
                self.send(channel, waiting)

    def _write(self, channel: Channel) -> None:
        assert channel.sock is not None, channel
        try:
            if channel.queue.flush(channel.sock):
                self._sockets.wait_for(channel, READ)
        except OSError as error:
            self._broke(channel, error)

    def _read(self, channel: Channel) -> None:
        assert channel.sock is not None, channel
        try:
            frames = self._receive(channel, channel.sock)
        except BlockingIOError:
            return
        except OSError as error:
            self._broke(channel, error)
            return
        except InvalidFrameSize as error:
            self._closed(channel, str(error))
            return
        if frames is None:
            tls = channel.tls
            self._closed(channel, "closed by the peer" if tls is None else tls.end_reason)
            return
        if frames:
            channel.reader.size_max = self._frame_size_max
        self._events += [ChannelEvent(EventKind.FRAME, channel, frame=frame) for frame in frames]

    def _receive(self, channel: Channel, sock: socket.socket) -> list[memoryview] | None:
        """Read from the socket; return the completed frames, or None if the peer has closed."""
        tls = channel.tls
        if tls is None:
            count = sock.recv_into(channel.reader.free_space())
            return channel.reader.received(count) if count else None
        data = sock.recv(TLS_READ_SIZE)
        frames = tls.decrypt(data, channel.reader) if data else None
        if (answer := tls.outgoing()) and not channel.queue.send(sock, [answer]):
            self._sockets.wait_for(channel, READ | WRITE)
        return frames

    def _broke(self, channel: Channel, error: OSError) -> None:
        tls, reason = channel.tls, error_text(error)
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
        self._connecting.forget(channel)
        self._sockets.take(channel)
        channel.waiting.clear()
        channel.queue.clear()


_open: WeakSet[SocketChannels] = WeakSet()


def _begin_again_after_fork() -> None:
    for channels in list(_open):
        channels.begin_again()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again_after_fork)
