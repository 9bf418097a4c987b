"""The server side: a loop that waits for sockets and gives whole frames to a service.

One thread runs it, whichever calls `run`. All frames of a wake-up are handled, then `turn` of the
service is called once, then answers that came from elsewhere are written. Between events it
sleeps without a timeout unless the service or a deadline asks for one: an idle listener costs
nothing.

    listener = Listener(service, "127.0.0.1", 9092)
    print("listening on", listener.address)
    listener.run()                      # until listener.stop(), from any thread or signal handler

Its parts: `Loop` waits, `Acceptor` lets peers in, each `Connection` reads, has its frames handled
and writes; what all of them hold together is bounded by `ReceiveMemory` and `UnreadAnswers`.
"""

from __future__ import annotations

import os

from wire.net.acceptor import Acceptor, listening_socket
from wire.net.clock import monotonic
from wire.net.connection import Connection
from wire.net.limits import ListenerLimits
from wire.net.loop import Loop
from wire.net.poller import READ, WRITE
from wire.net.receive_memory import ReceiveMemory
from wire.net.reports import Reports
from wire.net.unread_answers import UnreadAnswers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from socket import socket
    from typing import Any, Protocol

    from wire.net.connection import Handle
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


_SWEEP_S = 1.0
_QUICK_SIZE_MAX = 8 * 1024
_NEVER = float("inf")


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
        sock = listening_socket(host, port, allow_remote=allow_remote)
        name = sock.getsockname()
        self.address: tuple[str, int] = (name[0], name[1])
        self.limits = limits if limits is not None else ListenerLimits()
        self.reports = reports if reports is not None else Reports()
        self._service = service
        self._connections: dict[int, Connection] = {}
        self._sweep_at = _NEVER
        # What the connections share; see `connection.Host`.
        self.loop = Loop(poller, clock)
        self.memory = ReceiveMemory(self.limits.receive_size_max)
        self.unread = UnreadAnswers(self.limits.response_size_max, self._too_much_unread)
        self.handle: Handle = service.handle
        self.quick_size_max = min(_QUICK_SIZE_MAX, self.limits.request_size_max)
        self._acceptor = Acceptor(sock, self.loop, self.limits, self.reports)

    @property
    def connection_count(self) -> int:
        """Connections that are open."""
        return len(self._connections)

    def run(self) -> None:
        """Serve until `stop`, then close every connection and the address."""
        _running.add(self)
        self.loop.begin()
        try:
            self._run()
        finally:
            self.loop.end()
            self.close()

    def stop(self) -> None:
        """Make `run` return soon. From any thread, or a signal handler."""
        self.loop.stop()

    def wake(self) -> None:
        """Make the loop call `turn` soon. From any thread."""
        self.loop.wake()

    @property
    def signal_fd(self) -> int:
        """For `signal.set_wakeup_fd`, where a signal does not end a wait by itself (Windows)."""
        return self.loop.signal_fd

    def close(self) -> None:
        """Close everything. For a listener that does not run; again is allowed."""
        if not self._acceptor.is_open:
            return
        _running.discard(self)
        self._acceptor.close()
        for connection in list(self._connections.values()):
            self.drop(connection)
        self.loop.close()

    def abandon(self) -> None:
        """Close this process's descriptors, and nothing else: the parent goes on with its own.

        Without it a forked child would keep the address taken, and connections half open, after
        its parent has closed them.
        """
        self._acceptor.close()
        for connection in self._connections.values():
            connection.abandon()
        self._connections.clear()
        self.loop.abandon()

    def drop(self, connection: Connection) -> None:
        """Close a connection at once. Requires: the loop's thread. Again is allowed."""
        if not connection.is_open:
            return
        self.loop.poller.unregister(connection.fd)
        del self._connections[connection.fd]
        self.reports.disconnected(connection)
        self._acceptor.left(connection.peer_host)
        connection.forget()
        try:
            self._service.disconnected(connection)
        except Exception as error:  # a service's bug must not end the loop
            self.reports.failed("a service failed on a disconnect", error)

    def sweep_by(self, deadline: float) -> None:
        """Have deadlines looked at when this one has passed, or sooner."""
        self._sweep_at = min(self._sweep_at, deadline)

    def take_late(self) -> None:
        """Do what was posted. Requires: the loop's thread."""
        late = self.loop.late
        while late:
            connection, action, value = late.popleft()
            if connection.is_open:
                self.attempt(connection, action, value)

    def attempt(
        self, connection: Connection, action: Callable[[Connection, Any], None], value: Any
    ) -> None:
        """Call `action(connection, value)`; if that fails only this connection ends."""
        try:
            action(connection, value)
        except Exception as error:  # as in `_run`
            self._failed(connection, error)

    def _run(self) -> None:
        loop, connection_of = self.loop, self._connections.get
        timeout: float | None = 0.0
        while not loop.is_stopping:
            ready = loop.wait(timeout)
            has_newcomers = False
            for fd, mask in ready:
                connection = connection_of(fd)
                try:
                    if connection is None:
                        # Or it was one, dropped a moment ago.
                        has_newcomers |= not loop.was_woken(fd) and fd == self._acceptor.fd
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

    def _finish_turn(self) -> float | None:
        """Let the service work, write late answers, look at deadlines. Returns the timeout."""
        loop = self.loop
        while True:
            loop.has_news = False
            if loop.late:
                self.take_late()
            try:
                delay_ms = self._service.turn()
            except Exception as error:  # as in `_run`; and a failing turn must not spin
                self.reports.failed("a service failed in its turn", error)
                delay_ms = 1_000
            if not loop.late:
                break
        if self.memory.starved:
            for connection in self.memory.feed_starved(loop.now):
                connection.wait_for(READ)
                self.sweep_by(connection.deadline())
        timeout = None if delay_ms is None else delay_ms / 1_000
        if self._sweep_at != _NEVER:
            if self._sweep_at <= loop.now:
                self._sweep()
            left = max(self._sweep_at - loop.now, 0.0)
            timeout = left if timeout is None else min(timeout, left)
        return timeout if timeout != _NEVER else None

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
            self._acceptor.accept(self._open)
        except Exception as error:  # as in `_run`
            self.reports.failed("accepting connections failed", error)
        self.sweep_by(self._acceptor.again_at)

    def _open(self, sock: socket, peer: tuple[str, int]) -> None:
        connection = Connection(self, sock, peer)
        self._connections[connection.fd] = connection
        self.reports.connected(connection)
        self._acceptor.entered(connection.peer_host)
        self.loop.poller.register(connection.fd, READ)
        self.sweep_by(connection.deadline())
        try:
            self._service.connected(connection)
        except Exception as error:  # as in `_run`
            self._failed(connection, error)

    def _too_much_unread(self, slowest: Connection) -> None:
        """The peers do not read what they asked for: one of them has to go, after this."""
        self.reports.cut_off(slowest, "unread", "too many bytes of answers are not read")
        self.loop.post(slowest, lambda connection, _: self.drop(connection), None)

    def _sweep(self) -> None:
        """Close what is past its deadline, and find the next one."""
        now = self.loop.now
        self._acceptor.resume()
        next_at = self._acceptor.again_at
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


_running: set[Listener] = set()


def _abandon_all() -> None:
    for listener in list(_running):
        listener.abandon()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
