"""`Loop`: one thread waits for sockets, and does there what other threads ask for."""

from __future__ import annotations

from _thread import get_ident
from collections import deque

from wire.net.poller import READ, Waker, make_poller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from wire.net.poller import Poller


class Loop:
    """The wait, what ends it, and what is to be done after it.

    `now` is the time at which the last wait ended, on the loop's clock.
    """

    __slots__ = (
        "_clock",
        "_is_waiting",
        "_poll",
        "_thread",
        "_waker",
        "has_news",
        "is_stopping",
        "late",
        "now",
        "poller",
    )

    def __init__(self, poller: Poller | None, clock: Callable[[], float]) -> None:
        self.poller = poller if poller is not None else make_poller()
        self.now = clock()
        self.late: deque[tuple[Any, Callable[[Any, Any], None], object]] = deque()
        """What was posted and is not done."""
        self.has_news = False
        """Was `wake` called since this was last set to False?"""
        self.is_stopping = False
        self._poll = self.poller.poll
        self._clock = clock
        self._thread = 0
        """The one that runs the loop."""
        self._is_waiting = False
        self._waker = Waker()
        self.poller.register(self._waker.fd, READ)

    @property
    def is_this_thread(self) -> bool:
        """Is the caller the thread that runs the loop?"""
        return self._thread == get_ident()

    @property
    def signal_fd(self) -> int:
        """See `Waker.signal_fd`."""
        return self._waker.signal_fd

    def begin(self) -> None:
        """The calling thread runs the loop from here on."""
        self._thread = get_ident()

    def end(self) -> None:
        """No thread runs it any more."""
        self._thread = 0

    def wait(self, timeout: float | None) -> list[tuple[int, int]]:
        """(descriptor, mask) of what is ready, after at most `timeout` seconds; None: no limit."""
        # Set before looking: whoever brings news later sees it, and wakes the poll.
        self._is_waiting = True
        if self.has_news or self.late:
            timeout = 0.0
        ready = self._poll(timeout)
        self._is_waiting = False
        self.now = self._clock()
        return ready

    def stop(self) -> None:
        """Have `is_stopping` seen soon. From any thread, or a signal handler."""
        self.is_stopping = True
        self.wake()

    def wake(self) -> None:
        """End the current or next wait. From any thread."""
        self.has_news = True
        if self._is_waiting:
            self._waker.wake()

    def post(self, target: object, action: Callable[[Any, Any], None], value: object) -> None:
        """Have `action(target, value)` called in the loop's thread. From any thread."""
        self.late.append((target, action, value))
        if self._is_waiting:
            self._waker.wake()

    def was_woken(self, fd: int) -> bool:
        """Is that the descriptor that ends a wait? Then it may do so again."""
        if fd != self._waker.fd:
            return False
        self._waker.clear()
        return True

    def close(self) -> None:
        """Give the descriptors back."""
        self.late.clear()
        self._waker.close()
        self.poller.close()

    def abandon(self) -> None:
        """As `close`, in a forked child: see `Waker.abandon`."""
        self.late.clear()
        self._waker.abandon()
        self.poller.close()
