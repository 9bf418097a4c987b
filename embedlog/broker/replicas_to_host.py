"""The duty that hosts new replicas on one broker of several: soon, or at once if they are used.

A change of the metadata only adds replicas to the duty's list: making their logs would hold up the
controller's lock. Kafka's brokers also make the logs after the topic was acknowledged. When a
partition is first used, its leader and its followers host their replicas at once.
"""

from __future__ import annotations

from collections.abc import Callable

from embedlog.common import TopicPartition
from embedlog.runtime import Runtime

_REST_MS = 20
"""Unused replicas are hosted this long after the first of them began to wait."""
_SLICE_MS = 5
"""After this time the duty pauses, so that the other duties can run."""


class ReplicasToHost:
    """The replicas that wait to be hosted. Any thread may call the methods, with any lock held.

    `host(topic_partition)` hosts a waiting replica and calls `forget`. No lock is held when it is
    called.
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
        """Host the used replicas first, then the others if `_REST_MS` have passed."""
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
