"""`Relay`: passes bytes between accepted sockets and their listener, late or in part if asked.

    peer <-> outer socket | Relay | inner pair of sockets <-> Connection

A listener whose connections shall suffer gives each new socket to `Relay.take` and uses the
returned socket in its place. A `Shaper` for each direction decides when bytes go on. One thread
runs the relay.
"""

from __future__ import annotations

import socket
from collections import deque
from struct import pack

from wire.net.clock import monotonic
from wire.net.loop import Loop
from wire.net.poller import READ, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol

    class Shaper(Protocol):
        """Decides when the bytes of one direction of one connection go on."""

        @property
        def is_blocked(self) -> bool:
            """True while nothing goes on, not even bytes that are due."""

        @property
        def resets_at(self) -> float:
            """The time at which the connection breaks with a TCP reset; infinity for never."""

        def shape(self, data: bytes, now: float) -> Iterable[tuple[float, bytes]]:
            """Return the data in pieces, each with the time at which it goes on.

            A piece that is `END` closes the connection.
            """


END = b"end"
"""Compared by identity: the connection is closed."""
_RESET = b"reset"

_NEVER = float("inf")
_READ_SIZE = 64 * 1024
_HELD_SIZE_MAX = 1024 * 1024
"""Bytes of one direction that wait for their time; the relay reads no more until some have gone."""


class InnerSocket(socket.socket):
    """The listener's end of a pair of sockets, with the addresses of the accepted socket."""

    def __init__(self, fileno: int, family: int, outer: socket.socket) -> None:
        super().__init__(family, socket.SOCK_STREAM, 0, fileno)
        self._outer_name = outer.getsockname()

    def getsockname(self) -> Any:
        return self._outer_name


class Relay:
    """Passes the bytes of any number of connections, in the thread that calls `run`."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._loop = Loop(None, clock)
        self._clock = clock
        self._pumps: dict[int, tuple[_Pump, _Pump]] = {}
        """Descriptor -> the pump that reads it, and the pump that writes to it."""

    @property
    def connection_count(self) -> int:
        return len(self._pumps) // 2

    def take(self, outer: socket.socket, inward: Shaper, outward: Shaper) -> socket.socket:
        """Put the relay before a socket; return the socket to use in its place.

        `inward` shapes the bytes from the peer, `outward` those to it. Any thread may call it.

        Raises:
            OSError: the process has no descriptors left.
        """
        near, far = socket.socketpair()
        for each in (near, far):
            each.setblocking(False)
        inner = InnerSocket(near.detach(), near.family, outer)
        inner.setblocking(False)
        pumps = _Pump(outer, far, inward), _Pump(far, outer, outward)
        self._loop.post(self, Relay._add, pumps)
        return inner

    def reset(self) -> None:
        """Break all connections with a TCP reset, soon. Any thread may call it."""
        self._loop.post(self, Relay._reset, None)

    def run(self) -> None:
        """Pass bytes until `stop`, then close every connection."""
        loop = self._loop
        loop.begin()
        try:
            timeout: float | None = None
            while not loop.is_stopping:
                for fd, mask in loop.wait(timeout):
                    if not loop.was_woken(fd):
                        self._ready(fd, mask)
                loop.has_news = False
                while loop.late:
                    target, action, value = loop.late.popleft()
                    action(target, value)
                timeout = self._pass_due()
        finally:
            loop.end()
            for reading, _ in list(self._pumps.values()):
                self._drop(reading)
            while loop.late:
                target, action, value = loop.late.popleft()
                if isinstance(value, tuple):  # pumps that were never begun
                    _close_both(value[0])
            loop.close()

    def stop(self) -> None:
        """Make `run` return soon. Any thread may call it."""
        self._loop.stop()

    def wake(self) -> None:
        """Look at the shapers again, soon. Any thread may call it."""
        self._loop.wake()

    # In the relay's thread

    def _add(self, pumps: tuple[_Pump, _Pump]) -> None:
        inward, outward = pumps
        for reading, writing in ((inward, outward), (outward, inward)):
            self._pumps[reading.source_fd] = reading, writing
            self._loop.poller.register(reading.source_fd, READ)

    def _reset(self, _: object) -> None:
        for reading, _writing in list(self._pumps.values()):
            self._drop(reading, with_reset=True)

    def _ready(self, fd: int, mask: int) -> None:
        found = self._pumps.get(fd)
        if found is None:
            return
        reading, writing = found
        if mask & WRITE:
            writing.can_write = True
        if mask & ~WRITE:
            try:
                data = reading.source.recv(_READ_SIZE)
            except BlockingIOError:
                return
            except OSError:
                self._drop(reading)
                return
            reading.took(data, self._loop.now)

    def _pass_due(self) -> float | None:
        """Pass all bytes that are due; return the seconds until the next ones are."""
        now = self._clock()
        next_at: float | None = None
        for reading, _ in list(self._pumps.values()):
            if reading.source_fd not in self._pumps:
                continue  # dropped in this turn
            outcome = reading.push(now)
            if outcome is not None:
                self._drop(reading, with_reset=outcome is _RESET)
                continue
            due = reading.next_due()
            if due != _NEVER:
                next_at = due if next_at is None else min(next_at, due)
        for fd, (reading, writing) in self._pumps.items():
            mask = (READ if reading.may_read else 0) | (0 if writing.can_write else WRITE)
            if mask != reading.mask:
                reading.mask = mask
                self._loop.poller.modify(fd, mask)
        return None if next_at is None else max(0.0, next_at - now)

    def _drop(self, pump: _Pump, *, with_reset: bool = False) -> None:
        for fd in (pump.source_fd, pump.target_fd):
            if self._pumps.pop(fd, None) is not None:
                self._loop.poller.unregister(fd)
        _close_both(pump, with_reset=with_reset)


class _Pump:
    """One direction of a connection."""

    __slots__ = (
        "_held", "_held_size", "_is_source_open", "can_write", "mask", "shaper", "source",
        "source_fd", "target", "target_fd",
    )  # fmt: skip

    def __init__(self, source: socket.socket, target: socket.socket, shaper: Shaper) -> None:
        self.source, self.target, self.shaper = source, target, shaper
        self.source_fd, self.target_fd = source.fileno(), target.fileno()
        self.mask = READ
        """What the poller reports of the source: reads of this pump, writes of the other one."""
        self.can_write = True
        """False after the target took no more, until the poller reports it."""
        self._is_source_open = True
        self._held: deque[tuple[float, bytes | memoryview]] = deque()
        self._held_size = 0

    @property
    def may_read(self) -> bool:
        return self._is_source_open and self._held_size < _HELD_SIZE_MAX

    def next_due(self) -> float:
        """Return the time at which `push` has something to do; infinity for never."""
        shaper = self.shaper
        is_next = self._held and self.can_write and not shaper.is_blocked
        return min(self._held[0][0] if is_next else _NEVER, shaper.resets_at)

    def took(self, data: bytes, now: float) -> None:
        """Hold bytes of the source until they are due. No bytes mean the end of the source."""
        if not data:
            self._is_source_open = False
            self._hold(now, b"")
            return
        for due, piece in self.shaper.shape(data, now):
            self._hold(due, piece)

    def _hold(self, due: float, piece: bytes) -> None:
        if self._held:
            due = max(due, self._held[-1][0])  # in the order of arrival
        self._held.append((due, piece))
        self._held_size += len(piece)

    def push(self, now: float) -> bytes | None:
        """Write the bytes that are due. Return a text if the connection is to be dropped."""
        held = self._held
        if self.shaper.resets_at <= now:
            return _RESET
        while held and held[0][0] <= now and self.can_write and not self.shaper.is_blocked:
            due, piece = held[0]
            if piece is END:
                return END
            try:
                if not piece:
                    self.target.shutdown(socket.SHUT_WR)
                    sent = 0
                else:
                    sent = self.target.send(piece)
            except BlockingIOError:
                self.can_write = False
                return None
            except OSError:
                return END
            self._held_size -= sent
            if sent < len(piece):
                held[0] = due, memoryview(piece)[sent:]
            else:
                held.popleft()
        return None


def _close_both(pump: _Pump, *, with_reset: bool = False) -> None:
    for each in (pump.source, pump.target):
        try:
            if with_reset and each.family != getattr(socket, "AF_UNIX", None):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
            each.close()
        except OSError:
            continue  # the peer has closed first
