"""`Look`: how far readers may read in some topics at one moment, and waiting for a change of that.

Appends, new high watermarks, markers and new leaders try the fetches that wait in a broker's
purgatory. A `_Watch` waits beside them, so nothing polls, and a cluster without a waiting test pays
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.replication.partition import Isolation
from embedlog.runtime.pending import Pending
from embedlog.testing.topics.logs import Logs, leading

if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.replication.partition import Partition

_NO_SIGNAL_MS = 100
"""A broker that starts during a wait is not watched. So while one is down, or a partition has no
leader, look again after this time."""
_SETTLE_MS = 1000
"""Longest wait of a read for records that are in the log and not committed yet."""

Key = tuple[str, bytes, int]
"""Topic, topic id, partition: a topic that is made anew has other partitions."""


class Look:
    """The partitions of some topics at one moment. Topics that do not exist have none."""

    def __init__(self, logs: Logs, topics: Iterable[str] | None, isolation: int) -> None:
        """None as `topics` means all but the internal ones."""
        self._logs = logs
        self._topics = None if topics is None else list(topics)
        self._isolation = isolation
        self._hosts: list[tuple[Broker, Partition, object]] = []
        self.leaders: dict[Key, Partition] = {}
        """The replica of each partition that has a leader, in order."""
        self.ends: dict[Key, int] = {}
        """The offset at which a reader must stop, for each partition with a leader."""
        self._places = self._find_places()
        self.lacks_leader = False
        """Whether some partition has no running leader."""
        for topic, index in self._places:
            hosts = logs.hosts(topic, index)
            sights = [(core, each, _sight(each, isolation)) for core, each in hosts]
            self._hosts += sights
            leader = leading(hosts)
            if leader is None:
                self.lacks_leader = True
                continue
            partition = leader[1]
            key = (topic, partition.topic_id, index)
            self.leaders[key] = partition
            self.ends[key] = partition.end_offset(isolation)

    def _find_places(self) -> list[tuple[str, int]]:
        """Return the partitions that exist, in order."""
        known = self._logs.image().topics_by_name
        names = self._logs.names() if self._topics is None else self._topics
        return [
            (name, index)
            for name in names
            if name in known
            for index in range(len(known[name].partitions))
        ]

    def wait(self, timeout_ms: int) -> None:
        """Wait until something may have changed since this look, or the time is over."""
        logs = self._logs
        if self.lacks_leader or len(logs.cores()) < len(logs.cluster.brokers):
            timeout_ms = min(timeout_ms, _NO_SIGNAL_MS)
        done: Pending[Any] = Pending()

        def hosted(_partition: object) -> None:
            done.complete(None)

        managers = [core.replica_manager for core in logs.cores()]
        watches = []
        try:
            for manager in managers:
                manager.when_hosted.append(hosted)
            if self._find_places() != self._places:
                return
            for core, partition, sight in self._hosts:
                watch = _Watch(timeout_ms, partition, sight, self._isolation, done)
                watches.append(watch)
                keys = [partition.topic_partition]
                if core.replica_manager.fetch_purgatory.try_complete_else_watch(watch, keys):
                    return
            logs.runtime.scheduler.wait(done, timeout_ms)
        finally:
            for manager in managers:
                manager.when_hosted.remove(hosted)
            for watch in watches:
                watch.force_complete()


class _Watch(DelayedOperation):
    """Ends when readers of a replica may read further, or its leader has changed."""

    __slots__ = ("_done", "_isolation", "_partition", "_seen")

    def __init__(
        self,
        delay_ms: int,
        partition: Partition,
        seen: object,
        isolation: int,
        done: Pending[None],
    ) -> None:
        super().__init__(delay_ms)
        self._partition = partition
        self._seen = seen
        self._isolation = isolation
        self._done = done

    def try_complete(self) -> bool:
        has_changed = _sight(self._partition, self._isolation) != self._seen
        return has_changed and self.complete_held()

    def on_complete(self) -> None:
        self._done.complete(None)


def _sight(partition: Partition, isolation: int) -> Any:
    if partition.retired_with or not partition.is_leader:
        return partition.retired_with, partition.leader
    return partition.leader_epoch, partition.end_offset(isolation)


def settled(
    logs: Logs, topics: Iterable[str] | None, isolation: int, *, needs_leaders: bool = False
) -> Look:
    """Return a look once the records that are in the logs at this moment are committed.

    A producer with acks=1 is answered before the other replicas have its record. The wait is short
    if the replicas cannot follow, and each record is waited for once. With `needs_leaders` it also
    waits a moment for an election.
    """
    look = Look(logs, topics, isolation)
    wanted = {key: each.log.log_end_offset for key, each in look.leaders.items()}
    if not _lagging(logs, look, wanted) and not (needs_leaders and look.lacks_leader):
        return look
    clock = logs.runtime.clock
    deadline = clock.monotonic_ms() + _SETTLE_MS
    while True:
        watched = Look(logs, topics, Isolation.HIGH_WATERMARK)
        lagging = _lagging(logs, watched, wanted)
        left_ms = deadline - clock.monotonic_ms()
        if not lagging and not (needs_leaders and watched.lacks_leader):
            break
        if left_ms <= 0:
            for key in lagging:
                logs.unsettled[key[0], key[2]] = wanted[key]
            break
        watched.wait(left_ms)
    return Look(logs, topics, isolation)


def _lagging(logs: Logs, look: Look, wanted: dict[Key, int]) -> list[Key]:
    """Return the partitions whose wanted records are not committed and may be soon."""
    return [
        key
        for key, partition in look.leaders.items()
        if partition.log.offsets.high_watermark < wanted.get(key, 0)
        and logs.unsettled.get((key[0], key[2])) != wanted[key]
    ]
