"""The connections of a listener: they pass whole frames to the service, and write its answers.

The service may use the bytes of a frame until `handle` returns. Then the next read overwrites them,
so an answer must not contain views of its request. If `handle` returns None, the request is parked:
it gets its answer later, and until then the service may keep using the bytes.

The requests of a connection are handled one at a time, in order. While a request is parked, or an
answer is not fully written, the listener reads and handles nothing more of that connection. So a
peer that does not read its answers cannot send requests without end.
"""

from __future__ import annotations

from socket import MSG_PEEK, SHUT_RDWR

from wire.net.limits import size_at
from wire.net.poller import READ, WRITE
from wire.net.receive_memory import Received, ReceiveMemory
from wire.net.send_queue import SendQueue
from wire.net.unread_answers import UnreadAnswers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from socket import socket
    from typing import Any, Protocol

    from wire.net.acceptor import Acceptor
    from wire.net.limits import ListenerLimits
    from wire.net.loop import Loop
    from wire.net.reports import Reports

    Buffers = Sequence[bytes | bytearray | memoryview]
    Make = Callable[[], Buffers | None]
    Handle = Callable[["Connection", bytes | memoryview], Buffers | None]

    class Service(Protocol):
        """Handles the frames of a listener's peers. All calls come from the loop's thread."""

        def connected(self, connection: Connection) -> None:
            """A peer has connected: the service may set `connection.state`."""

        def handle(
            self, connection: Connection, frame: bytes | memoryview
        ) -> Sequence[bytes | bytearray | memoryview] | None:
            """Handle one frame, given without its size; return the buffers of the answer's frame.

            Return an empty sequence if there is no answer. Return None to park the request until
            `connection.respond`. The module's text says how long the frame's bytes are valid.
            """

        def disconnected(self, connection: Connection) -> None:
            """Either side has ended the connection."""

        def turn(self) -> int | None:
            """Do all due work; return the milliseconds until more is due, None for never."""


_GATHER_SIZE = 256 * 1024
_KEPT_S = 5.0
_QUICK_SIZE_MAX = 8 * 1024
_SWEEP_S = 1.0
_NEVER = float("inf")


class Connection:
    """A connection of a listener.

    The service may use `peer_host`, `peer_port`, `local_host`, `local_port`, `respond`,
    `respond_with` and `close`; `state` is free for its data. Everything else belongs to the
    listener.
    """

    __slots__ = (
        "_host",
        "_is_closing",
        "_is_parked",
        "_last_active_at",
        "_mask",
        "_queue",
        "_received",
        "_sock",
        "fd",
        "is_open",
        "local_host",
        "local_port",
        "peer_host",
        "peer_port",
        "state",
    )

    def __init__(self, host: Connections, sock: socket, peer: tuple[str, int]) -> None:
        self.state: object = None
        self.peer_host, self.peer_port = peer[0], peer[1]
        self.local_host, self.local_port = sock.getsockname()[:2]
        self.fd = sock.fileno()
        self.is_open = True
        self._host = host
        self._sock = sock
        self._mask = READ
        self._queue = SendQueue()
        self._received = Received(host.memory, host.limits)
        self._is_parked = False
        self._is_closing = False
        self._last_active_at = host.loop.now

    def respond(self, buffers: Buffers | None) -> None:
        """Answer the parked request; with None end it without an answer. Any thread may call it.

        The buffers include the frame's size. They must not change until they are written.
        """
        self.respond_with(lambda: buffers)

    def respond_with(self, make: Make) -> None:
        """Answer as `respond` does, with the result of `make()`. Any thread may call it.

        The listener's thread calls `make`. If that thread is handling another connection's request
        and calls `respond_with` itself, `make` is called at once: the parked client gets its answer
        before that other request is finished.
        """
        host = self._host
        if self._is_parked and self.is_open and host.loop.is_this_thread:
            host.attempt(self, Connection._answer, make)
        else:
            host.loop.post(self, Connection._answer, make)

    def close(self) -> None:
        """Close the connection once the answers so far are written. Any thread may call it."""
        self._is_closing = True
        self._host.loop.post(self, Connection.go_on, None)

    # Only the listener calls the methods below.

    def receive(self) -> None:
        """Read once and handle every whole frame. Requires: the poller reported READ only.

        Do nothing if the connection no longer waits for READ: in the same wake-up, the request of
        another connection may have answered the parked request of this one (`respond_with`). Then
        this connection waits to write or for memory.
        """
        if self._is_parked:
            self._mute()
            return
        if self._mask != READ:
            return
        host, received = self._host, self._received
        try:
            if received.buffer is None:
                start, end, view = 0, 0, host.memory.view
                count = self._sock.recv_into(view)
            else:
                start, end, view = received.start, received.end, memoryview(received.buffer)
                if end == len(view):
                    # The buffer is full and `go_on` is posted. A read into no room would look like
                    # the end of the connection.
                    return
                count = self._sock.recv_into(view[end:])
        except BlockingIOError:
            return
        if count == 0:
            host.drop(self)
            return
        loop = host.loop
        self._last_active_at = loop.now
        if end == 0 and count > 4 and size_at(view)[0] == count - 4 <= host.quick_size_max:
            # The usual case, one small request, takes a shorter path than `_handle_frames`: 20,100
            # instructions for an echo instead of 26,400. The frame is copied, so a parked request
            # does not cost a new shared buffer.
            answer = host.handle(self, view[4:count].tobytes())
            if answer is None:
                self._is_parked = True
            else:
                if loop.late:
                    # First send the answers that this request has completed for parked clients.
                    host.take_late()
                    if not self.is_open:
                        return
                if answer and not self._queue.send(self._sock, answer):
                    self._wait_for_peer()
            if self._is_closing:
                self.go_on()
        else:
            self._handle_frames(view, start, end + count)

    def write(self) -> None:
        """Write the queued answers; once all are written, go on with the next frame.

        Requires: the poller reported that the socket can be written.
        """
        queue, now = self._queue, self._host.loop.now
        size = queue.size
        is_done = queue.flush(self._sock)
        if queue.size < size:
            self._last_active_at = now
            self._host.unread.note(self, queue.size, now)
        if is_done:
            self.go_on()

    def go_on(self, _: object = None) -> None:
        """Handle the received frames and read on, unless an answer is unwritten.

        While a request is parked, no other request of the connection is handled.
        """
        if self._queue.size:
            return  # `write` calls this again
        if self._is_closing:
            self._host.drop(self)
            return
        received = self._received
        received.started_at = 0.0
        if received.buffer is not None and received.start < received.end and not self._is_parked:
            self._handle_frames(memoryview(received.buffer), received.start, received.end)
        if self.is_open and not (self._queue.size or received.is_starved):
            # Wait for READ even while a request is parked, to save system calls: see `_mute`.
            self.wait_for(READ)

    def hang_up(self, mask: int) -> None:
        """Handle an error or a hang-up: read the rest if possible, else drop the connection."""
        if mask & READ and self._mask == READ and not self._is_parked:
            self.receive()
        else:
            self._host.drop(self)

    def deadline(self) -> float:
        """Return the time at which to close an inactive connection; infinity for never."""
        host, received = self._host, self._received
        if self._queue.size:
            return host.unread.stalled_at(self) + host.limits.write_stall_ms / 1_000
        if self._is_parked:
            return _NEVER
        if received.start < received.end:
            return received.deadline()
        return self._last_active_at + host.limits.idle_ms / 1_000

    def say_why_late(self) -> None:
        reports = self._host.reports
        if self._queue.size:
            reports.cut_off(self, "unread", "it does not read its answers")
        elif self._received.start < self._received.end:
            reports.cut_off(self, "incomplete", "its request did not arrive in time")
        else:
            reports.idle(self)

    def trim(self, *, now: float) -> None:
        """Give back the empty buffer that is kept for a large frame, after `_KEPT_S` of silence."""
        if self._last_active_at + _KEPT_S <= now:
            self._received.give_back()

    def wait_for(self, mask: int) -> None:
        """Make the poller report `mask` only."""
        if self._mask != mask:
            self._mask = mask
            self._host.loop.poller.modify(self.fd, mask)

    def forget(self) -> None:
        """Close the socket and release all memory. Only `Connections.drop` calls this."""
        self.is_open = False
        self._queue.clear()
        self._host.unread.note(self, 0, 0.0)
        self._received.forget()
        try:  # noqa: SIM105 - not worth the import of contextlib
            # Ends the connection even if another process still holds the socket.
            self._sock.shutdown(SHUT_RDWR)
        except OSError:
            pass  # the peer has closed first
        self._sock.close()

    def abandon(self) -> None:
        """In a forked child: close this process's descriptor; the parent keeps the connection."""
        self.is_open = False
        self._sock.close()

    def _answer(self, make: Make) -> None:
        """Answer the parked request with `make()`, then handle the bytes received meanwhile."""
        assert self._is_parked, "a response without a request that waits for one"
        host, received = self._host, self._received
        buffers = make()
        self._is_parked = False
        received.take_back()
        self._last_active_at = host.loop.now
        is_all = not buffers or self._send(buffers)
        if is_all and (received.buffer is not None or self._mask != READ or self._is_closing):
            # Post it, because this may run in the middle of another connection's request.
            host.loop.post(self, Connection.go_on, None)

    def _handle_frames(self, view: memoryview, start: int, end: int) -> None:
        """Handle the whole frames of view[start:end], and write the answers."""
        begin = start
        host = self._host
        handle, request_size_max = host.handle, host.limits.request_size_max
        answers: list[bytes | bytearray | memoryview] = []
        gathered_size = 0
        while end - start >= 4:
            (size,) = size_at(view, start)
            if not 0 <= size <= request_size_max:
                first = bytes(view[start : start + 64])
                host.reports.bad_size(self, first, size, request_size_max)
                self._is_closing = True
                start = end
                break
            frame_end = start + 4 + size
            if frame_end > end:
                break
            answer = handle(self, view[start + 4 : frame_end])
            start = frame_end
            if answer is None:
                self._is_parked = True
                break
            if self._is_closing:
                answers += answer
                start = end
                break
            for buffer in answer:
                answers.append(buffer)
                gathered_size += len(buffer)
            if gathered_size > _GATHER_SIZE:
                if not self._send(answers):
                    answers = []
                    break
                answers, gathered_size = [], 0
        if answers:
            self._send(answers)
        if start != begin:
            self._received.started_at = 0.0
            if not self._is_parked:
                self._received.handled()
        self._keep_rest(view, start, end)
        if self._is_closing:
            self.go_on()

    def _keep_rest(self, view: memoryview, start: int, end: int) -> None:
        """Keep the bytes behind the last handled frame, and update the buffers."""
        host, received = self._host, self._received
        if self._is_parked:
            # The service keeps the frame's bytes, so the bytes behind them move to another buffer.
            received.lend()
            received.set_aside(view, start, end)
        elif start == end:
            received.empty()
        elif self._queue.size:
            received.set_aside(view, start, end)
        elif received.keep(view, start, end, host.loop.now):
            host.sweep_by(self.deadline())
        else:
            received.set_aside(view, start, end)
            received.starve(self)
            self.wait_for(0)
            # Sweep at once: from now on the connections that hold memory have tighter deadlines.
            host.sweep_by(host.loop.now)

    def _send(self, buffers: Buffers) -> bool:
        """Write an answer behind all earlier ones; return False if the socket did not take all."""
        is_all = self._queue.send(self._sock, buffers)
        if not is_all:
            self._wait_for_peer()
        return is_all

    def _wait_for_peer(self) -> None:
        """Make the poller report when the socket can take the rest of an answer."""
        host = self._host
        host.unread.note(self, self._queue.size, host.loop.now)
        self.wait_for(WRITE)
        host.sweep_by(self.deadline())

    def _mute(self) -> None:
        """Stop waiting for READ, because more bytes came while a request is parked.

        Drop the connection if the client has closed it. Parking itself leaves the mask alone: most
        parked requests are answered before the client sends more, and each change of the mask costs
        a system call.
        """
        try:
            is_gone = not self._sock.recv(1, MSG_PEEK)
        except BlockingIOError:
            return
        if is_gone:
            self._host.drop(self)
        else:
            self.wait_for(WRITE if self._queue.size else 0)


class Connections:
    """The open connections of a listener, and objects that they share.

    Requires: the loop's thread.
    """

    def __init__(
        self,
        service: Service,
        acceptor: Acceptor,
        loop: Loop,
        limits: ListenerLimits,
        reports: Reports,
        *,
        wrap: Callable[[socket], socket] | None = None,
    ) -> None:
        self._service = service
        self._wrap = wrap
        self._acceptor = acceptor
        self.loop = loop
        self.limits = limits
        self.reports = reports
        self.by_fd: dict[int, Connection] = {}
        self.handle: Handle = service.handle
        self.memory = ReceiveMemory(limits.receive_size_max)
        self.unread = UnreadAnswers(limits.response_size_max, self._too_much_unread)
        self.quick_size_max = min(_QUICK_SIZE_MAX, limits.request_size_max)
        self.sweep_at = _NEVER
        """Time at which `sweep` must be called; infinity while no connection has a deadline."""
        self.dropped: Callable[[], None] | None = None
        """Called after each connection that has ended, in the loop's thread."""

    def open(self, sock: socket, peer: tuple[str, int]) -> None:
        if self._wrap is not None:
            sock = self._wrap(sock)
        connection = Connection(self, sock, peer)
        self.by_fd[connection.fd] = connection
        self.reports.connected(connection)
        self._acceptor.entered(connection.peer_host)
        self.loop.poller.register(connection.fd, READ)
        self.sweep_by(connection.deadline())
        try:
            self._service.connected(connection)
        except Exception as error:  # a service's bug must not end the loop
            self.failed(connection, error)

    def drop(self, connection: Connection) -> None:
        """Close a connection at once. Idempotent."""
        if not connection.is_open:
            return
        self.loop.poller.unregister(connection.fd)
        del self.by_fd[connection.fd]
        self.reports.disconnected(connection)
        self._acceptor.left(connection.peer_host)
        connection.forget()
        try:
            self._service.disconnected(connection)
        except Exception as error:  # a service's bug must not end the loop
            self.reports.failed("a service failed on a disconnect", error)
        if self.dropped is not None:
            self.dropped()

    def abandon(self) -> None:
        """In a forked child: close this process's descriptors only."""
        for connection in self.by_fd.values():
            connection.abandon()
        self.by_fd.clear()

    def failed(self, connection: Connection, error: Exception) -> None:
        """Drop the connection, and report the error unless the peer has just left."""
        if not isinstance(error, ConnectionError | TimeoutError):
            self.reports.failed(f"connection from {connection.peer_host} failed", error)
        self.drop(connection)

    def take_late(self) -> None:
        late = self.loop.late
        while late:
            connection, action, value = late.popleft()
            if connection.is_open:
                self.attempt(connection, action, value)

    def attempt(
        self, connection: Connection, action: Callable[[Connection, Any], None], value: Any
    ) -> None:
        """Call `action(connection, value)`. An error drops this connection, and no other."""
        try:
            action(connection, value)
        except Exception as error:  # no peer may end the loop
            self.failed(connection, error)

    def sweep_by(self, deadline: float) -> None:
        """Schedule `sweep` for `deadline` at the latest."""
        self.sweep_at = min(self.sweep_at, deadline)

    def sweep(self) -> None:
        """Close the connections past their deadline, and find the next deadline."""
        now = self.loop.now
        self._acceptor.resume()
        next_at = self._acceptor.again_at
        # A parked request has no deadline, but its answer will have one: sweep by `latest`.
        latest = now + self.limits.idle_ms / 1_000
        for connection in list(self.by_fd.values()):
            deadline = connection.deadline()
            if deadline <= now:
                connection.say_why_late()
                self.drop(connection)
            else:
                connection.trim(now=now)
                next_at = min(next_at, deadline, latest)
        # At least a second later, so that deadlines close to each other share one wake-up.
        self.sweep_at = max(next_at, now + _SWEEP_S)

    def _too_much_unread(self, slowest: Connection) -> None:
        """Post the drop of the connection whose peer has stalled for the longest time."""
        self.reports.cut_off(slowest, "unread", "too many bytes of answers are not read")
        self.loop.post(slowest, lambda connection, _: self.drop(connection), None)
