"""`Acceptor`: the listening socket, and the limits on new connections."""

from __future__ import annotations

import socket
from errno import EMFILE, ENFILE, ENOBUFS, ENOMEM

from wire.net.poller import READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from wire.net.limits import ListenerLimits
    from wire.net.loop import Loop
    from wire.net.reports import Reports

    Admit = Callable[[socket.socket, tuple[str, int]], None]

_ACCEPT_COUNT_MAX = 64
_BACKLOG = 1024
_OUT_OF_RESOURCES = frozenset({EMFILE, ENFILE, ENOBUFS, ENOMEM})
_PAUSE_S = 1.0
_NEVER = float("inf")


class RemoteAddress(ValueError):
    """The address is reachable from other machines, but only a loopback address is allowed."""


class Acceptor:
    """Accepts connections within the limits. Requires: the loop's thread."""

    def __init__(
        self, sock: socket.socket, loop: Loop, limits: ListenerLimits, reports: Reports
    ) -> None:
        """Take ownership of `sock`, a socket from `listening_socket`."""
        self._sock = sock
        self.fd = sock.fileno()
        self.connection_count = 0
        """Number of open connections."""
        self.again_at = _NEVER
        """Time at which a pause in accepting ends; infinity if there is no pause."""
        self._loop = loop
        self._limits = limits
        self._reports = reports
        self._counts: dict[str, int] = {}
        self._second = 0
        self._accepted_count = 0
        loop.poller.register(self.fd, READ)

    @property
    def is_open(self) -> bool:
        return self._sock.fileno() >= 0

    def accept(self, admit: Admit) -> None:
        """Accept waiting connections; call `admit(socket, address)` for each within the limits."""
        for _ in range(_ACCEPT_COUNT_MAX):
            if self.again_at != _NEVER:
                return
            try:
                sock, peer = self._sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                # Without descriptors or memory the connection stays in the queue, and the next poll
                # reports it again: pause, instead of a busy loop.
                if error.errno in _OUT_OF_RESOURCES:
                    self._reports.short_of(error)
                    self._pause(_PAUSE_S)
                return
            if not self._is_welcome(peer[0]):
                sock.close()
                continue
            try:
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                admit(sock, peer)
            except OSError:
                sock.close()  # for example, the peer has already closed the connection

    def entered(self, host: str) -> None:
        """Count a connection from `host` that was opened."""
        self.connection_count += 1
        self._counts[host] = self._counts.get(host, 0) + 1

    def left(self, host: str) -> None:
        """Count a connection from `host` that has ended."""
        self.connection_count -= 1
        self._counts[host] -= 1
        if not self._counts[host]:
            del self._counts[host]

    def resume(self) -> None:
        """End a pause in accepting if its time has passed."""
        if self.again_at <= self._loop.now:
            self.again_at = _NEVER
            self._loop.poller.modify(self.fd, READ)

    def close(self) -> None:
        self._sock.close()

    def _is_welcome(self, host: str) -> bool:
        """Return whether the limits allow another connection from `host`.

        Log a refusal. Count the connection in the accept rate, if that applies to `host`.
        """
        limits, now = self._limits, self._loop.now
        if self.connection_count >= limits.connection_count_max:
            self._reports.not_welcome(host, f"max.connections={limits.connection_count_max}")
            return False
        if is_loopback(host) and not limits.limit_loopback:
            return True
        if self._counts.get(host, 0) >= limits.address_connection_count_max:
            limit = limits.address_connection_count_max
            self._reports.not_welcome(host, f"max.connections.per.ip={limit}")
            return False
        second = int(now)
        if second != self._second:
            self._second, self._accepted_count = second, 0
        self._accepted_count += 1
        if self._accepted_count >= limits.accept_rate_max:
            self._pause(second + 1 - now)
        return True

    def _pause(self, seconds: float) -> None:
        self._loop.poller.modify(self.fd, 0)
        self.again_at = self._loop.now + seconds


def is_loopback(host: str) -> bool:
    """Return whether this numeric address is a loopback address."""
    return host.startswith(("127.", "::ffff:127.")) or host == "::1"


def listening_socket(host: str, port: int, *, allow_remote: bool) -> socket.socket:
    """Return a listening socket. If `host` is a name, prefer its first IPv4 address.

    Raises:
        OSError: the system cannot listen on the address.
        RemoteAddress: the address is no loopback address, and `allow_remote` is False.
    """
    # Pass the name as bytes: for text Python loads its tables of international names, which takes
    # 1 MB and 3 ms.
    name = (host.encode() if host.isascii() else host) or None
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    if not allow_remote and not is_loopback(str(address[0])):
        raise RemoteAddress(str(address[0]))
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        # On Windows SO_REUSEADDR would let another program take over the address.
        option = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
        sock.setsockopt(socket.SOL_SOCKET, option, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock
