"""An operation that waits for a condition or for its time to run out, and ends exactly once."""

from __future__ import annotations

from abc import abstractmethod

from embedlog.purgatory.timing_wheel import TimerTask
from embedlog.runtime.locks import Rank, ranked_rlock


class DelayedOperation(TimerTask):
    """A subclass says when it can end (`try_complete`) and how it ends (`on_complete`).

        def try_complete(self) -> bool:
            return self._has_enough_bytes() and self.complete_held()

    Whoever wins `force_complete` runs `on_complete`; when that was the timer, `on_expiration`
    follows it.

    Locks. Each operation has its own re-entrant lock; under it `try_complete` is called, so two
    threads never run that at once, nor does one while or after `on_complete` runs. `try_complete`
    may take partition locks, and tries no other operation. `on_complete` may do both. Therefore
    nobody calls an operation, a purgatory or `Timer.add` with a partition lock held: operations
    are tried after it is released.

    Two threads that complete each other's operations do not deadlock. A thread that waits for the
    lock of an operation saw it incomplete, and the locks it holds meanwhile belong to operations
    that were complete by then. So along a chain of waiting threads the operations were completed
    one after the other, and such a chain is no ring.
    """

    __slots__ = ("_lock", "is_completed")

    def __init__(self, delay_ms: int) -> None:
        TimerTask.__init__(self, delay_ms)
        self._lock = ranked_rlock(Rank.OPERATION)
        self.is_completed = False
        """Has a thread won the right to end it? `on_complete` may still be running there. Nobody
        else assigns it."""

    @abstractmethod
    def try_complete(self) -> bool:
        """Check the condition; end with `return self.complete_held()` when it holds, else False.

        Called under the operation's lock.
        """

    @abstractmethod
    def on_complete(self) -> None:
        """The effect: send the answer. Called exactly once, or again when Ctrl-C cut it short."""

    def on_expiration(self) -> None:
        """Called after `on_complete` when the time ran out; for metrics."""

    def force_complete(self) -> bool:
        """End the operation now, whatever its condition; True for the one caller that did."""
        if self.is_completed:
            return False
        with self._lock:
            if self.is_completed:
                return False
            # Before on_complete: see the class's rule on locks.
            self.is_completed = True
        self._end()
        return True

    def complete_held(self) -> bool:
        """As `force_complete`. Requires: the operation's lock, so `try_complete` calls it."""
        if self.is_completed:
            return False
        self.is_completed = True
        self._end()
        return True

    def _end(self) -> None:
        try:
            self.cancel()
        finally:
            # Whatever Ctrl-C cuts short, as nobody else will do it.
            try:
                self.on_complete()
            except (KeyboardInterrupt, SystemExit):
                self.on_complete()
                raise

    def safe_try_complete(self) -> bool:
        """Try to complete under the lock; True when this call completed it."""
        if self.is_completed:
            return False
        with self._lock:
            return not self.is_completed and self.try_complete()

    def run(self) -> None:
        """The time ran out."""
        if self.force_complete():
            self.on_expiration()
