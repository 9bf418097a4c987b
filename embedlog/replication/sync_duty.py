"""Group commit: one sync of a partition acknowledges every append that was waiting for it.

An append to an `fsync` topic leaves its partition here and its produce in the purgatory. The
duty runs on the thread that drives the scheduler: a listener's after it has handled every ready
request, or a caller's that waits for its answer. What is appended while the disk works is covered
by the next round.
"""

from __future__ import annotations

from _thread import allocate_lock

from embedlog import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.replication.partition import Partition
    from embedlog.runtime.scheduler import Scheduler


class SyncDuty:
    """The partitions that were appended to since their last sync.

    `synced(partition)` is called after each sync, also after one that failed, without any lock.
    """

    __slots__ = ("_lock", "_scheduler", "_synced", "_unsynced")

    def __init__(self, scheduler: Scheduler, synced: Callable[[Partition], None]) -> None:
        self._scheduler = scheduler
        self._synced = synced
        self._lock = allocate_lock()
        self._unsynced: dict[Partition, None] = {}

    def add(self, partition: Partition) -> None:
        """Sync `partition` soon."""
        with self._lock:
            if partition in self._unsynced:
                return
            self._unsynced[partition] = None
            is_first = len(self._unsynced) == 1
        if is_first:
            self._scheduler.notify()

    def run_once(self, _now_ms: int) -> int | None:
        """Sync every partition that was left here, once."""
        if not self._unsynced:
            return None
        with self._lock:
            unsynced, self._unsynced = self._unsynced, {}
        for partition in unsynced:
            try:
                partition.sync()
            except errors.KafkaStorageError:
                # The log remembers, and refuses writes; those who wait learn of it below.
                assert partition.log.failure is not None, partition.topic_partition
            self._synced(partition)
        return 0 if self._unsynced else None
