"""`Connecting` sets up a client's connections: the addresses of a host in turn, then TLS."""

from __future__ import annotations

import os
import socket
from errno import EINPROGRESS, EWOULDBLOCK

from wire.net.poller import READ, WRITE
from wire.net.resolver import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wire.net.channel import Channel, ChannelSockets
    from wire.net.resolver import Address
    from wire.net.tls import TlsClient

TLS_READ_SIZE = 64 * 1024


class ConnectFailed(Exception):
    """No address of the host accepts a connection; `cause` is the error of the system or TLS."""

    def __init__(self, reason: str, cause: OSError | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.cause = cause


class Connecting:
    """Sets up connections. Requires: the thread that uses the channels."""

    def __init__(
        self,
        sockets: ChannelSockets,
        *,
        options: Mapping[int, int],
        tls: TlsClient | None,
        clock: Callable[[], float],
    ) -> None:
        """`options` are set on every socket, at level `SOL_SOCKET`."""
        self._sockets = sockets
        self._options = options
        self._tls = tls
        self._clock = clock
        self._under_way: set[Channel] = set()

    @property
    def is_idle(self) -> bool:
        return not self._under_way

    def begin(self, channel: Channel) -> None:
        """Try the addresses of the channel's host.

        Raises:
            ConnectFailed: the host cannot be resolved, or all its addresses fail at once.
        """
        try:
            channel.addresses = self._in_turn(channel.host, channel.port)
        except OSError as error:
            reason = f"cannot resolve {channel.host!r}: {error.strerror or error}"
            raise ConnectFailed(reason) from None
        self._try_next_address(channel, "no address")

    def go_on(self, channel: Channel, mask: int) -> bool:
        """Continue the setup after an event of the socket; return whether the channel is connected.

        Raises:
            ConnectFailed: no address is left, or TLS failed.
        """
        sock = channel.sock
        assert sock is not None, channel
        if channel.tls is None:
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self._sockets.take(channel)
                self._try_next_address(channel, os.strerror(code))
                return False
            if self._tls is not None:
                channel.tls = self._tls.stream(channel.host)
                mask = WRITE
        if channel.tls is not None and not self._shake_hands(channel, sock, mask):
            return False
        self._under_way.discard(channel)
        channel.addresses.clear()
        return True

    def forget(self, channel: Channel) -> None:
        """Stop setting up a channel that has ended."""
        self._under_way.discard(channel)
        channel.addresses.clear()

    def seconds_left(self) -> float:
        """Return the seconds until the first deadline, negative after it. Requires: not idle."""
        return min(channel.deadline for channel in self._under_way) - self._clock()

    def expire(self) -> list[tuple[Channel, str]]:
        """Try the next address of each channel past its deadline.

        Return the channels that have no address left, with reasons.
        """
        now = self._clock()
        failed = []
        for channel in [each for each in self._under_way if each.deadline <= now]:
            what = "no answer" if channel.tls is None else "no answer to the TLS handshake"
            self._sockets.take(channel)
            try:
                self._try_next_address(channel, f"{what} in {channel.timeout_s:g} s")
            except ConnectFailed as failure:
                failed.append((channel, failure.reason))
        return failed

    def _in_turn(self, host: str, port: int) -> list[Address]:
        """Return the host's addresses, beginning after the one whose connection ended last."""
        addresses = resolve(host, port)
        last = self._sockets.left.get((host, port))
        if last not in addresses:
            return addresses
        first = addresses.index(last) + 1
        return addresses[first:] + addresses[:first]

    def _try_next_address(self, channel: Channel, failure: str) -> None:
        """Start connecting to the next address.

        Raises:
            ConnectFailed: no address is left; the reason is the last failure.
        """
        self._under_way.discard(channel)
        while channel.addresses:
            channel.address = family, address = channel.addresses.pop(0)
            try:
                sock = socket.socket(family, socket.SOCK_STREAM)
            except OSError as error:
                failure = error_text(error)
                continue
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for option, value in self._options.items():
                sock.setsockopt(socket.SOL_SOCKET, option, value)
            try:
                code = sock.connect_ex(address)
            except OSError as error:  # a port out of range raises OverflowError: the caller's bug
                code, failure = error.errno or -1, error_text(error)
            if code in {0, EINPROGRESS, EWOULDBLOCK}:
                channel.deadline = self._clock() + channel.timeout_s
                self._under_way.add(channel)
                self._sockets.give(channel, sock, WRITE)
                return
            sock.close()
            failure = os.strerror(code) if code > 0 else failure
        raise ConnectFailed(failure)

    def _shake_hands(self, channel: Channel, sock: socket.socket, mask: int) -> bool:
        """Continue the TLS handshake after a poll reported `mask`; return whether it is done."""
        tls = channel.tls
        assert tls is not None, channel
        try:
            if mask & ~WRITE:
                data = sock.recv(TLS_READ_SIZE)
                if not data:
                    raise ConnectFailed(tls.end_reason)
                tls.feed(data)
            is_done = tls.handshake()
            if answer := tls.outgoing():
                channel.queue.send(sock, [answer])
            else:
                channel.queue.flush(sock)
        except BlockingIOError:
            return False
        except OSError as error:
            tls.say_goodbye(sock)
            raise ConnectFailed(error_text(error), error) from None
        self._sockets.wait_for(channel, READ | WRITE if channel.queue.size else READ)
        return is_done


def error_text(error: OSError) -> str:
    """Return the system's message of an error, one line."""
    return error.strerror or str(error)
