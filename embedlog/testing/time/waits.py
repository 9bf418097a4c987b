"""`Waits`: the threads of this process that wait by a clock which a test moves."""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakSet

from embedlog.runtime.duty_thread import DutyThread
from embedlog.runtime.threads import Parked

_NEVER = float("inf")
_STEP_TIMEOUT_MS = 20
"""Real time for a thread whose wait has ended to come back to its next wait."""


class Waits:
    """The threads that wait by one clock. Every method may be called from any thread."""

    def __init__(self, monotonic_ms: Callable[[], int], real_ms: Callable[[], int]) -> None:
        """`monotonic_ms` is the time that a test moves, `real_ms` the machine's."""
        self._monotonic_ms = monotonic_ms
        self._real_ms = real_ms
        self._deadlines: dict[int, float] = {}
        """Ident of each waiting thread -> the monotonic time at which its wait ends."""
        self._came_back = Parked()
        """Wakes the moving thread when another thread begins to wait."""
        self.threads: WeakSet[WakeableDutyThread] = WeakSet()
        """Threads of duties, which sleep by themselves."""
        self.wait_count = 0
        """Grows with each wait."""
        self._watching: dict[int, None] = {}
        """Ident of each thread that waits in real time."""
        self.on_wait: Callable[[], object] = _nothing
        """Called when a thread begins to wait, in that thread."""

    @contextmanager
    def waiting(self, timeout_ms: int | None) -> Iterator[None]:
        """Note that the calling thread waits, within the block."""
        ident = get_ident()
        now_ms = self._monotonic_ms()
        self._deadlines[ident] = _NEVER if timeout_ms is None else now_ms + timeout_ms
        self._came_back.wake()
        self._begin_wait()
        try:
            yield
        finally:
            self._deadlines.pop(ident, None)

    @contextmanager
    def watching(self, timeout_ms: int) -> Iterator[Callable[[], int]]:
        """Note that the calling thread waits in real time; yield a function for the rest of it."""
        end_ms = self._real_ms() + timeout_ms
        self._watching[get_ident()] = None
        self._begin_wait()
        try:
            yield lambda: end_ms - self._real_ms()
        finally:
            self._watching.pop(get_ident(), None)

    def _begin_wait(self) -> None:
        self.wait_count += 1
        self.on_wait()

    @property
    def watching_count(self) -> int:
        """The number of threads that wait in real time."""
        return len(self._watching)

    @property
    def waiting_count(self) -> int:
        """The number of threads whose waits end at some time of the clock."""
        return sum(end_ms != _NEVER for end_ms in list(self._deadlines.values()))

    # For a move of the clock

    def ends(self) -> list[float]:
        """Return the monotonic time of the end of each wait."""
        return list(self._deadlines.values())

    def let_go(self, now_ms: int, wake: Callable[[], object]) -> None:
        """Let the threads go on whose waits have ended, up to their next waits.

        `wake` wakes all threads that wait.
        """
        ended = {
            ident: end_ms for ident, end_ms in list(self._deadlines.items()) if end_ms <= now_ms
        }
        if not ended:
            return
        wake()
        began_ms = self._real_ms()
        while any(self._deadlines.get(ident, end_ms) == end_ms for ident, end_ms in ended.items()):
            left_ms = began_ms + _STEP_TIMEOUT_MS - self._real_ms()
            if left_ms <= 0:
                return
            self._came_back.sleep(left_ms)


class WakeableDutyThread(DutyThread):
    """A `DutyThread` that notices a jump."""

    __slots__ = ("__weakref__",)

    def look_again(self) -> None:
        """End the present sleep, so that the duty runs if its time has come."""
        self._parked.wake()


def _nothing() -> None:
    pass
