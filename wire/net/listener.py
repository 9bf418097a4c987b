"""The server's side: a loop that waits for sockets and passes whole frames to a service.

The thread that calls `run` runs the loop. After each wake-up it handles all frames, calls the
service's `turn` once, and writes the answers that other threads posted. Between events it sleeps
without a timeout unless the service or a deadline needs one: an idle listener costs nothing.

    listener = Listener(service, "127.0.0.1", 9092)
    print("listening on", listener.address)
    listener.run()                      # until listener.stop(), from any thread or signal handler

Its parts: `Loop` waits; `Acceptor` accepts connections; each `Connection` reads, passes frames to
the service and writes answers. `ReceiveMemory` and `UnreadAnswers` limit the memory of all
connections together.
"""

from __future__ import annotations

import os

from wire.net.acceptor import Acceptor, listening_socket
from wire.net.clock import monotonic
from wire.net.connection import Connections
from wire.net.limits import ListenerLimits
from wire.net.loop import Loop
from wire.net.poller import READ, WRITE
from wire.net.reports import Reports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket

    from wire.net.connection import Service
    from wire.net.poller import Poller

_NEVER = float("inf")


class Listener:
    """Listens on one address and serves all its connections in one thread.

    `host`, `allow_remote` and errors are as for `listening_socket`. Port 0 takes a free port.
    `address` is the (host, port) in use.
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
        wrap: Callable[[socket], socket] | None = None,
    ) -> None:
        """`wrap` returns the socket to use in place of a newly accepted one."""
        sock = listening_socket(host, port, allow_remote=allow_remote)
        name = sock.getsockname()
        self.address: tuple[str, int] = (name[0], name[1])
        self.limits = limits if limits is not None else ListenerLimits()
        self.reports = reports if reports is not None else Reports()
        self._service = service
        self.loop = Loop(poller, clock)
        self._acceptor = Acceptor(sock, self.loop, self.limits, self.reports)
        self.connections = Connections(
            service, self._acceptor, self.loop, self.limits, self.reports, wrap=wrap
        )
        self.memory, self.unread = self.connections.memory, self.connections.unread

    @property
    def connection_count(self) -> int:
        return len(self.connections.by_fd)

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
        """Make `run` return soon. Any thread or signal handler may call it."""
        self.loop.stop()

    def wake(self) -> None:
        """Make the loop call `turn` soon. Any thread may call it."""
        self.loop.wake()

    def cut(self) -> None:
        """Close every connection, once its answers so far are written. Any thread may call it."""
        for connection in list(self.connections.by_fd.values()):
            connection.close()

    @property
    def signal_fd(self) -> int:
        """Descriptor for `signal.set_wakeup_fd` on Windows, where a signal does not end a wait."""
        return self.loop.signal_fd

    def close(self) -> None:
        """Close everything. Requires: `run` is not running. Idempotent."""
        if not self._acceptor.is_open:
            return
        _running.discard(self)
        self._acceptor.close()
        for connection in list(self.connections.by_fd.values()):
            self.connections.drop(connection)
        self.loop.close()

    def abandon(self) -> None:
        """In a forked child: close this process's descriptors only.

        Otherwise the child would keep the address in use, and connections half open, after its
        parent has closed them.
        """
        self._acceptor.close()
        self.connections.abandon()
        self.loop.abandon()

    def _run(self) -> None:
        loop, connection_of = self.loop, self.connections.by_fd.get
        timeout: float | None = 0.0
        while not loop.is_stopping:
            ready = loop.wait(timeout)
            has_newcomers = False
            for fd, mask in ready:
                connection = connection_of(fd)
                try:
                    if connection is None:
                        # The waker, the acceptor, or a connection dropped in this turn.
                        has_newcomers |= not loop.was_woken(fd) and fd == self._acceptor.fd
                    elif mask == READ:
                        connection.receive()
                    elif mask == WRITE:
                        connection.write()
                    else:
                        connection.hang_up(mask)
                except Exception as error:  # top frame of the thread: no peer may end the loop
                    if connection is None:
                        self.reports.failed("the listener's own descriptors failed", error)
                    else:
                        self.connections.failed(connection, error)
            if has_newcomers:
                # Accept last: a new connection may reuse the descriptor of a connection that was
                # dropped in this turn, and must not get the events of the dropped connection.
                self._accept()
            timeout = self._finish_turn()
        # Write the answers given before the loop ended, as far as the sockets take them.
        self.connections.take_late()

    def _finish_turn(self) -> float | None:
        """Call the service's `turn`, write posted answers, check deadlines.

        Return the seconds until the next turn is due, None if only an event makes one due.
        """
        loop, connections = self.loop, self.connections
        while True:
            loop.has_news = False
            if loop.late:
                connections.take_late()
            try:
                delay_ms = self._service.turn()
            except Exception as error:  # the loop goes on; a delay avoids a busy loop of errors
                self.reports.failed("a service failed in its turn", error)
                delay_ms = 1_000
            if not loop.late:
                break
        if self.memory.starved:
            for connection in self.memory.feed_starved(loop.now):
                connection.wait_for(READ)
                connections.sweep_by(connection.deadline())
        timeout = None if delay_ms is None else delay_ms / 1_000
        if connections.sweep_at != _NEVER:
            if connections.sweep_at <= loop.now:
                connections.sweep()
            left = max(connections.sweep_at - loop.now, 0.0)
            timeout = left if timeout is None else min(timeout, left)
        return timeout if timeout != _NEVER else None

    def _accept(self) -> None:
        try:
            self._acceptor.accept(self.connections.open)
        except Exception as error:  # as in `_run`
            self.reports.failed("accepting connections failed", error)
        self.connections.sweep_by(self._acceptor.again_at)


_running: set[Listener] = set()


def _abandon_all() -> None:
    for listener in list(_running):
        listener.abandon()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
