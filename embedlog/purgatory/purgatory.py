"""Where delayed operations wait, found again by the keys that may complete them."""

from __future__ import annotations

from embedlog.runtime.locks import Rank, ranked_rlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from embedlog.purgatory.delayed_operation import DelayedOperation
    from embedlog.purgatory.timer import Timer

PURGE_INTERVAL = 1000


class DelayedOperationPurgatory:
    """Operations of one kind that wait. Thread-safe; call it with no partition lock held.

    An operation is listed under each of its keys. What happens to a key (an append, a moved high
    watermark) calls `check_and_complete(key)`, which tries the operations under it, first come
    first. An operation completed elsewhere stays in the lists of its other keys until they are
    checked, or until more than `purge_interval` such entries have come together.

    `timer` belongs to this purgatory alone: its size tells how many operations really wait.
    """

    __slots__ = (
        "_estimated_total",
        "_lock",
        "_purge_check_at",
        "_watchers",
        "name",
        "purge_interval",
        "timer",
    )

    def __init__(self, name: str, timer: Timer, purge_interval: int = PURGE_INTERVAL) -> None:
        self.name = name
        self.timer = timer
        self.purge_interval = purge_interval
        # One lock for all keys, held for a list operation at a time. (Kafka has 512 shards, for
        # threads that run in parallel; here they would only contend for the interpreter.)
        # An RLock for the reason given in `embedlog.runtime.pending`.
        self._lock = ranked_rlock(Rank.PURGATORY)
        self._watchers: dict[Hashable, list[DelayedOperation]] = {}
        self._estimated_total = 0
        self._purge_check_at = purge_interval

    @property
    def watched(self) -> int:
        """Entries in all lists: an operation counts once per key, completed ones included."""
        with self._lock:
            return sum(map(len, self._watchers.values()))

    @property
    def delayed(self) -> int:
        """Operations whose time is running."""
        return self.timer.size

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Sequence[Hashable]
    ) -> bool:
        """Complete `operation` now, or let it wait under `keys` and for its time.

        True when this call completed it. When its delay is not positive it expires in this call,
        which then returns False.
        """
        return operation.safe_try_complete() or self.watch(operation, keys)

    def watch(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> bool:
        """As `try_complete_else_watch`, of an operation that could not be completed just now.

        It is tried once listed: that sees what changed before those who will try it knew of it.
        """
        assert keys, "an operation without keys could only time out"
        self._list(operation, keys)
        if operation.safe_try_complete():
            return True
        if not operation.is_completed:
            self.timer.add(operation)
            # Completed between the question and the add: cancelled before it was added.
            if operation.is_completed:
                operation.cancel()
        if self._estimated_total > self._purge_check_at:
            self._purge_if_worth_it()
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Try the operations that wait for `key`, in their order; return how many completed here.

        A key nobody waits for costs one look-up.
        """
        watching = self._watchers.get(key)
        if watching is None:
            return 0
        completed_count = 0
        is_stale = False
        # A copy (atomic): those that arrive meanwhile try for themselves once listed.
        for operation in watching[:]:
            if operation.safe_try_complete():
                completed_count += 1
            if operation.is_completed:
                is_stale = True
        if is_stale:
            self._unlist_completed(key)
        return completed_count

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation]:
        """Forget the operations under `key` and stop their clocks; return them, not completed.

        Their other keys may still complete them.
        """
        with self._lock:
            cancelled = self._watchers.pop(key, [])
        for operation in cancelled:
            operation.cancel()
        return cancelled

    def force_complete_all(self) -> None:
        """End every operation that waits: nothing will happen any more that could."""
        for watching in list(self._watchers.values()):
            for operation in watching[:]:
                operation.force_complete()
        self.purge()

    def purge(self) -> int:
        """Drop completed operations from all lists; return how many entries went."""
        return sum(self._unlist_completed(key) for key in list(self._watchers))

    def _list(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> None:
        watchers = self._watchers
        with self._lock:
            for key in keys:
                watching = watchers.get(key)
                if watching is None:
                    watchers[key] = [operation]
                else:
                    watching.append(operation)
            self._estimated_total += 1

    def _unlist_completed(self, key: Hashable) -> int:
        with self._lock:
            watching = self._watchers.get(key)
            if watching is None:
                return 0
            if len(watching) == 1 and watching[0].is_completed:
                del self._watchers[key]
                return 1
            waiting = [operation for operation in watching if not operation.is_completed]
            if waiting:
                self._watchers[key] = waiting
            else:
                del self._watchers[key]
            return len(watching) - len(waiting)

    def _purge_if_worth_it(self) -> None:
        waiting_count = self.timer.size
        with self._lock:
            completed_count = self._estimated_total - waiting_count
            is_worth_it = completed_count > self.purge_interval
            if is_worth_it:
                self._estimated_total = waiting_count
                completed_count = 0
            # At the earliest then can there be enough completed ones: no sooner asks the timer.
            self._purge_check_at = self._estimated_total + self.purge_interval - completed_count
        if is_worth_it:
            self.purge()
