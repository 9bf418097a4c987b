"""Work on partitions that is left for the thread that drives the scheduler.

That is a listener's thread after it has handled every ready request, or a caller's that waits for
its answer. A partition that is left several times before its turn is worked on once: this is what
makes one sync acknowledge the appends of many producers.
"""

from __future__ import annotations

from embedlog.runtime.locks import Rank, ranked_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.replication.partition import Partition
    from embedlog.runtime.scheduler import Scheduler


_RETRY_MS = 100
"""A process that is short of descriptors may have some again by then."""
_PATIENCE_MS = 1000
"""Where nobody waits there is no hurry, and one sync then serves the appends of a second."""


class PartitionDuty:
    """Calls `work(partition)` soon for each partition left here, without any lock held.

    What is left while it works is done in the next round.
    """

    __slots__ = ("_again", "_left", "_lock", "_scheduler", "_work", "_works")

    def __init__(self, scheduler: Scheduler, work: Callable[[Partition], None]) -> None:
        self._scheduler = scheduler
        self._work = work
        self._works = False
        self._lock = ranked_lock(Rank.PARTITION_DUTY)
        self._left: dict[Partition, None] = {}
        self._again: dict[Partition, None] = {}
        scheduler.add(self)

    def add(self, partition: Partition) -> None:
        """Leave a partition. Callable with any lock held."""
        try:
            with self._lock:
                if partition in self._left:
                    return
                self._left[partition] = None
                is_first = len(self._left) == 1
            if is_first:
                self._scheduler.notify(self, _PATIENCE_MS)
        except BaseException:
            # A KeyboardInterrupt: whoever leaves something after this is not the first.
            self._scheduler.notify(self)
            raise

    def try_again(self, partition: Partition) -> None:
        """Leave a partition that could not be worked on now. Callable with any lock held."""
        with self._lock:
            self._again[partition] = None
        if not self._works:
            self._scheduler.notify(self, _RETRY_MS)

    def run_once(self, _now_ms: int) -> int | None:
        """Work on every partition that was left, once."""
        if not self._left and not self._again:
            return None
        with self._lock:
            left = {**self._again, **self._left}
            self._left, self._again = {}, {}
        # A notice of its own would have it called again at once, as long as somebody waits.
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
        """Do what was left, unless told not to, and nothing more."""
        self._scheduler.remove(self)
        if works:
            self.run_once(0)
