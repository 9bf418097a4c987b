"""`Signals` and `Waiter`: threads of a test that wait for the cluster to change.

    coordinators, metadata      `Runtime.watchers`, set only while a thread waits
    partitions                  `Partition.watchers`, set by the conditions that read records
    requests                    a stage, set by the conditions that count requests

A signal only wakes the thread; the thread then looks at the cluster itself. Nothing polls. The time
limit is real time, also if the cluster has a clock of a test.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable
from typing import Any, TypeVar

from embedlog.cluster.cluster import Cluster
from embedlog.errors import ConfigError
from embedlog.runtime.clock import Clock
from embedlog.runtime.outer_call import outer
from embedlog.runtime.pending import Pending
from embedlog.runtime.scheduler import Scheduler
from embedlog.runtime.threads import Parked
from embedlog.testing.sim_scheduler import SimScheduler

T = TypeVar("T")

QUIET: set[int] = set()
"""Threads that read from a coordinator for a test at this moment. Their reads are operations as
well, and would wake the waiting threads in a ring."""

_LOOKING: set[int] = set()
"""Threads in the look of their own wait, which must not wake itself again and again."""


def milliseconds(seconds: float, name: str = "timeout") -> int:
    """Return a time limit in milliseconds. Raise ConfigError unless it is a number from 0 on."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise ConfigError(f"{name}={seconds!r}: expected a number of seconds from 0 on")
    return int(min(seconds, 1e9) * 1000)


class Signals:
    """The waiting threads of one cluster. Every method may be called from any thread."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._waiters: list[Waiter] = []

    def enter(self, waiter: Waiter) -> None:
        self._waiters.append(waiter)
        watchers = self.cluster.runtime.watchers
        if self.changed not in watchers:
            watchers.append(self.changed)

    def leave(self, waiter: Waiter) -> None:
        self._waiters.remove(waiter)
        watchers = self.cluster.runtime.watchers
        if not self._waiters:
            while self.changed in watchers:  # two threads may have entered at once
                watchers.remove(self.changed)
            if self._waiters:  # a thread has entered meanwhile
                watchers.append(self.changed)

    def changed(self) -> None:
        """Wake every waiting thread. The caller may hold any lock."""
        me = get_ident()
        if me in QUIET:
            return
        is_looking = me in _LOOKING
        for waiter in list(self._waiters):
            if not (is_looking and waiter.thread == me):
                waiter.wake()


class Waiter:
    """The wait of one thread."""

    def __init__(self, signals: Signals, limit_ms: int) -> None:
        self._signals = signals
        runtime = signals.cluster.runtime
        self._scheduler = runtime.scheduler
        is_simulated = isinstance(runtime.scheduler, SimScheduler)
        self._clock = runtime.clock if is_simulated else Clock()
        self._needs_alarm = not is_simulated and type(runtime.clock) is not Clock
        self._alarm: _Alarm | None = None
        self._limit_ms = limit_ms
        self._deadline_ms = self._clock.monotonic_ms() + limit_ms
        self._signal: Pending[object] = Pending()
        self.is_cancelled = False
        self.thread = get_ident()

    def wake(self) -> None:
        """Let the thread look again. The caller may hold any lock."""
        self._signal.complete(None)

    def cancel(self) -> None:
        """End the wait: nobody needs its result any more."""
        self.is_cancelled = True
        self.wake()

    def run(self, look: Callable[[], T | None], *, heeds_own: bool = False) -> T | None:
        """Call `look` now and after each change. Return its first result that is not None.

        Return None after the time limit, or after `cancel`. `heeds_own`: changes that `look` makes
        itself count as well.
        """
        self._signals.enter(self)
        try:
            while True:
                # Made before the look: a change during the look ends the sleep after it.
                signal = self._signal = Pending()
                found = look() if heeds_own else _looked(look)
                if found is not None or self.is_cancelled:
                    return found
                left_ms = self._deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    return None
                self._sleep(signal, left_ms)
        finally:
            self._signals.leave(self)
            if self._alarm is not None:
                self._alarm.stop()

    def until_done(self, pending: Pending[Any]) -> None:
        """Wait for an answer, until the time limit."""
        signal = self._signal = Pending()

        def arrived(_done: Pending[Any]) -> None:
            signal.complete(None)

        pending.add_callback(arrived)
        try:
            self._sleep(signal, self._limit_ms)
        finally:
            if self._alarm is not None:
                self._alarm.stop()

    def _sleep(self, signal: Pending[object], left_ms: int) -> None:
        is_looking = self.thread in _LOOKING
        _LOOKING.discard(self.thread)  # a waiting thread may do work of the brokers
        try:
            self._park(signal, left_ms)
        finally:
            if is_looking:
                _LOOKING.add(self.thread)

    @outer
    def _park(self, signal: Pending[object], left_ms: int) -> None:
        if not self._needs_alarm:
            self._scheduler.wait(signal, left_ms)
            return
        # The scheduler counts by the clock of the test, which may stand still.
        if self._alarm is None:
            self._alarm = _Alarm(self._scheduler, left_ms, self.wake)
        self._scheduler.wait(signal, None)


def _looked(look: Callable[[], T | None]) -> T | None:
    me = get_ident()
    if me in _LOOKING:
        return look()
    _LOOKING.add(me)
    try:
        return look()
    finally:
        _LOOKING.discard(me)


class _Alarm:
    """A thread that wakes a waiter at the end of its real time."""

    def __init__(self, scheduler: Scheduler, delay_ms: int, ring: Callable[[], None]) -> None:
        self._delay_ms = delay_ms
        self._ring = ring
        self._parked = Parked()
        scheduler.start_thread(self._run, "embedlog-test-alarm")

    def _run(self) -> None:
        self._parked.sleep(self._delay_ms)
        self._ring()

    def stop(self) -> None:
        self._parked.wake()
