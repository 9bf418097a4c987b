"""`Loop`: one thread waits for sockets and runs the actions that other threads post."""

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
    """Waits for sockets, wake-ups and posted actions.

    `now` is the time at which the last wait ended, on the loop's clock.
    """

    def __init__(self, poller: Poller | None, clock: Callable[[], float]) -> None:
        self.poller = poller if poller is not None else make_poller()
        self.now = clock()
        self.late: deque[tuple[Any, Callable[[Any, Any], None], object]] = deque()
        """Posted actions, (target, action, value), that are still to be run."""
        self.has_news = False
        """True after `wake`, until the code that runs the loop sets it to False."""
        self.is_stopping = False
        self._poll = self.poller.poll
        self._clock = clock
        self._thread = 0
        """Id of the thread that runs the loop; 0 if no thread does."""
        self._is_waiting = False
        self._waker = Waker()
        self.poller.register(self._waker.fd, READ)

    @property
    def is_this_thread(self) -> bool:
        """True if the calling thread runs the loop."""
        return self._thread == get_ident()

    @property
    def signal_fd(self) -> int:
        return self._waker.signal_fd

    def begin(self) -> None:
        """Record that the calling thread runs the loop."""
        self._thread = get_ident()

    def end(self) -> None:
        """Record that no thread runs the loop."""
        self._thread = 0

    def wait(self, timeout: float | None) -> list[tuple[int, int]]:
        """Wait at most `timeout` seconds (None: no limit); return the ready (descriptor, mask)s."""
        # Set this before checking for news: a thread that posts after the check then sees that it
        # must wake the poll.
        self._is_waiting = True
        if self.has_news or self.late:
            timeout = 0.0
        ready = self._poll(timeout)
        self._is_waiting = False
        self.now = self._clock()
        return ready

    def stop(self) -> None:
        """Set `is_stopping` and end the wait. Any thread or signal handler may call it."""
        self.is_stopping = True
        self.wake()

    def wake(self) -> None:
        """End the current or next wait. Any thread may call it."""
        self.has_news = True
        if self._is_waiting:
            self._waker.wake()

    def post(self, target: object, action: Callable[[Any, Any], None], value: object) -> None:
        """Call `action(target, value)` in the loop's thread, soon. Any thread may call it."""
        self.late.append((target, action, value))
        if self._is_waiting:
            self._waker.wake()

    def was_woken(self, fd: int) -> bool:
        """Return whether `fd` is the waker's descriptor, and reset the waker if so."""
        if fd != self._waker.fd:
            return False
        self._waker.clear()
        return True

    def close(self) -> None:
        self.late.clear()
        self._waker.close()
        self.poller.close()

    def abandon(self) -> None:
        """Close the descriptors in a forked child: see `Waker.abandon`."""
        self.late.clear()
        self._waker.abandon()
        self.poller.close()
