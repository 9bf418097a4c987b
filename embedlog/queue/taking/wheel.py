"""`Wheel`: lets one of several threads drive a client that only one thread may use.

The thread that drives works until its own claim is met or its time is over. The other threads park.
A thread that leaves the wheel wakes the thread that has parked for the longest time, which takes
the wheel unless its claim is met.
"""

from __future__ import annotations

from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.runtime.threads import Parked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.common import T
    from embedlog.runtime.clock import Clock


class Wheel:
    """The choice of the driving thread. Any thread may call its methods."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.lock = ranked_lock(Rank.QUEUE)
        """Guards the state that claims look at."""
        self.is_driven = False
        self._parked: list[Parked] = []

    def until(
        self,
        claim: Callable[[], T | None],
        drive: Callable[[Callable[[], bool], int], None],
        timeout_ms: int,
    ) -> T | None:
        """Drive, or park while another thread drives, until `claim` returns something.

        `claim` is called under the lock. `drive(is_met, until_ms)` works until `is_met()`, which it
        calls under the lock, or until the monotonic time `until_ms`; it makes one pass at least.
        """
        found: T | None = None

        def is_met() -> bool:
            nonlocal found
            found = claim()
            return found is not None

        until_ms = self._clock.monotonic_ms() + timeout_ms
        me = Parked()
        try:
            while True:
                with self.lock:
                    if is_met():
                        return found
                    drives = not self.is_driven
                    if drives:
                        self.is_driven = True
                    elif me not in self._parked:
                        self._parked.append(me)
                if drives:
                    try:
                        drive(is_met, until_ms)
                    finally:
                        self.is_driven = False
                    return found
                left_ms = until_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    return None
                me.sleep(left_ms)
        finally:
            self._leave(me)

    def _leave(self, me: Parked) -> None:
        with self.lock:
            if me in self._parked:
                self._parked.remove(me)
            if not self.is_driven:
                self.wake(1)

    def wait_until_free(self, timeout_ms: int) -> bool:
        """Wait until no thread drives; return False if that took longer than `timeout_ms`."""

        def drive(_is_met: object, _until_ms: int) -> None:
            raise AssertionError("the claim was met")

        return bool(self.until(lambda: not self.is_driven or None, drive, timeout_ms))

    def try_now(self, work: Callable[[], T]) -> T | None:
        """Do `work` at the wheel; return None at once if another thread is there."""
        with self.lock:
            if self.is_driven:
                return None
            self.is_driven = True
        try:
            return work()
        finally:
            with self.lock:
                self.is_driven = False
                self.wake(1)

    def wake(self, count: int) -> None:
        """Let parked threads look at their claims again. Requires: the lock."""
        for parked in self._parked[:count]:
            parked.wake()

    def wake_all(self) -> None:
        """Let all parked threads look at their claims again."""
        with self.lock:
            self.wake(len(self._parked))
