"""One client of a listener: bytes in, whole frames to the service, answers out in order.

Who owns the bytes of a frame: the service, until its `handle` returns. When `handle` parks the
request (returns None) they are the service's for good, and where they are no copy the listener
takes a new buffer; otherwise it is written again as soon as more is read. So an answer must not be
made of views of its request.

Requests are handled one at a time, in order. While one is parked, or an answer is not written,
nothing more is read or handled: a peer that does not read its answers is soon not heard either.
"""

from __future__ import annotations

from socket import MSG_PEEK, SHUT_RDWR

from wire.net.frame_head import SIZE, may_be_large, size_at, size_needed
from wire.net.poller import READ, WRITE
from wire.net.send_queue import SendQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from socket import socket

    from wire.net.listener import Listener

RECEIVE_SIZE = 64 * 1024
"""What one read takes in, unless a larger frame is on its way."""

_OWN_SIZE_MIN = 4 * 1024
_STEP_SIZE = 256 * 1024
_GROWTH = 2
_KEPT_SIZE_MAX = 4 * 1024 * 1024
_GATHER_SIZE = 256 * 1024
_KEPT_S = 5.0
_NEVER = float("inf")


class Connection:
    """A connection, as the service and the listener see it.

    For the service: `state` (a free slot), `peer_host`, `peer_port`, `local_host`, `local_port`,
    `respond`, `respond_with`, `close`. Everything else belongs to the listener and its thread.
    """

    __slots__ = (
        "_buffer",
        "_end",
        "_frame_started_at",
        "_held_size",
        "_is_closing",
        "_is_parked",
        "_is_starved",
        "_last_active_at",
        "_lent_size",
        "_listener",
        "_mask",
        "_needed",
        "_queue",
        "_sock",
        "_stalled_at",
        "_start",
        "fd",
        "is_open",
        "local_host",
        "local_port",
        "peer_host",
        "peer_port",
        "state",
    )

    def __init__(self, listener: Listener, sock: socket, peer: tuple[str, int]) -> None:
        self.state: object = None
        self.peer_host, self.peer_port = peer[0], peer[1]
        self.local_host, self.local_port = sock.getsockname()[:2]
        self.fd = sock.fileno()
        self.is_open = True
        self._listener = listener
        self._sock = sock
        self._mask = READ
        self._queue = SendQueue()
        self._is_parked = False
        self._is_closing = False
        self._is_starved = False
        self._lent_size = 0
        """Of a large buffer that the service has for as long as the request is parked."""
        # Received and not yet handled: _buffer[_start:_end]. Without a buffer of its own, which
        # only part of a frame or a backlog needs, a connection reads into the listener's.
        self._buffer: bytearray | None = None
        self._start = 0
        self._end = 0
        self._needed = SIZE.size
        self._held_size = 0
        self._frame_started_at = 0.0
        self._last_active_at = listener.now
        self._stalled_at = 0.0

    def respond(self, buffers: Sequence[bytes | bytearray | memoryview] | None) -> None:
        """Answer the parked request; None when it has no answer. Once, from any thread.

        The buffers, sizes included, must not change until they are written.
        """
        self._listener.post(self, Connection.answer, buffers)

    def respond_with(
        self, make: Callable[[], Sequence[bytes | bytearray | memoryview] | None]
    ) -> None:
        """As `respond`, with what `make` returns; it is called in the listener's thread.

        When this is that thread, because it serves another connection, then now.
        """
        listener = self._listener
        if listener.is_this_thread and self._is_parked and self.is_open:
            listener.attempt(self, Connection.answer_at_once, make)
        else:
            listener.post(self, Connection.answer_with, make)

    def close(self) -> None:
        """Close after the answers given so far are written. From any thread."""
        self._is_closing = True
        self._listener.post(self, Connection.close_when_written, None)

    # What follows is the listener's.

    def receive(self) -> None:
        """Read once and handle every whole frame. Requires: reported as readable, and only that.

        A peer that is owed bytes or memory is not waited for with READ. One comes here all the
        same when another connection's request of this wake-up changed that (`answer_at_once`).
        """
        if self._is_parked:
            self._mute()
            return
        if self._mask != READ:
            return
        listener = self._listener
        try:
            if self._buffer is None:
                start, end, view = 0, 0, listener.receive_view
                count = self._sock.recv_into(view)
            else:
                start, end, view = self._start, self._end, memoryview(self._buffer)
                if end == len(view):
                    return  # set aside, and `go_on` is posted: no room is not the peer's end
                count = self._sock.recv_into(view[end:])
        except BlockingIOError:
            return
        if count == 0:
            listener.drop(self)
            return
        self._last_active_at = listener.now
        if end == 0 and count > 4 and size_at(view)[0] == count - 4 <= listener.quick_size_max:
            # One small request and nothing else, as mostly: a shorter way to the same end. It is
            # copied, so that the buffer that all share need not be made anew when it is parked.
            answer = listener.handle(self, view[4:count].tobytes())
            if listener.late and answer is not None:
                # Whoever waited for what this request brought comes before its own sender.
                listener.take_late()
                if not self.is_open:
                    return
            if answer and len(answer) == 1 and self._buffer is None and not self._is_closing:
                data = answer[0]
                try:
                    sent = self._sock.send(data)
                except BlockingIOError:
                    sent = 0
                if sent != len(data):
                    self._send((memoryview(data)[sent:],))
            elif answer is None and self._buffer is None and not self._is_closing:
                self._is_parked = True
            else:
                self._finish(answer, view, count)
        else:
            self._handle_frames(view, start, end + count)

    def write(self) -> None:
        """Write what is queued, and go on once all is. Requires: the socket is writable."""
        size = self._queue.size
        is_done = self._queue.flush(self._sock)
        if self._queue.size < size:
            self._stalled_at = self._last_active_at = self._listener.now
            self._count_unwritten()
        if is_done:
            self._go_on()

    def answer(self, buffers: Sequence[bytes | bytearray | memoryview] | None) -> None:
        """The parked request is answered: write, then handle what was received meanwhile."""
        assert self._is_parked, "a response without a request that waits for one"
        self._is_parked = False
        self._take_back()
        self._last_active_at = self._listener.now
        if not buffers or self._send(buffers):
            self._go_on()

    def answer_with(
        self, make: Callable[[], Sequence[bytes | bytearray | memoryview] | None]
    ) -> None:
        """As `answer`, with what is made now."""
        self.answer(make())

    def answer_at_once(
        self, make: Callable[[], Sequence[bytes | bytearray | memoryview] | None]
    ) -> None:
        """As `answer_with`, in the middle of another connection's request.

        Who waited has the news before that request is done with; its own next one comes after.
        """
        self._is_parked = False
        self._take_back()
        self._last_active_at = self._listener.now
        buffers = make()
        is_all = not buffers or self._send(buffers)
        if is_all and (self._buffer is not None or self._mask != READ or self._is_closing):
            self._listener.post(self, Connection.go_on, None)

    def go_on(self, _: object = None) -> None:
        """Handle what was received while the request was parked that is answered by now."""
        if not self._is_parked:
            self._go_on()

    def close_when_written(self, _: object = None) -> None:
        """The service asked to close: at once, unless an answer is still being written."""
        if not self._queue.size:
            self._listener.drop(self)

    def hang_up(self, mask: int) -> None:
        """The system reports an error or a hang-up: take what still came, then the end."""
        if mask & READ and not (self._is_parked or self._queue.size or self._is_starved):
            self.receive()
        else:
            self._listener.drop(self)

    def end(self, _: object = None) -> None:
        """Close at once, whatever is owed."""
        self._listener.drop(self)

    def deadline(self) -> float:
        """The time at which the connection is closed if nothing changes; infinity for never."""
        limits = self._listener.limits
        if self._queue.size:
            return self._stalled_at + limits.write_stall_ms / 1_000
        if self._is_parked:
            return _NEVER
        if self._start < self._end:
            size = self._needed
            if self._listener.starved and not self._is_starved:
                # Others wait for its room: what it announced has to come, and not only in the end.
                size = min(size, self._end - self._start)
            seconds = limits.frame_grace_ms / 1_000 + size / limits.frame_rate_min
            return self._frame_started_at + seconds
        return self._last_active_at + limits.idle_ms / 1_000

    def say_why_late(self) -> None:
        """Log which deadline has passed."""
        reports = self._listener.reports
        if self._queue.size:
            reports.cut_off(self, "unread", "it does not read its answers")
        elif self._start < self._end:
            reports.cut_off(self, "incomplete", "its request did not arrive in time")
        else:
            reports.idle(self)

    def missing_size(self) -> float:
        """How much of a large request has not arrived; infinity when none is on its way."""
        size = self._end - self._start
        is_incomplete = 0 < size < self._needed > RECEIVE_SIZE
        is_read = not (self._is_parked or self._queue.size)
        return self._needed - size if is_incomplete and is_read else _NEVER

    def stalled_at(self) -> float:
        """When the peer last took bytes of an answer it is owed; infinity if it is owed none."""
        return self._stalled_at if self._queue.size else _NEVER

    def feed(self) -> bool:
        """Try again to get a buffer for a large frame. True when the connection reads again."""
        assert self._buffer is not None, self
        if not self._store(memoryview(self._buffer), self._start, self._end):
            return False
        self._is_starved = False
        self._set_mask(READ)
        return True

    def trim(self, *, now: float) -> None:
        """Give back a buffer that is kept for a next large frame and has not been used lately."""
        if self._start == self._end and self._last_active_at + _KEPT_S <= now:
            self._take_buffer(0)

    def forget(self) -> None:
        """Close the socket and let everything go. Only `Listener.drop` calls this."""
        self.is_open = False
        self._queue.clear()
        self._count_unwritten()
        self._take_buffer(0)
        self._take_back()
        self._listener.done_with(self)
        try:  # noqa: SIM105 - not worth the import of contextlib
            # The end of the connection, whatever other process still holds the socket.
            self._sock.shutdown(SHUT_RDWR)
        except OSError:
            pass  # the peer was first
        self._sock.close()

    def abandon(self) -> None:
        """Close this process's descriptor; the connection is another process's."""
        self.is_open = False
        self._sock.close()

    def _handle_frames(self, view: memoryview, start: int, end: int) -> None:
        """Give the whole frames of view[start:end] to the service, and write the answers."""
        begin = start
        listener = self._listener
        handle, request_size_max = listener.handle, listener.limits.request_size_max
        answers: list[bytes | bytearray | memoryview] = []
        gathered_size = 0
        while end - start >= 4:
            (size,) = size_at(view, start)
            if not 0 <= size <= request_size_max and not may_be_large(
                view, start, end, listener.limits
            ):
                limit = listener.limits.produce_size_max
                listener.reports.bad_size(self, bytes(view[start : start + 64]), size, limit)
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
            self._frame_started_at = 0.0
            if not self._is_parked:
                listener.done_with(self)
        self._keep_rest(view, start, end)
        if self._is_closing:
            self.close_when_written()

    def _finish(
        self,
        answer: Sequence[bytes | bytearray | memoryview] | None,
        view: memoryview,
        end: int,
    ) -> None:
        """The one frame of view[:end] was handled: do with the answer what it asks for."""
        if answer is None:
            self._is_parked = True
        elif answer:
            self._send(answer)
        self._keep_rest(view, end, end)
        if self._is_closing:
            self.close_when_written()

    def _keep_rest(self, view: memoryview, start: int, end: int) -> None:
        """Keep what was received beyond the last frame handled, and see to the buffers."""
        if self._is_parked:
            # The service owns the bytes now, and what follows the frame moves out of their way.
            if self._buffer is None:
                self._listener.renew_receive_view()
            else:
                self._lent_size = len(self._buffer)
                self._listener.count_buffer(self._lent_size)
            self._set_aside(view, start, end)
        elif start == end:
            self._start = self._end = 0
            if self._buffer is not None and not RECEIVE_SIZE < len(self._buffer) <= _KEPT_SIZE_MAX:
                self._take_buffer(0)
        elif self._queue.size:
            self._set_aside(view, start, end)
        elif not self._store(view, start, end):
            self._set_aside(view, start, end)
            self._is_starved = True
            self._set_mask(0)
            self._listener.starve(self)

    def _set_aside(self, view: memoryview, start: int, end: int) -> None:
        """Keep view[start:end] for later, in a buffer of that size: nothing is read meanwhile."""
        rest = view[start:end]
        self._take_buffer(len(rest))[:] = rest
        self._end = len(rest)

    def _store(self, view: memoryview, start: int, end: int) -> bool:
        """Keep view[start:end] where more of its first frame can be read behind it.

        The room grows with what has arrived: announcing a size takes none.
        False, and nothing is changed, when there is no memory for more.
        """
        listener, buffer = self._listener, self._buffer
        self._needed = needed = size_needed(view, start, end, listener.limits)
        size = end - start
        if not self._frame_started_at:
            self._frame_started_at = listener.now
        if buffer is None or len(buffer) < size or size == len(buffer) < needed:
            capacity = max(needed, size, _OWN_SIZE_MIN)
            if capacity > RECEIVE_SIZE:
                # The next ones may be a little larger, and shall find room in it.
                capacity = min(capacity, max(_GROWTH * size, RECEIVE_SIZE))
                capacity += -capacity % (_STEP_SIZE if capacity > RECEIVE_SIZE else 1)
            held = 0 if buffer is None else len(buffer)
            if not listener.has_room_for(self, capacity, instead_of=held):
                return False
            if start and end == RECEIVE_SIZE and listener.has_room_for(self, _STEP_SIZE):
                # As much as could be read, of several frames: such a peer is read in larger steps.
                capacity = max(capacity, _STEP_SIZE)
            rest = view[start:end]
            self._take_buffer(capacity)[:size] = rest
            self._end = size
        elif start and (start + needed > len(buffer) or len(buffer) - end < RECEIVE_SIZE > size):
            # It would not fit, or is soon moved, and leaves room for a read as large as any.
            buffer[:size] = bytes(view[start:end])
            self._start, self._end = 0, size
        else:
            self._start, self._end = start, end
        listener.sweep_by(self.deadline())
        return True

    def _take_back(self) -> None:
        """The parked request is answered, or nobody is left to answer: its bytes can go."""
        if self._lent_size:
            self._listener.count_buffer(-self._lent_size)
            self._listener.done_with(self)
            self._lent_size = 0

    def _take_buffer(self, capacity: int) -> bytearray:
        """Replace the connection's own buffer by an empty one of `capacity`; 0 for none."""
        listener = self._listener
        if self._buffer is not None:
            listener.count_buffer(-len(self._buffer))
        listener.count_buffer(capacity)
        fresh = bytearray(capacity)
        self._buffer = fresh if capacity else None
        self._start = self._end = 0
        return fresh

    def _send(self, buffers: Sequence[bytes | bytearray | memoryview]) -> bool:
        """Write after everything before. False when the socket did not take all of it."""
        if self._queue.send(self._sock, buffers):
            return True
        listener = self._listener
        self._stalled_at = listener.now
        self._set_mask(WRITE)
        listener.sweep_by(self.deadline())
        self._count_unwritten()
        return False

    def _go_on(self) -> None:
        """An answer is written or a parked request answered: go on if nothing else is open."""
        if self._queue.size:
            return  # `write` comes back here
        if self._is_closing:
            self._listener.drop(self)
            return
        self._frame_started_at = 0.0
        if self._buffer is not None and self._start < self._end and not self._is_parked:
            self._handle_frames(memoryview(self._buffer), self._start, self._end)
        if self.is_open and not (self._queue.size or self._is_starved):
            # Also while parked: see `_mute`.
            self._set_mask(READ)

    def _mute(self) -> None:
        """More came while a request is parked. Only now is the system told not to report it.

        Most parked requests are answered before their client says more, and telling costs a
        system call each way. A client that has gone is noticed here too.
        """
        try:
            is_gone = not self._sock.recv(1, MSG_PEEK)
        except BlockingIOError:
            return
        if is_gone:
            self._listener.drop(self)
        else:
            self._set_mask(WRITE if self._queue.size else 0)

    def _set_mask(self, mask: int) -> None:
        if self._mask != mask:
            self._mask = mask
            self._listener.poller.modify(self.fd, mask)

    def _count_unwritten(self) -> None:
        """Bring the listener's total of unwritten bytes up to date."""
        size = self._queue.size
        self._listener.count_unwritten(size - self._held_size)
        self._held_size = size
