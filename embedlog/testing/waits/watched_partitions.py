"""`WatchedPartitions`: wakes a waiting thread when partitions change."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from embedlog.common import TopicPartition
from embedlog.errors import UnknownTopicOrPartition
from embedlog.replication.partition import Partition
from embedlog.testing.inspection.brokers import Brokers

_KEY = "a wait of a test"


class WatchedPartitions:
    """The partitions that one wait watches, at all their replicas."""

    def __init__(self, brokers: Brokers, wake: Callable[[], object]) -> None:
        """`wake` may be called under any lock."""
        self._brokers = brokers
        self._wake = wake
        self._watched: set[Partition] = set()

    def watch(self, places: Iterable[TopicPartition]) -> bool:
        """Watch these partitions as well. Return whether any of them was not watched."""
        is_any_new = False
        for place in places:
            try:
                replicas = self._brokers.replicas(*place)
            except UnknownTopicOrPartition:
                continue
            for partition in replicas.values():
                if partition not in self._watched:
                    self._watched.add(partition)
                    partition.watchers[self._changed] = None
                    is_any_new = True
        return is_any_new

    def _changed(self) -> str:
        """Wake the thread; return a key under which no fetch waits."""
        self._wake()
        return _KEY

    def close(self) -> None:
        for partition in self._watched:
            partition.watchers.pop(self._changed, None)
        self._watched.clear()
