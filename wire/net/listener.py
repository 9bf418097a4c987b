"""The server side: a loop that waits for sockets and gives whole frames to a service.

One thread runs it, whichever calls `run`. All frames of a wake-up are handled, then `turn` of the
service is called once, then answers that came from elsewhere are written. Between events it
sleeps without a timeout unless the service or a deadline asks for one: an idle listener costs
nothing.

    listener = Listener(service, "127.0.0.1", 9092)
    print("listening on", listener.address)
    listener.run()                      # until listener.stop(), from any thread or signal handler
"""

from __future__ import annotations

import os
import socket
from _thread import get_ident
from collections import deque
from errno import EMFILE, ENFILE, ENOBUFS, ENOMEM

from wire.net.clock import monotonic
from wire.net.connection import RECEIVE_SIZE, Connection
from wire.net.limits import ListenerLimits
from wire.net.poller import READ, WRITE, Waker, make_poller
from wire.net.reports import Reports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from wire.net.poller import Poller

    class Service(Protocol):
        """What a listener serves. All calls come from the loop's thread."""

        def connected(self, connection: Connection) -> None:
            """A peer has connected. The place to set `connection.state`."""

        def handle(
            self, connection: Connection, frame: bytes | memoryview
        ) -> Sequence[bytes | bytearray | memoryview] | None:
            """Answer one frame (given without its size) with buffers that include the size.

            An empty sequence means that there is no answer. None parks the connection until
            `connection.respond`; then the frame's bytes are the service's for good, otherwise
            they are only lent until this returns.
            """

        def disconnected(self, connection: Connection) -> None:
            """The connection has ended, by either side. Nothing can be sent any more."""

        def turn(self) -> int | None:
            """Do what is due. Returns the ms until something is due again, None for never."""


_ACCEPT_COUNT_MAX = 64
_BACKLOG = 1024
_OUT_OF_RESOURCES = frozenset({EMFILE, ENFILE, ENOBUFS, ENOMEM})
_SWEEP_S = 1.0
_QUICK_SIZE_MAX = 8 * 1024
_NEVER = float("inf")


class RemoteAddress(ValueError):
    """An address that other machines can reach, where only this one was meant to."""


class Listener:
    """Listens on one address and serves every connection in one thread.

    `host` may be a name; the first IPv4 address it resolves to is taken, else the first address.
    Port 0 takes a free one. `address` is the (host, port) in use.

    Raises:
        OSError: the address cannot be listened on.
        RemoteAddress: it is not of this machine alone, and `allow_remote` is False.
    """

    def __init__(
        self,
        service: Service,
        host: str,
        port: int,
        *,
        limits: ListenerLimits | None = None,
        allow_remote: bool = False,
        reports: Reports | None = None,
        poller: Poller | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.limits = limits if limits is not None else ListenerLimits()
        self._service = service
        self._clock = clock
        self.reports = reports if reports is not None else Reports()
        self._sock = _listening_socket(host, port, allow_remote=allow_remote)
        name = self._sock.getsockname()
        self.address: tuple[str, int] = (name[0], name[1])
        self._connections: dict[int, Connection] = {}
        self._address_counts: dict[str, int] = {}
        self.late: deque[tuple[Connection, Callable[..., None], object]] = deque()
        self._thread = 0
        """The one that runs the loop."""
        self._is_waiting = False
        self._is_stopping = False
        self._has_news = False
        self._sweep_at = _NEVER
        self._accept_again_at = _NEVER
        self._accept_second = 0
        self._accepted_count = 0
        self._unwritten_size = 0
        self._favourite: Connection | None = None
        """Has room for whatever it sends."""
        self._waker = Waker()
        # What the connections share; see `peer`.
        self.handle = service.handle
        self.now = clock()
        self.receive_view = memoryview(bytearray(RECEIVE_SIZE))
        self.quick_size_max = min(_QUICK_SIZE_MAX, self.limits.request_size_max)
        self.receive_size = 0
        self.starved: list[Connection] = []
        self.poller = poller if poller is not None else make_poller()
        self.poller.register(self._sock.fileno(), READ)
        self.poller.register(self._waker.fd, READ)

    @property
    def connection_count(self) -> int:
        """Connections that are open."""
        return len(self._connections)

    def run(self) -> None:
        """Serve until `stop`, then close every connection and the address."""
        _running.add(self)
        self._thread = get_ident()
        try:
            self._run()
        finally:
            self._thread = 0
            self.close()

    def stop(self) -> None:
        """Make `run` return soon. From any thread, or a signal handler."""
        self._is_stopping = True
        self.wake()

    def wake(self) -> None:
        """Make the loop call `turn` soon. From any thread."""
        self._has_news = True
        if self._is_waiting:
            self._waker.wake()

    @property
    def signal_fd(self) -> int:
        """For `signal.set_wakeup_fd`, where a signal does not end a wait by itself (Windows)."""
        return self._waker.signal_fd

    def close(self) -> None:
        """Close everything. For a listener that does not run; again is allowed."""
        if self._sock.fileno() < 0:
            return
        _running.discard(self)
        self._sock.close()
        for connection in list(self._connections.values()):
            self.drop(connection)
        self.late.clear()
        self._waker.close()
        self.poller.close()

    def abandon(self) -> None:
        """Close this process's descriptors, and nothing else: the parent goes on with its own.

        Without it a forked child would keep the address taken, and connections half open, after
        its parent has closed them.
        """
        self._sock.close()
        for connection in self._connections.values():
            connection.abandon()
        self._connections.clear()
        self.late.clear()
        self._waker.abandon()
        self.poller.close()

    def post(self, connection: Connection, action: Callable[..., None], value: object) -> None:
        """Call `action(connection, value)` on the loop's thread. From any thread."""
        self.late.append((connection, action, value))
        if self._is_waiting:
            self._waker.wake()

    def drop(self, connection: Connection) -> None:
        """Close a connection at once. Requires: the loop's thread. Again is allowed."""
        if not connection.is_open:
            return
        self.poller.unregister(connection.fd)
        del self._connections[connection.fd]
        host = connection.peer_host
        self.reports.disconnected(connection)
        self._address_counts[host] -= 1
        if not self._address_counts[host]:
            del self._address_counts[host]
        connection.forget()
        try:
            self._service.disconnected(connection)
        except Exception as error:  # a service's bug must not end the loop
            self.reports.failed("a service failed on a disconnect", error)

    def sweep_by(self, deadline: float) -> None:
        """Have deadlines looked at when this one has passed, or sooner."""
        self._sweep_at = min(self._sweep_at, deadline)

    def renew_receive_view(self) -> None:
        """The shared buffer was given away with a parked request: take another."""
        self.receive_view = memoryview(bytearray(RECEIVE_SIZE))

    def starve(self, connection: Connection) -> None:
        """Let a connection wait until there is room for its frame."""
        self.starved.append(connection)
        # Those that have the room must make progress now.
        self.sweep_by(self.now)

    def has_room_for(self, connection: Connection, capacity: int, *, instead_of: int = 0) -> bool:
        """May `connection` take a buffer of `capacity` for a large frame?

        `instead_of`: the size of the buffer that it replaces.
        """
        held = instead_of if instead_of > RECEIVE_SIZE else 0
        if self._has_room_for(connection, capacity - held):
            return True
        for other in self._connections.values():
            other.trim(now=_NEVER)
        return self._has_room_for(connection, capacity - held)

    def _has_room_for(self, connection: Connection, more: int) -> bool:
        return (
            more <= RECEIVE_SIZE
            or self.receive_size + more <= self.limits.receive_size_max
            or connection is self._favourite
        )

    def count_buffer(self, capacity: int) -> None:
        """A connection took a buffer of its own, or gave one back (negative)."""
        if abs(capacity) > RECEIVE_SIZE:
            self.receive_size += capacity

    def done_with(self, connection: Connection) -> None:
        """A frame of the connection's has come, been handled, and holds no bytes any more."""
        if connection is self._favourite:
            self._favourite = None

    def count_unwritten(self, difference: int) -> None:
        """More or fewer bytes wait for peers; too many, and the slowest peer has to go."""
        self._unwritten_size += difference
        if difference > 0 and self._unwritten_size > self.limits.response_size_max:
            slowest = min(self._connections.values(), key=Connection.stalled_at)
            self.reports.cut_off(slowest, "unread", "too many bytes of answers are not read")
            self.post(slowest, Connection.end, None)

    def _run(self) -> None:
        poll, connection_of = self.poller.poll, self._connections.get
        timeout: float | None = 0.0
        while not self._is_stopping:
            # Set before looking: whoever brings news later sees it, and wakes the poll.
            self._is_waiting = True
            if self._has_news or self.late:
                timeout = 0.0
            ready = poll(timeout)
            self._is_waiting = False
            self.now = self._clock()
            has_newcomers = False
            for fd, mask in ready:
                connection = connection_of(fd)
                try:
                    if connection is None:
                        has_newcomers |= self._see_to(fd)
                    elif mask == READ:
                        connection.receive()
                    elif mask == WRITE:
                        connection.write()
                    else:
                        connection.hang_up(mask)
                except Exception as error:  # the top of the thread: no peer may end the loop
                    self._failed(connection, error)
            if has_newcomers:
                # After the rest: a new connection may get the descriptor of one dropped just now,
                # and must not be given what was reported of that one.
                self._accept()
            timeout = self._finish_turn()
        # Answers that were given before the end are still written, as far as peers take them.
        self.take_late()

    def _see_to(self, fd: int) -> bool:
        """Something that is no connection is ready (or was one, dropped a moment ago).

        True when somebody wants to connect.
        """
        if fd == self._waker.fd:
            self._waker.clear()
        return fd == self._sock.fileno()

    def _finish_turn(self) -> float | None:
        """Let the service work, write late answers, look at deadlines. Returns the timeout."""
        while True:
            self._has_news = False
            if self.late:
                self.take_late()
            try:
                delay_ms = self._service.turn()
            except Exception as error:  # as in `_run`; and a failing turn must not spin
                self.reports.failed("a service failed in its turn", error)
                delay_ms = 1_000
            if not self.late:
                break
        if self.starved:
            self._feed_starved()
        timeout = None if delay_ms is None else delay_ms / 1_000
        if self._sweep_at != _NEVER:
            if self._sweep_at <= self.now:
                self._sweep()
            left = max(self._sweep_at - self.now, 0.0)
            timeout = left if timeout is None else min(timeout, left)
        return timeout if timeout != _NEVER else None

    def take_late(self) -> None:
        """Do what was posted. Requires: the loop's thread."""
        late = self.late
        while late:
            connection, action, value = late.popleft()
            if connection.is_open:
                self.attempt(connection, action, value)

    def attempt(self, connection: Connection, action: Callable[..., None], value: object) -> None:
        """Call `action(connection, value)`; if that fails only this connection ends."""
        try:
            action(connection, value)
        except Exception as error:  # as in `_run`
            self._failed(connection, error)

    @property
    def is_this_thread(self) -> bool:
        """Is the caller the thread that runs the loop?"""
        return self._thread == get_ident()

    def _failed(self, connection: Connection | None, error: Exception) -> None:
        """End the connection, and report what was not just the peer's leaving."""
        if connection is None:
            self.reports.failed("the listener's own descriptors failed", error)
        else:
            if not isinstance(error, ConnectionError | TimeoutError):
                self.reports.failed(f"connection from {connection.peer_host} failed", error)
            self.drop(connection)

    def _accept(self) -> None:
        """Take in the connections that wait."""
        try:
            self._accept_all()
        except Exception as error:  # as in `_run`
            self.reports.failed("accepting connections failed", error)

    def _accept_all(self) -> None:
        for _ in range(_ACCEPT_COUNT_MAX):
            if self._accept_again_at != _NEVER:
                return
            try:
                sock, peer = self._sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                # Without descriptors the connection stays ready, and asking again would spin.
                if error.errno in _OUT_OF_RESOURCES:
                    self.reports.short_of(error)
                    self._pause_accepting(_SWEEP_S)
                return
            if not self._is_welcome(peer[0]):
                sock.close()
                continue
            try:
                self._open(sock, peer)
            except OSError:
                sock.close()  # the peer has gone already

    def _open(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection = Connection(self, sock, peer)
        self._connections[connection.fd] = connection
        self.reports.connected(connection)
        self._address_counts[peer[0]] = self._address_counts.get(peer[0], 0) + 1
        self.poller.register(connection.fd, READ)
        self.sweep_by(connection.deadline())
        try:
            self._service.connected(connection)
        except Exception as error:  # as in `_run`
            self._failed(connection, error)

    def _is_welcome(self, host: str) -> bool:
        """May one more peer from `host` come in? Counts it for the rate if so."""
        limits = self.limits
        if len(self._connections) >= limits.connection_count_max:
            self.reports.not_welcome(host, f"max.connections={limits.connection_count_max}")
            return False
        if is_loopback(host) and not limits.limit_loopback:
            return True
        if self._address_counts.get(host, 0) >= limits.address_connection_count_max:
            limit = limits.address_connection_count_max
            self.reports.not_welcome(host, f"max.connections.per.ip={limit}")
            return False
        second = int(self.now)
        if second != self._accept_second:
            self._accept_second, self._accepted_count = second, 0
        self._accepted_count += 1
        if self._accepted_count >= limits.accept_rate_max:
            self._pause_accepting(second + 1 - self.now)
        return True

    def _pause_accepting(self, seconds: float) -> None:
        self.poller.modify(self._sock.fileno(), 0)
        self._accept_again_at = self.now + seconds
        self.sweep_by(self._accept_again_at)

    def _sweep(self) -> None:
        """Close what is past its deadline, and find the next one."""
        now = self.now
        if self._accept_again_at <= now:
            self._accept_again_at = _NEVER
            self.poller.modify(self._sock.fileno(), READ)
        next_at = self._accept_again_at
        # A connection without a deadline gets one again when its request is answered.
        latest = now + self.limits.idle_ms / 1_000
        for connection in list(self._connections.values()):
            deadline = connection.deadline()
            if deadline <= now:
                connection.say_why_late()
                self.drop(connection)
            else:
                connection.trim(now=now)
                next_at = min(next_at, deadline, latest)
        # Coarse: deadlines that fall into the same second share a wake-up.
        self._sweep_at = max(next_at, now + _SWEEP_S)

    def _feed_starved(self) -> None:
        # Who misses least comes first. When frames that take the room wait for each other, that one
        # may go on without room; no other may until it is done with.
        for connection in sorted(self.starved, key=Connection.missing_size):
            if connection.is_open and not connection.feed():
                if self._favourite is not None or not self._misses_least(connection):
                    return
                self._favourite = connection
                connection.feed()
            self.starved.remove(connection)

    def _misses_least(self, connection: Connection) -> bool:
        size = connection.missing_size()
        return all(other.missing_size() >= size for other in self._connections.values())


_running: set[Listener] = set()


def _abandon_all() -> None:
    for listener in list(_running):
        listener.abandon()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)


def is_loopback(host: str) -> bool:
    """Is this numeric address one of the machine itself?"""
    return host.startswith(("127.", "::ffff:127.")) or host == "::1"


def _listening_socket(host: str, port: int, *, allow_remote: bool) -> socket.socket:
    # As bytes: for text Python loads its tables of international names, which takes 1 MB and 3 ms.
    name = (host.encode() if host.isascii() else host) or None
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    if not allow_remote and not is_loopback(str(address[0])):
        raise RemoteAddress(str(address[0]))
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        # On Windows SO_REUSEADDR would let another program take the address over.
        option = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
        sock.setsockopt(socket.SOL_SOCKET, option, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock
