"""What a thread of this process is made of: what it runs, its start and end, and its sleep."""

from __future__ import annotations

from embedlog.runtime.locks import closed_gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Duty(Protocol):
        """Background work, cut into steps that return soon."""

        def run_once(self, now_ms: int) -> int | None:
            """Do what is due at `now_ms` (monotonic); never wait, never block.

            Returns milliseconds until the next call, or None when there is nothing to do until
            somebody calls `notify` with it.
            """


_LONGEST_PARK_SECONDS = 1_000_000.0


class Parked:
    """A thread that waits. `wake` may come from any thread, any number of times."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = closed_gate()

    def wake(self, _pending: object = None) -> None:
        """End the present sleep, or the next one before it begins."""
        # Asked first, as an exception costs more, and who waits is often woken twice.
        if self._lock.locked():
            try:
                self._lock.release()
            except RuntimeError:
                return  # woken already and not yet up

    def sleep(self, delay_ms: float) -> None:
        """Sleep until woken, at most `delay_ms`; never less, so that no wait spins.

        Not at all when the time is over, as it may be by now.
        """
        self._lock.acquire(timeout=max(0.0, min(delay_ms / 1000, _LONGEST_PARK_SECONDS)))


class Waiting:
    """The threads that wait for an answer, and which of them drives. Requires: its owner's lock."""

    __slots__ = ("driver", "parked")

    def __init__(self) -> None:
        self.parked: list[Parked] = []
        self.driver: Parked | None = None

    def join(self, parked: Parked, *, may_drive: bool) -> bool:
        """A thread waits, from here on or still: does it drive? The first does, if one may."""
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
        """It waits no more."""
        if parked in self.parked:
            self.parked.remove(parked)
        if self.driver is parked:
            self.driver = None

    def wake_first(self) -> None:
        """Have the thread that waits longest see whether it should drive."""
        if self.parked:
            self.parked[0].wake()


class Thread:
    """A started thread."""

    __slots__ = ("_thread",)

    def __init__(self, target: Callable[[], None], name: str) -> None:
        from threading import Thread as OsThread

        self._thread = OsThread(target=target, name=name, daemon=True)
        self._thread.start()

    def join(self, timeout_ms: int | None = None) -> bool:
        """Wait for the thread to end; say whether it has."""
        self._thread.join(None if timeout_ms is None else timeout_ms / 1000)
        return not self._thread.is_alive()
