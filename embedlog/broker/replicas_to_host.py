"""Replicas that a broker of several is to host: soon, or as soon as somebody uses them. A duty.

A change of the metadata only says which they are, as it is told under the controller's lock, and
Kafka's brokers make their logs after a topic was acknowledged, too. Who asks for one of them does
not wait for its turn, nor do those that follow it: their brokers are told that it is wanted.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.common import TopicPartition
    from embedlog.runtime import Runtime

_REST_MS = 20
"""So long what nobody uses is left alone, from the first replica on that waits."""
_SLICE_MS = 5
"""About how long other duties wait for this one."""


class ReplicasToHost:
    """`host(topic_partition)`, called without any lock, hosts one that still waits and forgets it.

    Every method may be called from any thread, with any lock held.
    """

    __slots__ = ("_begin_ms", "_clock", "_host", "_scheduler", "_waiting", "_wanted")

    def __init__(self, runtime: Runtime, host: Callable[[TopicPartition], None]) -> None:
        self._clock = runtime.clock
        self._scheduler = runtime.scheduler
        self._host = host
        self._waiting: dict[TopicPartition, None] = {}
        self._wanted: dict[TopicPartition, None] = {}
        self._begin_ms = 0

    def begin(self) -> None:
        """Host them from here on, until `close`."""
        self._scheduler.add(self)

    def close(self) -> None:
        """Host none any more."""
        self._scheduler.remove(self)
        self._waiting.clear()
        self._wanted.clear()

    def add(self, topic_partition: TopicPartition) -> None:
        """Host a replica when it is its turn."""
        if not self._waiting:
            self._begin_ms = self._clock.monotonic_ms() + _REST_MS
        self._waiting[topic_partition] = None
        self._scheduler.notify(self, _REST_MS)

    def want(self, topic_partition: TopicPartition) -> None:
        """Somebody uses it: it is its turn, if it waits."""
        if topic_partition in self._waiting:
            self._wanted[topic_partition] = None
            self._scheduler.notify(self)

    def forget(self, topic_partition: TopicPartition) -> None:
        """It is hosted, or given up."""
        self._waiting.pop(topic_partition, None)

    def __contains__(self, topic_partition: object) -> bool:
        return topic_partition in self._waiting

    def all(self) -> list[TopicPartition]:
        """Those that wait, the first one first."""
        return list(self._waiting)

    def run_once(self, now_ms: int) -> int | None:
        """Host those that are wanted; and some of the others, once they have rested."""
        others = self.all() if now_ms >= self._begin_ms else []
        began_ms = self._clock.monotonic_ms()
        for topic_partition in (*self._wanted.copy(), *others):
            self._host(topic_partition)
            self._wanted.pop(topic_partition, None)
            if self._clock.monotonic_ms() - began_ms >= _SLICE_MS:
                break
        if self._wanted:
            return 0
        return max(0, self._begin_ms - now_ms) if self._waiting else None
