"""Threads of this process: their duties, start, end and sleep."""

from __future__ import annotations

from embedlog.errors import EmbedlogError
from embedlog.runtime.locks import closed_gate
from embedlog.runtime.outer_call import in_own_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Duty(Protocol):
        """Background work in short steps."""

        def run_once(self, now_ms: int) -> int | None:
            """Do the work that is due at `now_ms` (monotonic), without waiting or blocking.

            Return milliseconds until the next run, or None for no run before a `notify`.
            """


_LONGEST_PARK_SECONDS = 1_000_000.0


class Parked:
    """The sleep of one thread. Any thread may call `wake`, any number of times."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = closed_gate()

    def wake(self, _pending: object = None) -> None:
        """End the present sleep, or the next one before it begins."""
        # The check costs less than an exception, and threads are often woken twice.
        if self._lock.locked():
            try:
                self._lock.release()
            except RuntimeError:
                return  # woken already

    def sleep(self, delay_ms: float) -> None:
        """Sleep until woken, but at most `delay_ms`. A `delay_ms` of 0 or less returns at once.

        Without a wake the sleep takes at least `delay_ms`, so that no wait spins.
        """
        self._lock.acquire(timeout=max(0.0, min(delay_ms / 1000, _LONGEST_PARK_SECONDS)))


class Waiting:
    """The waiting threads of a scheduler, and their driver. Requires: the scheduler's lock."""

    __slots__ = ("driver", "parked")

    def __init__(self) -> None:
        self.parked: list[Parked] = []
        self.driver: Parked | None = None

    def join(self, parked: Parked, *, may_drive: bool) -> bool:
        """Add a waiting thread; return whether it drives.

        The first thread that may drive becomes the driver.
        """
        if parked not in self.parked:
            self.parked.append(parked)
        if not may_drive:
            if self.driver is parked:
                self.driver = None
            return False
        if self.driver is None:
            self.driver = parked
        return self.driver is parked

    def leave(self, parked: Parked) -> None:
        """Remove a waiting thread."""
        if parked in self.parked:
            self.parked.remove(parked)
        if self.driver is parked:
            self.driver = None

    def wake_first(self) -> None:
        """Wake the thread that waits longest; it may begin to drive."""
        if self.parked:
            self.parked[0].wake()


class NoThread(EmbedlogError, RuntimeError):
    """The system lets this process start no more threads."""


class Thread:
    """A started thread. Its making raises NoThread if it cannot be started."""

    __slots__ = ("_thread",)

    def __init__(self, target: Callable[[], None], name: str) -> None:
        from threading import Thread as OsThread

        self._thread = OsThread(target=in_own_thread, args=(target, name), name=name, daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            raise NoThread(f"the thread {name} cannot be started: {error}") from error

    def join(self, timeout_ms: int | None = None) -> bool:
        """Wait for the thread to end; return whether it ended."""
        self._thread.join(None if timeout_ms is None else timeout_ms / 1000)
        return not self._thread.is_alive()
