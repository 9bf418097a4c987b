"""An operation that waits for a condition or for its time to run out, and ends exactly once."""

from __future__ import annotations

from abc import abstractmethod

from embedlog.purgatory.timing_wheel import TimerTask
from embedlog.runtime.locks import Rank, ranked_rlock


class DelayedOperation(TimerTask):
    """A subclass defines its condition (`try_complete`) and its effect (`on_complete`).

        def try_complete(self) -> bool:
            return self._has_enough_bytes() and self.complete_held()

    The thread that wins `force_complete` runs `on_complete`; if the timer's thread wins, it also
    runs `on_expiration`.

    Locks. Each operation has its own re-entrant lock, which guards `try_complete`: no two threads
    run it at once, and none runs it during or after `on_complete`. `try_complete` may take
    partition locks, but tries no other operation. `on_complete` runs after the release of the
    lock, because it may take any lock: an answer may begin the next step of a request. Therefore
    never call an operation, a purgatory or `Timer.add` with a partition lock held: try operations
    after its release.
    """

    __slots__ = ("_has_ended", "_lock", "is_completed")

    def __init__(self, delay_ms: int) -> None:
        TimerTask.__init__(self, delay_ms)
        self._lock = ranked_rlock(Rank.OPERATION)
        self.is_completed = False
        """True once a thread has won the right to end the operation; `on_complete` may still run.
        Only this class sets it."""
        self._has_ended = False

    @abstractmethod
    def try_complete(self) -> bool:
        """Return `self.complete_held()` if the condition holds, else False. The lock is held."""

    @abstractmethod
    def on_complete(self) -> None:
        """Send the answer. Called exactly once, or again when Ctrl-C cut it short."""

    def on_expiration(self) -> None:
        """Called after `on_complete` if the time ran out; for metrics."""

    def force_complete(self) -> bool:
        """End the operation now, whatever its condition; True if this call ended it."""
        if self.is_completed:
            return False
        is_mine = False
        try:
            with self._lock:
                if self.is_completed:
                    return False
                # Set before `on_complete`: no thread may run `try_complete` during or after it.
                self.is_completed = is_mine = True
            self._end()
        except (KeyboardInterrupt, SystemExit):
            if is_mine and not self._has_ended:
                self._end()  # no other thread will do it
            raise
        return True

    def complete_held(self) -> bool:
        """Mark the operation as complete; only `try_complete` calls this.

        `safe_try_complete` ends the operation. Requires: the operation's lock.
        """
        if self.is_completed:
            return False
        self.is_completed = True
        return True

    def _end(self) -> None:
        try:
            self.cancel()
        finally:
            # Call `on_complete` even if Ctrl-C cuts `cancel` short: no other thread will call it.
            try:
                self.on_complete()
            except (KeyboardInterrupt, SystemExit):
                self.on_complete()
                self._has_ended = True
                raise
        self._has_ended = True

    def safe_try_complete(self) -> bool:
        """Try to complete under the lock, and end after its release; True if this call did so."""
        if self.is_completed:
            return False
        is_mine = False
        try:
            with self._lock:
                if self.is_completed:
                    return False
                try:
                    is_mine = self.try_complete()
                except (KeyboardInterrupt, SystemExit):
                    is_mine = self.is_completed
                    raise
            if is_mine and not self._has_ended:
                self._end()
        except (KeyboardInterrupt, SystemExit):
            if is_mine and not self._has_ended:
                self._end()  # no other thread will do it
            raise
        return is_mine

    def run(self) -> None:
        if self.force_complete():
            self.on_expiration()
