"""`MembershipDuty`: keeps a member alive between the user's calls of the consumer.

    in process   The cluster's scheduler runs the duty, in any waiting thread or in the thread of a
                 listener. If no thread runs the scheduler, the next call of any client runs the
                 duty, before the sessions that would have ended after its heartbeat.
    TCP          A thread of its own runs the duty, from joining a group until leaving it.

The duty sends heartbeats, looks up a lost coordinator and takes answers to commits. It leaves the
group if the user has not polled for max.poll.interval.ms, or has dropped the consumer without
closing it. It never begins a commit and never calls the user's code. While the user's thread is
inside the consumer, that thread does this work in its own passes and the duty does nothing.
"""

from __future__ import annotations

from embedlog.logger import Logger
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.runtime.pending import Pending
from embedlog.runtime.threads import NoThread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.runtime.threads import Thread
    from embedlog.transport import Transport

_JOIN_MAX_MS = 5_000
_FAREWELL_MS = 5_000
_FAREWELL_STEP_MS = 10


_log = Logger("client")


class MembershipDuty:
    """A duty of the transport's scheduler. It uses the consumer's state under the lock `turn`."""

    def __init__(
        self,
        transport: Transport,
        keep_alive: Callable[[int], int | None],
        interval_ms: int,
        *,
        leave: Callable[[str], Pending[Any] | None],
    ) -> None:
        """`keep_alive` returns milliseconds to its next call; None if the consumer is no member.

        `leave(reason)` leaves the group, and returns the answer if there will be one.
        """
        self._transport = transport
        self._scheduler = transport.runtime.scheduler
        self._keep_alive = keep_alive
        self._leave = leave
        self._is_abandoned = False
        self._farewell: Pending[Any] | None = None
        self._farewell_until_ms = 0
        self._interval_ms = interval_ms
        self._thread: Thread | None = None
        self._stopped: Pending[object] = Pending()
        self.turn = ranked_lock(Rank.CONSUMER)
        self.is_running = False

    def start(self) -> None:
        """Start running. Requires: the caller holds `turn`."""
        self.is_running = True
        self._scheduler.add(self)
        if not self._transport.is_driven:
            stopped = self._stopped = Pending()

            def drive() -> None:
                self._scheduler.wait(stopped, None)

            try:
                self._thread = self._scheduler.start_thread(drive, "embedlog-heartbeat")
            except NoThread as error:
                _log.warning("heartbeats are sent in calls of the consumer only: %s", error)

    def stop(self) -> None:
        """Stop running. Requires: the caller holds `turn`."""
        self.is_running = False
        self._scheduler.remove(self)
        self._stopped.complete(None)

    def beat_every(self, interval_ms: int) -> None:
        """Set the time between two heartbeats. Requires: the caller holds `turn`."""
        if interval_ms != self._interval_ms:
            self._interval_ms = interval_ms
            self._scheduler.notify(self)  # the duty may be asleep for the old, longer interval

    def join(self) -> None:
        """Wait for the thread to end. Call `stop` first, and do not hold `turn` meanwhile."""
        if self._thread is not None:
            self._thread.join(_JOIN_MAX_MS)
            self._thread = None

    def abandon(self) -> bool:
        """Let the next run leave the group and close the transport; return whether it will.

        Nobody uses the consumer any more. Takes no lock, because the garbage collector calls it.
        """
        if not self.is_running or self._transport.is_closed:
            return False
        self._is_abandoned = True
        self._scheduler.notify(self)
        return True

    def run_once(self, now_ms: int) -> int | None:
        """Keep the member alive unless the user's thread is inside the consumer."""
        if not self.turn.acquire(blocking=False):
            return self._interval_ms
        try:
            if not self.is_running:
                return None
            if not self._transport.in_process:
                self._transport.poll()
            if self._is_abandoned:
                return self._say_farewell(now_ms)
            delay = self._keep_alive(now_ms)
            if delay is None:
                self.stop()
                return None
            return min(delay, self._interval_ms)
        finally:
            self.turn.release()

    def _say_farewell(self, now_ms: int) -> int | None:
        """Leave the group, wait a moment for the answer, and close the transport."""
        if not self._farewell_until_ms:
            self._farewell_until_ms = now_ms + _FAREWELL_MS
            self._farewell = self._leave("the consumer was dropped without close")
        pending = self._farewell
        if pending is not None and not pending.done() and now_ms < self._farewell_until_ms:
            return _FAREWELL_STEP_MS
        self.stop()
        self._transport.close()
        return None
