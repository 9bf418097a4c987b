"""Waiting for many sockets, and waking such a wait from another thread.

Two pollers of one shape: `EpollPoller` where the system has epoll, `SelectorPoller` elsewhere.
Both are level-triggered and name sockets by descriptor. Masks are `READ`, `WRITE`, their sum, or
0 for a socket that stays known and is not waited for.
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
        """What a loop needs of the system."""

        def register(self, fd: int, mask: int, /) -> None: ...

        def modify(self, fd: int, mask: int, /) -> None: ...

        def unregister(self, fd: int, /) -> None: ...

        def poll(self, timeout: float | None, /) -> list[tuple[int, int]]: ...

        def close(self) -> None: ...


READ = 1
WRITE = 4

_HAS_EPOLL = hasattr(select, "epoll")


class EpollPoller:
    """epoll itself, level-triggered: its methods go straight to the system.

    Besides READ and WRITE a mask may hold bits of an error or a hang-up, which come for every
    known socket, asked for or not. The next call on the socket tells what it is.
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
    """The same over `selectors`, for systems without epoll."""

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
        # A selector refuses an empty set of events, so a socket without any is taken out of it.
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
        """(descriptor, mask) of what is ready, after at most `timeout` seconds (None: no limit)."""
        ready = self._selector.select(timeout)
        return [(key.fd, self._from_selector[events]) for key, events in ready]

    def close(self) -> None:
        self._selector.close()


def make_poller() -> Poller:
    """The best poller of this system."""
    return EpollPoller() if _HAS_EPOLL else SelectorPoller()


class Waker:
    """A descriptor that makes a poll return: an eventfd, or a pair of sockets where there is none.

    Not a pipe, as Windows waits for sockets only.

    `wake` may be called from any thread and from a signal handler, and costs a system call only
    for the first call since the loop last looked (0.45 us).
    """

    __slots__ = ("_is_closed", "_is_set", "_lock", "_pair", "fd")

    def __init__(self) -> None:
        self._is_set = False
        self._is_closed = False
        # Only against `close`: a descriptor number is soon somebody else's file. Re-entrant,
        # because a signal handler may call `wake` in the middle of `wake`. Nothing is taken
        # under it.
        self._lock = RLock()
        self._pair: tuple[socket, socket] | None = None
        """One to wait for, one to write to."""
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
        """Where `signal.set_wakeup_fd` may write to."""
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
        """Take the signal back. The loop looks for its reasons after this, never before."""
        try:
            if self._pair is None:
                os.read(self.fd, 8)
            else:
                self._pair[0].recv(64)
        except BlockingIOError:
            pass  # a poll may return for nothing
        finally:  # also when Ctrl-C comes here: nobody would write again
            self._is_set = False

    def close(self) -> None:
        """Close the descriptors; again is allowed."""
        with self._lock:
            self.abandon()

    def abandon(self) -> None:
        """As `close`, in a forked child: whoever held the lock is not in this process, and `wake`
        asks for it no more.
        """
        if self._is_closed:
            return
        self._is_closed = self._is_set = True
        if self._pair is None:
            os.close(self.fd)
        else:
            for each in self._pair:
                each.close()
