"""Waiting operations, by the keys that may complete them."""

from __future__ import annotations

from embedlog.runtime.locks import Rank, ranked_rlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from embedlog.purgatory.delayed_operation import DelayedOperation
    from embedlog.purgatory.timer import Timer

PURGE_INTERVAL = 1000


class DelayedOperationPurgatory:
    """Waiting operations of one kind. Thread-safe; call it with no partition lock held.

    An operation is listed under each of its keys. An event of a key (an append, a moved high
    watermark) calls `check_and_complete(key)`, which tries the key's operations, first come first.
    A completed operation stays in the lists of its other keys until they are checked, or until more
    than `purge_interval` such entries have accumulated.

    `timer` belongs to this purgatory alone: its size is the number of incomplete operations.
    """

    def __init__(self, name: str, timer: Timer, purge_interval: int = PURGE_INTERVAL) -> None:
        self.name = name
        self.timer = timer
        self.purge_interval = purge_interval
        # One lock for all keys, held for one list operation at a time. (Kafka has 512 shards, for
        # parallel threads; here they would only contend for the interpreter.) An RLock for the
        # reason given in `embedlog.runtime.pending`.
        self._lock = ranked_rlock(Rank.PURGATORY)
        self._watchers: dict[Hashable, list[DelayedOperation]] = {}
        self._estimated_total = 0
        self._purge_check_at = purge_interval

    @property
    def watched(self) -> int:
        """Number of entries in all lists: an operation counts once per key, even if it is
        completed.
        """
        with self._lock:
            return sum(map(len, self._watchers.values()))

    @property
    def delayed(self) -> int:
        return self.timer.size

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Sequence[Hashable]
    ) -> bool:
        """Complete `operation` now, or let it wait under `keys` until its time is over.

        Return True if this call completed it. Without a positive delay the operation expires in
        this call, which returns False.
        """
        return operation.safe_try_complete() or self.watch(operation, keys)

    def watch(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> bool:
        """Let an incomplete operation wait; see `try_complete_else_watch`.

        The operation is tried again once it is listed: a thread that changed something just before
        did not find it in the list.
        """
        assert keys, "an operation without keys could only time out"
        self._list(operation, keys)
        if operation.safe_try_complete():
            return True
        if not operation.is_completed:
            self.timer.add(operation)
            # The operation was completed before the timer had it, so its own `cancel` did nothing.
            if operation.is_completed:
                operation.cancel()
        if self._estimated_total > self._purge_check_at:
            self._purge_if_worth_it()
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Try the operations of `key`, in their order; return how many this completed.

        An unused key costs one look-up.
        """
        watching = self._watchers.get(key)
        if watching is None:
            return 0
        completed_count = 0
        is_stale = False
        # Loop over a copy (atomic): `watch` tries the operations that it lists meanwhile.
        for operation in watching[:]:
            if operation.safe_try_complete():
                completed_count += 1
            if operation.is_completed:
                is_stale = True
        if is_stale:
            self._unlist_completed(key)
        return completed_count

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation]:
        """Remove and return the operations under `key`, without completing them; stop their timers.

        Their other keys may still complete them.
        """
        with self._lock:
            cancelled = self._watchers.pop(key, [])
        for operation in cancelled:
            operation.cancel()
        return cancelled

    def force_complete_all(self) -> None:
        for watching in list(self._watchers.values()):
            for operation in watching[:]:
                operation.force_complete()
        self.purge()

    def purge(self) -> int:
        """Drop completed operations from all lists; return the number of dropped entries."""
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
            # A lower total cannot contain enough completed operations for a purge: do not ask the
            # timer for its size before this total is reached.
            self._purge_check_at = self._estimated_total + self.purge_interval - completed_count
        if is_worth_it:
            self.purge()
