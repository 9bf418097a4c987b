"""Who keeps a member alive while its user does not call the consumer.

    in process   the cluster's scheduler: whichever thread waits for something, or the listener's.
                 Where nobody does, time does not pass for the group either: a session ends only
                 when somebody runs the timers, and the next poll of the member comes before that.
    TCP          one small thread, started when a group is joined, ended when it is left.

It sends the heartbeats that are due, looks for a lost coordinator, takes answers to commits, and
leaves the group when the user has not polled for max.poll.interval.ms. It never commits by itself
and never calls the user's code. While the user's thread is inside the consumer it stands back:
that thread does all this in its own passes.
"""

from __future__ import annotations

from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.runtime.threads import Thread
    from embedlog.transport import Transport

_JOIN_MAX_MS = 5_000


class MembershipDuty:
    """A duty of the transport's scheduler. `turn` belongs to whoever uses the consumer's state."""

    def __init__(
        self, transport: Transport, keep_alive: Callable[[int], int | None], interval_ms: int
    ) -> None:
        """`keep_alive` returns milliseconds to its next call; None when there is no membership.

        `interval_ms`: between two heartbeats.
        """
        self._transport = transport
        self._scheduler = transport.runtime.scheduler
        self._keep_alive = keep_alive
        self._interval_ms = interval_ms
        self._thread: Thread | None = None
        self._stopped: Pending[object] = Pending()
        self.turn = ranked_lock(Rank.CONSUMER)
        self.is_running = False

    def start(self) -> None:
        """Watch over the membership. Requires: the turn."""
        self.is_running = True
        self._scheduler.add(self)
        if not self._transport.is_driven:
            stopped = self._stopped = Pending()

            def drive() -> None:
                self._scheduler.wait(stopped, None)

            self._thread = self._scheduler.start_thread(drive, "embedlog-heartbeat")

    def stop(self) -> None:
        """There is nothing to watch over. Requires: the turn."""
        self.is_running = False
        self._scheduler.remove(self)
        self._stopped.complete(None)

    def beat_every(self, interval_ms: int) -> None:
        """The coordinator wants to hear of the member so often. Requires: the turn."""
        if interval_ms != self._interval_ms:
            self._interval_ms = interval_ms
            self._scheduler.notify(self)  # it may have put itself off for the former one

    def join(self) -> None:
        """Wait for the thread to end. Requires: stopped, and not the turn."""
        if self._thread is not None:
            self._thread.join(_JOIN_MAX_MS)
            self._thread = None

    def run_once(self, now_ms: int) -> int | None:
        """Keep the membership alive, unless the user's thread is at it."""
        if not self.turn.acquire(blocking=False):
            return self._interval_ms
        try:
            if not self.is_running:
                return None
            if not self._transport.in_process:
                self._transport.poll()
            delay = self._keep_alive(now_ms)
            if delay is None:
                self.stop()
                return None
            return min(delay, self._interval_ms)
        finally:
            self.turn.release()
