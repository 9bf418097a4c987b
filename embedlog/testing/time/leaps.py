"""`Leaps`: time leaps while somebody waits for it (clock="auto").

Somebody waits: a request of a client waits at a broker, or a thread of this process waits for a
time-out. Time leaps if, for a few milliseconds of real time,

    no request arrived, no answer was given, and no broker works on a request,
    no group waits for a live member of another process to join again,
    and no test holds the time.

One leap goes on to the moment at which somebody gets an answer, or the wait of a thread ends; on
the way everything is done that is due. If only a test waits, with a time-out in real time, a leap
goes to the next thing that is due. Time does not leap while nobody waits: a test that computes
does not lose its records to retention.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from embedlog.runtime.threads import Parked
from embedlog.testing.time.moved_scheduler import MovedScheduler
from embedlog.testing.time.mover import Mover
from embedlog.testing.time.traffic import Traffic
from embedlog.testing.time.waits import Waits

IDLE_MS = 5
"""Real time without an event after which time leaps."""
_IDLE_OF_PROCESS_MS = 1
"""The same while only threads of this process wait: they need no time for a connection."""
_LONGEST_LEAP_MS = 24 * 3_600_000
_LONGEST_SLEEP_MS = 1 << 30
_JOIN_TIMEOUT_MS = 10_000
_STRIDE_MS = 100
"""Steps of a leap with several brokers, which have much to do for each other."""


class Leaps:
    """The thread that lets time leap, from `start` until `close`."""

    def __init__(
        self,
        scheduler: MovedScheduler,
        mover: Mover,
        waits: Waits,
        traffic: Traffic,
        *,
        is_several: bool,
    ) -> None:
        self._mover = mover
        self._waits = waits
        self._traffic = traffic
        self._stride_ms = _STRIDE_MS if is_several else 0
        self._parked = Parked()
        self._holds: dict[object, None] = {}
        self._is_closed = False
        self.count = 0
        """The number of leaps so far."""
        traffic.on_parked = self._parked.wake
        waits.on_wait = self._parked.wake
        self._thread = scheduler.start_thread(self._run, "embedlog-leaps")

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Let no leap begin before the end of the block. Blocks may be nested, in any threads."""
        token = object()
        self._holds[token] = None
        try:
            yield
        finally:
            del self._holds[token]
            self._parked.wake()

    def close(self) -> None:
        """End the thread. Idempotent."""
        self._is_closed = True
        self._parked.wake()
        self._thread.join(_JOIN_TIMEOUT_MS)

    def _run(self) -> None:
        while not self._is_closed:
            seen = self._events()
            may_leap = self._somebody_waits() and not self._holds
            idle_ms = IDLE_MS if self._traffic.is_awaited_remotely else _IDLE_OF_PROCESS_MS
            self._parked.sleep(idle_ms if may_leap else _LONGEST_SLEEP_MS)
            if may_leap and self._events() == seen and self._is_quiet():
                self._leap()

    def _events(self) -> int:
        return self._traffic.event_count + self._waits.wait_count

    def _somebody_waits(self) -> bool:
        return bool(self._is_awaited() or self._waits.watching_count)

    def _is_awaited(self) -> bool:
        """Whether some wait ends at a time of the clock."""
        return bool(self._traffic.waiting_count or self._waits.waiting_count)

    def _is_quiet(self) -> bool:
        if self._holds or self._is_closed or self._traffic.is_at_work:
            return False
        return self._somebody_waits() and not self._traffic.is_rebalancing

    def _leap(self) -> None:
        self.count += 1
        seen, steps = self._events(), iter(range(1))

        def has_arrived() -> bool:
            if self._events() != seen or not self._is_quiet():
                return True
            # Only a test waits, for whatever happens next: one step.
            return not self._is_awaited() and next(steps, None) is None

        self._mover.move(_LONGEST_LEAP_MS, has_arrived, stride_ms=self._stride_ms)
