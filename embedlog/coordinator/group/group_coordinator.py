"""`GroupCoordinator`: where the groups of a broker live. What is done to them: `GroupShard`.

A group lives in the partition of `__consumer_offsets` that its id hashes to. FindCoordinator makes
the topic; until then nobody coordinates anything. Changes of the metadata are noted at once and
acted on before the next request, or by the scheduler: metadata changes under a lock that groups
must not wait for.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import deque
from embedlog.coordinator.answers import failed
from embedlog.coordinator.group.group_shard import GroupShard
from embedlog.coordinator.leadership import Leadership
from embedlog.coordinator.placement import partition_of
from embedlog.coordinator.records import GROUP_RECORD_TYPES, RecordFormat
from embedlog.coordinator.result import Result
from embedlog.coordinator.runtime import CoordinatorRuntime
from embedlog.coordinator.shard_context import CoordinatorWorld
from embedlog.errors import KafkaError
from embedlog.purgatory.purgatory import DelayedOperationPurgatory
from embedlog.purgatory.timer import Timer
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.topic_names import OFFSETS_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol, TypeVar

    from embedlog.config import BrokerConfig
    from embedlog.coordinator.broker_view import Metadata, MetadataChange
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.runtime import Runtime
    from embedlog.runtime.pending import Pending

    R = TypeVar("R")

    class Broker(Protocol):
        """What the coordinator needs of the broker that it is part of."""

        runtime: Runtime
        config: BrokerConfig
        replica_manager: ReplicaManager

        def metadata(self) -> Metadata:
            """The present state of the cluster."""

        def partitions_with_log(self, topic: str) -> Iterable[int]:
            """The partitions that have a log here, opened or not."""


_PLACES_MAX = 100_000


class GroupCoordinator:
    """The groups of this broker. Every method may be called from any thread."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._scheduler = broker.runtime.scheduler
        self._timers: list[Timer] = []
        self.world = CoordinatorWorld(
            broker.runtime,
            broker.config,
            broker.metadata,
            timer=self._make_timer(),
            join_purgatory=DelayedOperationPurgatory("Rebalance", self._make_timer()),
            heartbeat_purgatory=DelayedOperationPurgatory("Heartbeat", self._make_timer()),
        )
        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            self.world,
            broker.replica_manager,
            topic=OFFSETS_TOPIC,
            record_format=RecordFormat(GROUP_RECORD_TYPES),
            make_shard=lambda context: GroupShard(context, self._group_count),
            partitions_with_log=lambda: broker.partitions_with_log(OFFSETS_TOPIC),
            commit_timeout_ms=broker.config.offsets_commit_timeout_ms,
            codec=broker.config.offsets_topic_compression_codec,
            when_opened=GroupShard.opened,
        )
        self.leadership = Leadership(self._scheduler, self.runtime.follow_leader)
        self._places: dict[str, int] = {}
        self._changes: deque[MetadataChange] = deque()
        self._catching_up = ranked_rlock(Rank.CATCHING_UP)
        self._scheduler.add(self)

    def _group_count(self) -> int:
        """Of all shards that are loaded: the others take no memory. Needs no lock."""
        return sum(len(shard.groups) for shard in self.runtime.loaded())

    def _make_timer(self) -> Timer:
        timer = Timer(self._broker.runtime.clock, self._scheduler.notify)
        self._scheduler.add(timer)
        self._timers.append(timer)
        return timer

    def close(self) -> None:
        """Answer the parked requests. Requests after this find no coordinator."""
        self._catch_up()
        self.leadership.close()
        self.runtime.close()
        self._scheduler.remove(self)
        for timer in self._timers:
            self._scheduler.remove(timer)

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that the group lives in.

        Raises:
            NotCoordinator: the topic is not there, as nobody has asked for a coordinator yet.
        """
        place = self._places.get(group_id)
        if place is None:
            topic = self._broker.metadata().topics_by_name.get(OFFSETS_TOPIC)
            if topic is None:
                raise errors.NotCoordinator()
            if len(self._places) >= _PLACES_MAX:
                self._places.clear()
            place = self._places[group_id] = partition_of(group_id, len(topic.partitions))
        return place

    # Operations

    def write(self, group_id: str, operation: Callable[[GroupShard], Result[R]]) -> Pending[R]:
        """Do `operation` on the shard of a group: see `CoordinatorRuntime.write`.

        Fails with NotCoordinator, too, as long as there is no topic for the group to live in.
        """
        if self._changes:
            self._catch_up()
        try:
            partition = self.partition_for(group_id)
        except KafkaError as error:
            return failed(error)
        return self.runtime.write(partition, operation)

    def read(self, group_id: str, operation: Callable[[GroupShard], R]) -> Pending[R]:
        """The same for an operation that appends nothing."""
        return self.write(group_id, lambda shard: Result((), operation(shard)))

    def read_all(self, operation: Callable[[GroupShard], R]) -> list[Pending[R]]:
        """`read` on every shard that may hold a group."""
        self._catch_up()
        return self.runtime.read_all(operation)

    def expire_offsets(self) -> None:
        """Delete what has outlived offsets.retention.minutes, also before the interval is over."""
        self._catch_up()
        self.runtime.write_all(lambda shard: shard.expire())

    # Metadata

    def on_metadata(self, change: MetadataChange) -> None:
        """Note a change, to act on it soon. Callable with any lock held."""
        self._changes.append(change)
        self._scheduler.notify(self)

    def run_once(self, _now_ms: int) -> int | None:
        """Act on what was noted."""
        self._catch_up()
        return None

    def _catch_up(self) -> None:
        """Act on every change noted so far. Requires: no lock."""
        if not self._changes:
            return
        with self._catching_up:
            while self._changes:
                # It is taken off when it is done, so that no request overtakes it.
                self._act_on(self._changes[0])
                self._changes.popleft()

    def _act_on(self, change: MetadataChange) -> None:
        deleted = [topic.name for topic in change.deleted]
        if OFFSETS_TOPIC in deleted:
            self._places.clear()
            self.runtime.unload_all()
        elif deleted:
            self.runtime.write_all(lambda shard: shard.forget_topics(deleted))
