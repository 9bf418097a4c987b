"""Waiting for many sockets, and ending the wait from another thread.

`EpollPoller` is for systems with epoll, `SelectorPoller` for others. Both are level-triggered and
name sockets by descriptor. A mask is `READ`, `WRITE`, their sum, or 0 for a registered socket
that the poller does not wait for.
"""

from __future__ import annotations

import os
import select
from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from selectors import BaseSelector
    from socket import socket
    from typing import Protocol

    class Poller(Protocol):
        """Waits for registered sockets: an `EpollPoller`, a `SelectorPoller`, or a test's fake."""

        def register(self, fd: int, mask: int, /) -> None: ...

        def modify(self, fd: int, mask: int, /) -> None: ...

        def unregister(self, fd: int, /) -> None: ...

        def poll(self, timeout: float | None, /) -> list[tuple[int, int]]: ...

        def close(self) -> None: ...


READ = 1
WRITE = 4

_HAS_EPOLL = hasattr(select, "epoll")


class EpollPoller:
    """The system's epoll, level-triggered; its methods are epoll's own.

    A reported mask may also have bits for an error or a hang-up, which epoll reports for every
    registered socket. The next call on the socket then raises the error.
    """

    def __init__(self) -> None:
        assert select.EPOLLIN == READ, select.EPOLLIN
        assert select.EPOLLOUT == WRITE, select.EPOLLOUT
        epoll = select.epoll()
        self.poll = epoll.poll
        self.register = epoll.register
        self.modify = epoll.modify
        self.unregister = epoll.unregister
        self.close = epoll.close


class SelectorPoller:
    """A poller over `selectors`, for systems without epoll."""

    def __init__(self) -> None:
        from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector

        self._selector: BaseSelector = DefaultSelector()
        self._masks: dict[int, int] = {}
        self._to_selector = {READ: EVENT_READ, WRITE: EVENT_WRITE, 5: EVENT_READ | EVENT_WRITE}
        self._from_selector = {event: mask for mask, event in self._to_selector.items()}

    def register(self, fd: int, mask: int) -> None:
        self._masks[fd] = mask
        if mask:
            self._selector.register(fd, self._to_selector[mask])

    def modify(self, fd: int, mask: int) -> None:
        # A selector refuses an empty set of events, so a mask of 0 unregisters the socket.
        previous, self._masks[fd] = self._masks[fd], mask
        if previous and mask:
            self._selector.modify(fd, self._to_selector[mask])
        elif previous:
            self._selector.unregister(fd)
        elif mask:
            self._selector.register(fd, self._to_selector[mask])

    def unregister(self, fd: int) -> None:
        if self._masks.pop(fd):
            self._selector.unregister(fd)

    def poll(self, timeout: float | None) -> list[tuple[int, int]]:
        """Wait at most `timeout` seconds (None: no limit); return the ready (descriptor, mask)s."""
        ready = self._selector.select(timeout)
        return [(key.fd, self._from_selector[events]) for key, events in ready]

    def close(self) -> None:
        self._selector.close()


def make_poller() -> Poller:
    """Return the best poller of this system."""
    return EpollPoller() if _HAS_EPOLL else SelectorPoller()


class Waker:
    """A descriptor that makes a poll return: an eventfd, or else a pair of sockets.

    A pipe would not do, because Windows can wait for sockets only. Any thread or signal handler may
    call `wake`; only the first call after a `clear` costs a system call (0.45 us).
    """

    def __init__(self) -> None:
        self._is_set = False
        self._is_closed = False
        # Keeps `wake` from writing to a descriptor that `close` has closed: another file may reuse
        # the number. Re-entrant, because a signal handler may call `wake` in the middle of `wake`.
        # No other lock is taken while it is held.
        self._lock = RLock()
        self._pair: tuple[socket, socket] | None = None
        """The socket to poll, and the socket to write to."""
        if hasattr(os, "eventfd"):
            self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        else:
            from socket import socketpair

            self._pair = socketpair()
            for each in self._pair:
                each.setblocking(False)
            self.fd = self._pair[0].fileno()

    @property
    def signal_fd(self) -> int:
        """The descriptor for `signal.set_wakeup_fd`."""
        return self.fd if self._pair is None else self._pair[1].fileno()

    def wake(self) -> None:
        """Make the loop's current or next poll return. Does nothing once closed."""
        if not self._is_set:
            self._is_set = True
            with self._lock:
                if self._is_closed:
                    return
                if self._pair is None:
                    os.write(self.fd, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # an int of 8 bytes
                else:
                    self._pair[1].send(b"\x01")

    def clear(self) -> None:
        """Reset the waker. The loop must check for news after this call, not before it."""
        try:
            if self._pair is None:
                os.read(self.fd, 8)
            else:
                self._pair[0].recv(64)
        except BlockingIOError:
            pass  # a spurious wake-up
        finally:  # even after Ctrl-C: otherwise `wake` would never write again
            self._is_set = False

    def close(self) -> None:
        """Close the descriptors. Idempotent."""
        with self._lock:
            self.abandon()

    def abandon(self) -> None:
        """Close the descriptors in a forked child, without taking the lock.

        The thread that held the lock at the fork does not exist in the child.
        """
        if self._is_closed:
            return
        self._is_closed = self._is_set = True
        if self._pair is None:
            os.close(self.fd)
        else:
            for each in self._pair:
                each.close()
