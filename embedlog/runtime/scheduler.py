"""Background work without background threads, and the one place where a thread waits.

A *duty* is an object with `run_once(now_ms) -> next_delay_ms | None`: timers, retention,
checkpoints. Duties run in whichever thread drives: a thread that waits for an answer, or a
listener's loop once there is one. No thread is started unless somebody asks for one.

Who drives, and how a thread waits:

    a listener registered with on_notify   it calls run_due in its loop; waiting threads only park
    otherwise                              one of the waiting threads drives: it runs what is due,
                                           then parks until the next duty; the others only park

A parked thread sleeps on a lock of its own until its answer arrives, its time is over, or it must
take over the driving; a wake-up costs about 30 us, and nothing polls.
"""

from __future__ import annotations

from _thread import RLock, allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from embedlog.pending import Pending
    from embedlog.runtime.clock import Clock

    class Duty(Protocol):
        """Background work, cut into steps that return soon."""

        def run_once(self, now_ms: int) -> int | None:
            """Do what is due at `now_ms` (monotonic); never wait, never block.

            Returns milliseconds until the next call, or None when there is nothing to do until
            somebody calls `notify` with it.
            """


_FAILED_DUTY_DELAY_MS = 1000
_LONGEST_PARK_SECONDS = 1_000_000.0
_NEVER = float("inf")


class Scheduler:
    """Runs duties and parks threads. Every method may be called from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = RLock()  # for the reason given in `embedlog.pending`
        self._running = allocate_lock()
        """Held while duties run: they never run side by side."""
        self._due: dict[Duty, float] = {}
        self._next_due: float = _NEVER
        self._hurried: set[Duty] = set()
        """Those to ask again. Each leaves before it is run: a notify is never lost."""
        self._listeners: list[Callable[[], None]] = []
        self._parked: list[_Parked] = []
        self._driver: _Parked | None = None

    def add(self, duty: Duty) -> None:
        """Run `duty` from now on, the first time at once."""
        with self._lock:
            self._due[duty] = _NEVER
        self.notify(duty)

    def remove(self, duty: Duty) -> None:
        """Forget `duty`. A call of it that is under way in another thread still ends."""
        with self._lock:
            self._due.pop(duty, None)
            self._hurried.discard(duty)

    def notify(self, duty: Duty) -> None:
        """`duty` may be due sooner than it said: whoever drives asks it again."""
        self._hurried.add(duty)
        driver = self._driver
        if driver is not None:
            driver.wake()
        for wake in self._listeners:
            wake()

    def on_notify(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Register a thread that calls `run_due` for as long as it lives; it is the driver.

        `wake` makes that thread call `run_due` soon; it is called from any thread. The returned
        function ends the registration: waiting threads drive again.
        """
        with self._lock:
            self._listeners = [*self._listeners, wake]
            self._wake_driver()

        def resign() -> None:
            with self._lock:
                self._listeners = [other for other in self._listeners if other is not wake]
                self._wake_someone()

        wake()
        return resign

    def run_due(self, now_ms: int) -> int | None:
        """Run the duties that are due; return milliseconds to the next one, None if none will be.

        An exception of a duty passes through; that duty is tried again a second later.
        """
        hurried = self._hurried
        if now_ms < self._next_due and not hurried:
            return _delay(self._next_due, now_ms)
        if not self._running.acquire(blocking=False):
            return 1  # another thread runs them at this moment
        try:
            for duty in hurried.copy():  # in one step, unlike a tuple of it
                with self._lock:
                    if duty in self._due:
                        self._due[duty] = -_NEVER
                hurried.discard(duty)
            for duty, due in self._snapshot():
                if due <= now_ms:
                    self._run(duty, now_ms)
        finally:
            with self._lock:
                self._next_due = min(self._due.values(), default=_NEVER)
            self._running.release()
        return 0 if hurried else _delay(self._next_due, now_ms)

    def wait(self, pending: Pending[object], timeout_ms: int | None) -> bool:
        """Wait until `pending` is done, at most `timeout_ms` (None: for ever); say whether it is.

        Drives the duties meanwhile when nobody else does. Duties and threads registered with
        `on_notify` must not call it.
        """
        if pending.done():
            return True
        clock = self._clock
        deadline = _NEVER if timeout_ms is None else clock.monotonic_ms() + timeout_ms
        parked = _Parked()
        pending.add_callback(parked.wake)
        try:
            while not pending.done():
                now_ms = clock.monotonic_ms()
                until = deadline
                if self._drives(parked):
                    delay = self.run_due(now_ms)
                    if delay is not None:
                        until = min(until, clock.monotonic_ms() + delay)
                    if pending.done():
                        break
                    now_ms = clock.monotonic_ms()
                if now_ms >= deadline:
                    break
                parked.sleep(until - now_ms)
        finally:
            self._leave(parked)
        return pending.done()

    def start_thread(self, target: Callable[[], None], name: str) -> Thread:
        """Run `target` in a thread of its own, which does not keep the process alive."""
        return Thread(target, name)

    # Driving

    def _snapshot(self) -> list[tuple[Duty, float]]:
        with self._lock:
            return list(self._due.items())

    def _run(self, duty: Duty, now_ms: int) -> None:
        delay: int | None = _FAILED_DUTY_DELAY_MS
        try:
            delay = duty.run_once(now_ms)
        finally:
            with self._lock:
                if duty in self._due:
                    self._due[duty] = _NEVER if delay is None else now_ms + delay

    def _drives(self, parked: _Parked) -> bool:
        """Make `parked` the driver if there is none; also note that it waits."""
        with self._lock:
            if parked not in self._parked:
                self._parked.append(parked)
            if self._listeners:
                if self._driver is parked:
                    self._driver = None
                return False
            if self._driver is None:
                self._driver = parked
            return self._driver is parked

    def _leave(self, parked: _Parked) -> None:
        with self._lock:
            if parked in self._parked:
                self._parked.remove(parked)
            if self._driver is parked:
                self._driver = None
            if self._driver is None and self._parked:
                # Also when this thread was only asked to take over and had no time for it.
                self._wake_someone()

    def _wake_driver(self) -> None:
        if self._driver is not None:
            self._driver.wake()

    def _wake_someone(self) -> None:
        if self._parked and not self._listeners:
            self._parked[0].wake()


class _Parked:
    """A thread that waits. `wake` may come from any thread, any number of times."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._lock.acquire()

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


def _delay(due: float, now_ms: int) -> int | None:
    if due == _NEVER:
        return None
    return max(0, int(due - now_ms))
