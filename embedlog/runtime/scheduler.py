"""`Scheduler`: background work without background threads, and the only way to wait.

A *duty* is an object with `run_once(now_ms) -> next_delay_ms | None`: timers, retention,
checkpoints. The thread that *drives* runs the duties. The scheduler starts no thread by itself.

    the driving thread is
    a thread registered with `on_notify`   a listener's, for example: it calls `run_due` in its
                                           loop, and waiting threads only park
    otherwise a waiting thread             one runs the due duties and parks until the next is due;
                                           the other waiting threads only park
    otherwise a client's call              each call compares the clock with `next_call_ns` and
                                           calls `drive` first when a duty is due

Duties run in the order in which they were due, also if the driving thread comes late: a heartbeat
that was due before the end of a session keeps the session alive.

A parked thread sleeps on a lock of its own until its answer arrives, its time-out ends, or it must
begin to drive. A wake-up costs about 30 us, and nothing polls.
"""

from __future__ import annotations

from _bisect import insort_right as insort
from _operator import itemgetter
from _thread import get_ident

from embedlog.common import T
from embedlog.runtime.duty_thread import DutyThread
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.runtime.threads import Parked, Thread, Waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from embedlog.runtime.clock import Clock
    from embedlog.runtime.pending import Pending
    from embedlog.runtime.threads import Duty


_FAILED_DUTY_DELAY_MS = 1000
_NEVER = float("inf")
_due_ms = itemgetter(1)
_NEVER_NS = 1 << 63
_NS = 1_000_000


class Scheduler:
    """Runs duties and parks threads. Every method may be called from any thread."""

    def __init__(
        self, clock: Clock, in_order: Callable[[list[Duty]], list[Duty]] | None = None
    ) -> None:
        """`in_order` returns duties that are due at one moment in the order in which they run."""
        self._clock = clock
        self._in_order = in_order
        self._lock = ranked_rlock(Rank.SCHEDULER)  # faster than a Lock: see `runtime.pending`
        self._running = ranked_rlock(Rank.RUNNING)
        """Held while duties run, so that they never run side by side."""
        self._runner = 0
        """Ident of the thread that runs duties; 0 for none."""
        self.now_ns = clock.monotonic_source()
        """The monotonic clock in nanoseconds, to compare with `next_call_ns`."""
        self.next_call_ns = _NEVER_NS
        """The monotonic time from which on a client's call must call `drive`."""
        self._due: dict[Duty, float] = {}
        self._timers: set[Duty] = set()
        self._next_due: float = _NEVER
        self._hurried: set[Duty] = set()
        """Notified duties. Each leaves the set before it runs, so that no notify is lost."""
        self._patient: dict[Duty, int] = {}
        """Notified duty -> monotonic ms before which clients' calls do not run it."""
        self.failing: dict[Duty, tuple[int, Exception]] = {}
        """Duties whose last run failed -> (start of the failure as wall time, error)."""
        self._listeners: list[Callable[[], None]] = []
        self._waiting = Waiting()

    def add(self, duty: Duty, *, is_timer: bool = False) -> None:
        """Run `duty` from here on, the first time at once.

        `is_timer`: `run_once` may be called with a past time, and does only the work that was due
        then. So work of a timer and of other duties is done in the order of its due times.
        """
        with self._lock:
            self._due[duty] = _NEVER
            if is_timer:
                self._timers.add(duty)
        self.notify(duty)

    def remove(self, duty: Duty) -> None:
        """Forget `duty`. Another thread may still be in a run of it."""
        with self._lock:
            self._due.pop(duty, None)
            self._timers.discard(duty)
            self._hurried.discard(duty)
            self._patient.pop(duty, None)
            self.failing.pop(duty, None)

    def notify(self, duty: Duty, patience_ms: int = 0) -> None:
        """Run `duty` soon, even if its last run returned a longer delay.

        `patience_ms`: if no thread drives, clients' calls may leave the duty undone for this long.
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
        """Register a thread that calls `run_due` in a loop; it drives from here on.

        `wake` makes that thread call `run_due` soon; any thread may call `wake`. The returned
        function ends the registration: then waiting threads drive again.
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
        """Run the due duties; return milliseconds to the next, or None if none will be due.

        `is_call`: a client's call drives; notified duties wait for their patience (see `notify`). A
        duty that raises is logged and tried again a second later, because the driving thread cannot
        act on the error. KeyboardInterrupt and SystemExit concern the thread itself, and pass.
        """
        hurried = self._hurried
        if now_ms < self._next_due and not hurried:
            return _delay(self._next_due, now_ms)
        if self._runner == get_ident():
            return 1
        try:
            if not self._running.acquire(blocking=False):
                return 1  # another thread runs duties at this moment
            self._runner = get_ident()
            for duty in hurried.copy():  # one step of the interpreter, unlike tuple(hurried)
                if is_call and self._patient.get(duty, now_ms) > now_ms:
                    continue
                self._patient.pop(duty, None)
                with self._lock:
                    if duty in self._due:
                        self._due[duty] = -_NEVER
                hurried.discard(duty)
            due = [each for each in self.duties() if each[1] <= now_ms]
            if len(due) > 1 and self._in_order is not None:
                times = dict(due)
                due = [(duty, times[duty]) for duty in self._in_order(list(times))]
            for duty, at_ms in _in_turn(due, self._timers, self._due, now_ms):
                self._run(duty, at_ms, now_ms)
        finally:
            try:
                self._end_run(now_ms)
            finally:
                self._end_run(now_ms)  # again, if a KeyboardInterrupt ended the first call
        return 0 if hurried else _delay(self._next_due, now_ms)

    def drive(self) -> None:
        """Run the due duties if no thread drives. It takes the locks of duties: see `Rank`.

        Clients of this process call it after a request, once `next_call_ns` has come.
        """
        if not self._listeners and self._waiting.driver is None:
            left_ms = self.run_due(self._clock.monotonic_ms(), is_call=True)
            if left_ms == 0:  # a duty asks for another run at once
                self.run_due(self._clock.monotonic_ms(), is_call=True)

    def exclusively(self, step: Callable[[], T]) -> T:
        """Run `step` while no duty runs."""
        if self._runner == get_ident():
            return step()
        with self._running:
            self._runner = get_ident()
            try:
                return step()
            finally:
                self._runner = 0

    def wait(self, pending: Pending[object], timeout_ms: int | None) -> bool:
        """Wait at most `timeout_ms` (None: for ever) for `pending`; return whether it is done.

        The waiting thread drives if no other thread does. Duties, and threads registered with
        `on_notify`, must not call it.
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
                    # Let another thread drive: this thread may have been chosen and is leaving.
                    self._waiting.wake_first()
        return pending.done()

    def start_thread(self, target: Callable[[], None], name: str) -> Thread:
        """Run `target` in a new daemon thread."""
        return Thread(target, name)

    def duty_thread(self, duty: Duty, name: str) -> DutyThread:
        """Return a thread for a duty that may run a user's code: see `runtime.duty_thread`."""
        return DutyThread(duty, name, self._clock, self.start_thread)

    def at_exit(self, function: Callable[[], None], order: int) -> Callable[[], None]:
        """Call `function` before the interpreter ends: see `runtime.at_exit`."""
        from embedlog.runtime import at_exit

        return at_exit.register(function, order)

    @property
    def is_watched(self) -> bool:
        """True if a thread is in `wait` or a registered thread drives: either notices delays."""
        return bool(self._waiting.parked or self._listeners)

    # Driving

    def _note_next_due(self, now_ms: int) -> None:
        with self._lock:
            self._next_due = min(self._due.values(), default=_NEVER)
            patient, hurried = self._patient, self._hurried
            left = [patient.get(duty, now_ms) for duty in hurried.copy()] if hurried else ()
            self._note_next_call(min(left, default=_NEVER))

    def _end_run(self, now_ms: int) -> None:
        # Look at the lock itself: a KeyboardInterrupt may come before a variable can note that it
        # is held.
        if self._running._is_owned():  # type: ignore[attr-defined]  # not in the stubs
            try:
                self._note_next_due(now_ms)
            finally:
                self._runner = 0
                self._running.release()

    def duties(self) -> list[tuple[Duty, float]]:
        """Return the added duties, each with its due time in monotonic ms."""
        with self._lock:
            return list(self._due.items())

    def _run(self, duty: Duty, at_ms: int, now_ms: int) -> None:
        delay: int | None = _FAILED_DUTY_DELAY_MS
        try:
            delay = duty.run_once(at_ms)
            now_ms = at_ms
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


def _in_turn(
    due: list[tuple[Duty, float]], timers: set[Duty], all_due: Mapping[Duty, float], now_ms: int
) -> Iterator[tuple[Duty, int]]:
    """Yield the due duties by their due times, each with the time up to which it shall work.

    A timer works up to the due time of the next duty, and gets another turn if it has more to do.
    """
    due.sort(key=_due_ms)
    while due:
        duty, _ = due.pop(0)
        if not due or duty not in timers:
            yield duty, now_ms
            continue
        yield duty, int(max(due[0][1], 0))
        again_ms = all_due.get(duty, _NEVER)
        if again_ms <= now_ms:
            insort(due, (duty, again_ms), key=_due_ms)
