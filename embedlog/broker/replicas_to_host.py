"""The duty that hosts the replicas of a broker of several: soon, or at once when used.

A change of the metadata only names them, because it holds the controller's lock; Kafka's brokers
also make their logs after they acknowledged a topic. A replica that is used does not wait for its
turn, nor do its followers: their brokers host it at once.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.common import TopicPartition
    from embedlog.runtime import Runtime

_REST_MS = 20
"""Rest before unused replicas are hosted, from the first waiting replica on."""
_SLICE_MS = 5
"""How long the duty works before the other duties have their turn."""


class ReplicasToHost:
    """`host(topic_partition)` hosts a waiting replica and forgets it. It is called without locks.

    Every method may be called from any thread, with any lock held.
    """

    def __init__(self, runtime: Runtime, host: Callable[[TopicPartition], None]) -> None:
        self._clock = runtime.clock
        self._scheduler = runtime.scheduler
        self._host = host
        self._waiting: dict[TopicPartition, None] = {}
        self._wanted: dict[TopicPartition, None] = {}
        self._begin_ms = 0

    def begin(self) -> None:
        self._scheduler.add(self)

    def close(self) -> None:
        self._scheduler.remove(self)
        self._waiting.clear()
        self._wanted.clear()

    def add(self, topic_partition: TopicPartition) -> None:
        if not self._waiting:
            self._begin_ms = self._clock.monotonic_ms() + _REST_MS
        self._waiting[topic_partition] = None
        self._scheduler.notify(self, _REST_MS)

    def want(self, topic_partition: TopicPartition) -> None:
        """Host a waiting replica now, because somebody uses it."""
        if topic_partition in self._waiting:
            self._wanted[topic_partition] = None
            self._scheduler.notify(self)

    def forget(self, topic_partition: TopicPartition) -> None:
        self._waiting.pop(topic_partition, None)

    def __contains__(self, topic_partition: object) -> bool:
        return topic_partition in self._waiting

    def all(self) -> list[TopicPartition]:
        return list(self._waiting)

    def run_once(self, now_ms: int) -> int | None:
        """Host the used replicas, and some of the others after their rest."""
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
