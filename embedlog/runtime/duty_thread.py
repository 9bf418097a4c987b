"""`DutyThread`: a thread for one duty that may run a user's code. It lives while there is work.

The scheduler's own duties run in the thread that drives: a waiting thread, or a listener's. A duty
that may run a user's code must not run there. A slow callback would hold up other clients, and a
callback that waits for that listener would wait for ever.
"""

from __future__ import annotations

from _thread import get_ident

from embedlog.runtime.locks import Rank, ranked_lock, ranked_rlock
from embedlog.runtime.threads import Parked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.runtime.clock import Clock
    from embedlog.runtime.threads import Duty, Thread

_JOIN_MAX_MS = 10_000


class DutyThread:
    """Runs `duty` from each `notify` until it returns None. Methods may be called from any thread.

    An exception of the duty is reported as an uncaught exception of the thread; the duty continues.
    """

    __slots__ = (
        "_clock",
        "_duty",
        "_idle_ms",
        "_is_closed",
        "_is_wanted",
        "_lock",
        "_looping",
        "_name",
        "_parked",
        "_start_thread",
        "_thread",
        "_thread_id",
    )

    def __init__(
        self,
        duty: Duty,
        name: str,
        clock: Clock,
        start_thread: Callable[[Callable[[], None], str], Thread],
        *,
        idle_ms: int = 1_000,
    ) -> None:
        """A thread without work for `idle_ms` ends; `notify` starts another."""
        self._idle_ms = idle_ms
        self._start_thread = start_thread
        self._clock = clock
        self._duty = duty
        self._name = name
        self._lock = ranked_rlock(Rank.DUTY_THREAD)  # faster than a Lock: see `runtime.pending`
        self._looping = ranked_lock(Rank.LOOP)
        """Held by the looping thread. After a Ctrl-C `notify` may start a second thread, which
        fails to take this lock and ends."""
        self._parked = Parked()
        self._thread: Thread | None = None
        self._thread_id = 0
        self._is_wanted = False
        self._is_closed = False

    def notify(self) -> None:
        """Run the duty soon."""
        with self._lock:
            self._is_wanted = True
            if self._thread is None and not self._is_closed:
                self._thread = self._start_thread(self._loop, self._name)
        self._parked.wake()

    def close(self) -> None:
        """Stop running the duty. Wait for its thread to end, unless called from that thread."""
        self._is_closed = True
        self._parked.wake()
        if self._thread_id == get_ident():
            return
        joined: Thread | None = None
        while (thread := self._thread) is not joined and thread is not None:
            # If the duty raised, the thread has started a successor: join the successor as well.
            joined = thread
            thread.join(_JOIN_MAX_MS)

    def _loop(self) -> None:
        if not self._looping.acquire(blocking=False):
            return
        try:
            self._thread_id = get_ident()
            while not self._is_closed:
                self._is_wanted = False
                delay = self._duty.run_once(self._clock.monotonic_ms())
                if delay is not None:
                    self._parked.sleep(max(delay, 1))
                elif not self._is_wanted:
                    self._parked.sleep(self._idle_ms)
                    if self._has_ended():
                        return
        except BaseException:
            with self._lock:
                self._looping.release()
                self._thread = None
            self.notify()
            raise
        self._looping.release()

    def _has_ended(self) -> bool:
        """End the thread unless there is new work. Return whether it ended."""
        with self._lock:
            if self._is_wanted or self._is_closed:
                return False
            self._looping.release()
            self._thread = None
            return True
