"""Background work without background threads, and the one place where a thread waits.

A *duty* is an object with `run_once(now_ms) -> next_delay_ms | None`: timers, retention,
checkpoints. Duties run in whichever thread drives: a thread that waits for an answer, or a
listener's loop once there is one. No thread is started unless somebody asks for one.

Who drives, and how a thread waits:

    a thread registered with on_notify     it calls run_due in its loop; waiting threads only park
    otherwise, while threads wait          one of them drives: it runs what is due, then parks until
                                           the next duty; the others only park
    otherwise                              calls of clients in this process: each compares the clock
                                           with `next_call_ns`, and calls `drive` when it is time

A parked thread sleeps on a lock of its own until its answer arrives, its time is over, or it must
take over the driving; a wake-up costs about 30 us, and nothing polls.
"""

from __future__ import annotations

from _thread import get_ident

from embedlog.common import T
from embedlog.runtime.duty_thread import DutyThread
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.runtime.threads import Parked, Thread, Waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.runtime.clock import Clock
    from embedlog.runtime.pending import Pending
    from embedlog.runtime.threads import Duty


_FAILED_DUTY_DELAY_MS = 1000
_NEVER = float("inf")
_NEVER_NS = 1 << 63
_NS = 1_000_000


class Scheduler:
    """Runs duties and parks threads. Every method may be called from any thread."""

    def __init__(
        self, clock: Clock, in_order: Callable[[list[Duty]], list[Duty]] | None = None
    ) -> None:
        """`in_order` is given the duties that are due at one moment; they run as it orders them."""
        self._clock = clock
        self._in_order = in_order
        self._lock = ranked_rlock(Rank.SCHEDULER)  # why: `runtime.pending`
        self._running = ranked_rlock(Rank.RUNNING)
        """Held while duties run: they never run side by side."""
        self._runner = 0
        """The thread that runs them."""
        self.now_ns = clock.monotonic_source()
        """The monotonic clock, for `next_call_ns`."""
        self.next_call_ns = _NEVER_NS
        """When a client's call shall `drive`."""
        self._due: dict[Duty, float] = {}
        self._next_due: float = _NEVER
        self._hurried: set[Duty] = set()
        """Those to ask again. Each leaves before it is run: a notify is never lost."""
        self._patient: dict[Duty, int] = {}
        """Of these, the ones that calls leave undone until a time."""
        self.failing: dict[Duty, tuple[int, Exception]] = {}
        """Duties that failed when they were last run -> since when, as wall time, and why."""
        self._listeners: list[Callable[[], None]] = []
        self._waiting = Waiting()

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
            self._patient.pop(duty, None)
            self.failing.pop(duty, None)

    def notify(self, duty: Duty, patience_ms: int = 0) -> None:
        """`duty` may be due sooner than it said: whoever drives asks it again.

        `patience_ms`: where no thread drives, calls of clients leave it undone for so long.
        """
        if not self._listeners:
            due_ns = self.now_ns() + patience_ms * _NS
            if patience_ms:
                self._patient.setdefault(duty, due_ns // _NS)
            self.next_call_ns = min(self.next_call_ns, due_ns)
        self._hurried.add(duty)
        driver = self._waiting.driver
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
            self.next_call_ns = _NEVER_NS
            if self._waiting.driver is not None:
                self._waiting.driver.wake()

        def resign() -> None:
            with self._lock:
                self._listeners = [other for other in self._listeners if other is not wake]
                self._note_next_call(0 if self._hurried else _NEVER)
                if not self._listeners:
                    self._waiting.wake_first()

        wake()
        return resign

    def run_due(self, now_ms: int, *, is_call: bool = False) -> int | None:
        """Run the duties that are due; return milliseconds to the next one, None if none will be.

        `is_call`: by a client's call, which leaves alone what was said to be patient.
        A duty that raises is logged, and tried again a second later: the thread that happens to
        drive has nothing to do with it. KeyboardInterrupt and SystemExit are the thread's own, and
        pass.
        """
        hurried = self._hurried
        if now_ms < self._next_due and not hurried:
            return _delay(self._next_due, now_ms)
        if self._runner == get_ident():
            return 1
        try:
            if not self._running.acquire(blocking=False):
                return 1  # another thread runs them at this moment
            self._runner = get_ident()
            for duty in hurried.copy():  # in one step, unlike a tuple of it
                if is_call and self._patient.get(duty, now_ms) > now_ms:
                    continue
                self._patient.pop(duty, None)
                with self._lock:
                    if duty in self._due:
                        self._due[duty] = -_NEVER
                hurried.discard(duty)
            due = [duty for duty, due_ms in self.duties() if due_ms <= now_ms]
            for duty in due if self._in_order is None else self._in_order(due):
                self._run(duty, now_ms)
        finally:
            try:
                self._end_run(now_ms)
            finally:
                self._end_run(now_ms)  # nothing is left, unless a KeyboardInterrupt came in it
        return 0 if hurried else _delay(self._next_due, now_ms)

    def drive(self) -> None:
        """Run what is due if no thread is there to do it. Requires: no lock, as for `wait`.

        For clients of this process, after a call when `next_call_ns` has come.
        """
        if not self._listeners and self._waiting.driver is None:
            self.run_due(self._clock.monotonic_ms(), is_call=True)

    def exclusively(self, step: Callable[[], T]) -> T:
        """Run `step` while no duty runs, after the one that does."""
        if self._runner == get_ident():
            return step()
        with self._running:
            self._runner = get_ident()
            try:
                return step()
            finally:
                self._runner = 0

    def wait(self, pending: Pending[object], timeout_ms: int | None) -> bool:
        """Wait until `pending` is done, at most `timeout_ms` (None: for ever); say whether it is.

        Drives the duties meanwhile when nobody else does. Duties and threads registered with
        `on_notify` must not call it.
        """
        if pending.done():
            return True
        clock = self._clock
        deadline = _NEVER if timeout_ms is None else clock.monotonic_ms() + timeout_ms
        parked = Parked()
        pending.add_callback(parked.wake)
        try:
            while not pending.done():
                now_ms = clock.monotonic_ms()
                until = deadline
                with self._lock:
                    drives = self._waiting.join(parked, may_drive=not self._listeners)
                if drives:
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
            with self._lock:
                self._waiting.leave(parked)
                if self._waiting.driver is None and not self._listeners:
                    # Also when this thread was only asked to take over and had no time for it.
                    self._waiting.wake_first()
        return pending.done()

    def start_thread(self, target: Callable[[], None], name: str) -> Thread:
        """Run `target` in a thread of its own, which does not keep the process alive."""
        return Thread(target, name)

    def duty_thread(self, duty: Duty, name: str) -> DutyThread:
        """A thread for a duty that may run a user's code, which this scheduler must not run."""
        return DutyThread(duty, name, self._clock, self.start_thread)

    def at_exit(self, function: Callable[[], None], order: int) -> Callable[[], None]:
        """Call `function` before the interpreter ends: see `runtime.at_exit`."""
        from embedlog.runtime import at_exit

        return at_exit.register(function, order)

    @property
    def is_watched(self) -> bool:
        """Does a thread wait here, or a listener serve others, so that delays would be seen?"""
        return bool(self._waiting.parked or self._listeners)

    # Driving

    def _note_next_due(self, now_ms: int) -> None:
        with self._lock:
            self._next_due = min(self._due.values(), default=_NEVER)
            patient, hurried = self._patient, self._hurried
            left = [patient.get(duty, now_ms) for duty in hurried.copy()] if hurried else ()
            self._note_next_call(min(left, default=_NEVER))

    def _end_run(self, now_ms: int) -> None:
        # Asked of the lock: a KeyboardInterrupt may come before anything else could be noted.
        if self._running._is_owned():  # type: ignore[attr-defined]  # not in the stubs
            try:
                self._note_next_due(now_ms)
            finally:
                self._runner = 0
                self._running.release()

    def duties(self) -> list[tuple[Duty, float]]:
        """Those that were added, each with the time at which it is due."""
        with self._lock:
            return list(self._due.items())

    def _run(self, duty: Duty, now_ms: int) -> None:
        delay: int | None = _FAILED_DUTY_DELAY_MS
        try:
            delay = duty.run_once(now_ms)
            if self.failing:
                self.failing.pop(duty, None)
        except Exception as error:
            self._failed(duty, error)
        finally:
            with self._lock:
                if duty in self._due:
                    self._due[duty] = _NEVER if delay is None else now_ms + delay

    def _failed(self, duty: Duty, error: Exception) -> None:
        from logging import getLogger

        since_ms, _ = self.failing.get(duty, (self._clock.wall_ms(), error))
        self.failing[duty] = (since_ms, error)
        getLogger("embedlog.runtime").error(
            "background work of %s failed; it is tried again in %d ms",
            type(duty).__name__,
            _FAILED_DUTY_DELAY_MS,
            exc_info=error,
        )

    def _note_next_call(self, latest_ms: float) -> None:
        """Requires: the lock."""
        due_ms = _NEVER if self._listeners else min(self._next_due, latest_ms)
        self.next_call_ns = _NEVER_NS if due_ms == _NEVER else int(max(due_ms, 0.0)) * _NS


def _delay(due: float, now_ms: int) -> int | None:
    if due == _NEVER:
        return None
    return max(0, int(due - now_ms))
