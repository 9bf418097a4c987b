"""An operation that waits for a condition or for its time to run out, and ends exactly once."""

from __future__ import annotations

from _thread import RLock
from abc import abstractmethod

from embedlog.purgatory.timing_wheel import TimerTask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class DelayedOperation(TimerTask):
    """A subclass says when it can end (`try_complete`) and how it ends (`on_complete`).

        def try_complete(self) -> bool:
            return self._has_enough_bytes() and self.force_complete()

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

    __slots__ = ("_is_completed", "_lock")

    def __init__(self, delay_ms: int) -> None:
        TimerTask.__init__(self, delay_ms)
        self._lock = RLock()
        self._is_completed = False

    @property
    def is_completed(self) -> bool:
        """Has a thread won the right to end it? `on_complete` may still be running there."""
        return self._is_completed

    @abstractmethod
    def try_complete(self) -> bool:
        """Check the condition; end with `return self.force_complete()` when it holds, else False.

        Called under the operation's lock.
        """

    @abstractmethod
    def on_complete(self) -> None:
        """The effect: send the answer. Called exactly once."""

    def on_expiration(self) -> None:
        """Called after `on_complete` when the time ran out; for metrics."""

    def force_complete(self) -> bool:
        """End the operation now, whatever its condition; True for the one caller that did."""
        if self._is_completed:
            return False
        with self._lock:
            if self._is_completed:
                return False
            # Before on_complete: see the class's rule on locks.
            self._is_completed = True
        self.cancel()
        self.on_complete()
        return True

    def safe_try_complete(self) -> bool:
        """Try to complete under the lock; True when this call completed it."""
        if self._is_completed:
            return False
        with self._lock:
            return not self._is_completed and self.try_complete()

    def safe_try_complete_or_else(self, otherwise: Callable[[], None]) -> bool:
        """As `safe_try_complete`; when that fails call `otherwise` and try once more.

        `otherwise` makes the operation known to those who will try it later. The second try sees
        what changed before they knew of it.
        """
        if self._is_completed:
            return False
        with self._lock:
            if self._is_completed:
                return False
            if self.try_complete():
                return True
            otherwise()
            return self.try_complete()

    def run(self) -> None:
        """The time ran out."""
        if self.force_complete():
            self.on_expiration()
