"""Work on partitions, done later by the thread that drives the scheduler.

That thread is a listener's, after it has handled every ready request, or a caller's that waits for
an answer. If a partition is added several times before a round, the round works on it once. So one
sync acknowledges the appends of many producers.
"""

from __future__ import annotations

from embedlog.runtime.locks import Rank, ranked_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.replication.partition import Partition
    from embedlog.runtime.scheduler import Scheduler


_RETRY_MS = 100
"""Pause before work is repeated. A process without free descriptors may have some again by then."""
_PATIENCE_MS = 1000
"""Longest delay if nobody waits for the work: one sync then serves all appends of that second."""


class PartitionDuty:
    """A duty that calls `work(partition)` soon for each added partition, without any lock.

    Partitions that are added during a round wait for the next round.
    """

    def __init__(self, scheduler: Scheduler, work: Callable[[Partition], None]) -> None:
        self._scheduler = scheduler
        self._work = work
        self._works = False
        self._lock = ranked_lock(Rank.PARTITION_DUTY)
        self._left: dict[Partition, None] = {}
        self._again: dict[Partition, None] = {}
        scheduler.add(self)

    def add(self, partition: Partition) -> None:
        """Work on a partition soon. Callable with any lock held."""
        try:
            with self._lock:
                if partition in self._left:
                    return
                self._left[partition] = None
                is_first = len(self._left) == 1
            if is_first:
                self._scheduler.notify(self, _PATIENCE_MS)
        except BaseException:
            # A KeyboardInterrupt may come between adding and notifying. Notify now: later calls of
            # `add` do not notify while `_left` has a partition.
            self._scheduler.notify(self)
            raise

    def try_again(self, partition: Partition) -> None:
        """Work on a partition again after a failure that may pass. Callable with any lock held."""
        with self._lock:
            self._again[partition] = None
        if not self._works:
            self._scheduler.notify(self, _RETRY_MS)

    def work_now(self, partition: Partition) -> None:
        """Work on a partition in this call, also if another thread is about to."""
        self._work(partition)

    def run_once(self, _now_ms: int) -> int | None:
        if not self._left and not self._again:
            return None
        with self._lock:
            left = {**self._again, **self._left}
            self._left, self._again = {}, {}
        # While `_works` is true, `try_again` does not notify. If a thread waits for an answer, a
        # notification within a round would run this duty again at once, without the pause.
        self._works = True
        try:
            for partition in left:
                self._work(partition)
        except BaseException:
            for partition in left:
                self.add(partition)
            raise
        finally:
            self._works = False
        if self._left:
            return 0
        return _RETRY_MS if self._again else None

    def close(self, *, works: bool = True) -> None:
        """Do the remaining work if `works` is true, then stop for good."""
        self._scheduler.remove(self)
        if works:
            self.run_once(0)
