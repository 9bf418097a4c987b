"""`GroupCoordinator`: the groups of a broker. `GroupShard` has the operations on them.

A group belongs to the partition of `__consumer_offsets` that its id's hash selects. FindCoordinator
creates the topic; until then every request fails with NotCoordinator. Metadata changes arrive under
the controller lock, under which no shard's lock may be taken. So `on_metadata` only lists a change;
the next request or the scheduler applies it.
"""

from __future__ import annotations

from embedlog.common import deque
from embedlog.coordinator.answers import failed, then
from embedlog.coordinator.group.group_shard import GroupShard
from embedlog.coordinator.placement import Placement
from embedlog.coordinator.records import GROUP_RECORD_TYPES, RecordFormat
from embedlog.coordinator.result import Result
from embedlog.coordinator.runtime import CoordinatorRuntime
from embedlog.coordinator.shard_context import CoordinatorWorld
from embedlog.errors import KafkaError
from embedlog.purgatory.purgatory import DelayedOperationPurgatory
from embedlog.purgatory.timer import Timer
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.runtime.pending import completed
from embedlog.topic_names import OFFSETS_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from embedlog.config import BrokerConfig
    from embedlog.controller.metadata import MetadataDelta, MetadataImage
    from embedlog.coordinator.group.streams.creation_errors import CreationErrors
    from embedlog.coordinator.group.streams.descriptions import Descriptions
    from embedlog.coordinator.shard_context import Pinned
    from embedlog.coordinator.share.state_client import ShareStateClient
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.runtime import Runtime
    from embedlog.runtime.pending import Pending
    from embedlog.storage.data_directories import DataDirectories

    R = TypeVar("R")


class GroupCoordinator:
    """The groups of this broker. Every method may be called from any thread."""

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        replica_manager: ReplicaManager,
        log_manager: DataDirectories,
        metadata: Callable[[], MetadataImage],
        *,
        share_state: Callable[[], ShareStateClient],
    ) -> None:
        """`share_state` returns the way to the share coordinators."""
        self._clock = runtime.clock
        self._scheduler = runtime.scheduler
        self._timers: list[Timer] = []
        self.pinned: dict[str, Pinned] = {}
        """Group -> the assignment of a test, in place of the server-side assignors."""
        self.world = CoordinatorWorld(
            runtime,
            config,
            metadata,
            timer=self._make_timer(),
            join_purgatory=DelayedOperationPurgatory("Rebalance", self._make_timer()),
            heartbeat_purgatory=DelayedOperationPurgatory("Heartbeat", self._make_timer()),
            pinned=self.pinned,
        )
        self.descriptions: Descriptions | None = None
        """The plugin for descriptions of topologies; None if the settings name none."""
        plugin = config.group_streams_topology_description_plugin_class
        if plugin is not None:
            from embedlog.coordinator.group.streams.descriptions import Descriptions, load_plugin

            self.descriptions = Descriptions(load_plugin(plugin), runtime.clock, runtime.random)
        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            self.world,
            replica_manager,
            log_manager,
            topic=OFFSETS_TOPIC,
            record_format=RecordFormat(GROUP_RECORD_TYPES),
            make_shard=lambda context: GroupShard(
                context,
                self._group_count,
                share_state,
                forget_description=None if plugin is None else self.forget_description,
            ),
            commit_timeout_ms=config.offsets_commit_timeout_ms,
            codec=config.offsets_topic_compression_codec,
            when_opened=GroupShard.opened,
        )
        self.partition_for = Placement(OFFSETS_TOPIC, metadata).partition_of
        """Returns a group's partition. Raises NotCoordinator while the topic does not exist."""
        self._creation_errors: CreationErrors | None = None
        self._changes: deque[MetadataDelta] = deque()
        self._catching_up = ranked_rlock(Rank.CATCHING_UP)
        self._scheduler.add(self)

    @property
    def creation_errors(self) -> CreationErrors:
        """The errors of the creation of internal topics for streams groups."""
        if self._creation_errors is None:
            from embedlog.coordinator.group.streams.creation_errors import CreationErrors

            self._creation_errors = CreationErrors(self._clock)
        return self._creation_errors

    def _group_count(self) -> int:
        """Count the groups of all loaded shards; the groups of other shards take no memory. Needs
        no lock.
        """
        return sum(len(shard.groups) for shard in self.runtime.loaded())

    def _make_timer(self) -> Timer:
        timer = Timer(self._clock, self._scheduler.notify)
        self._scheduler.add(timer, is_timer=True)
        self._timers.append(timer)
        return timer

    def close(self) -> None:
        """Answer the parked requests; later requests find no coordinator."""
        self._catch_up()
        self.runtime.close()
        self._scheduler.remove(self)
        for timer in self._timers:
            self._scheduler.remove(timer)

    # Operations

    def write(self, group_id: str, operation: Callable[[GroupShard], Result[R]]) -> Pending[R]:
        """Run `operation` on the group's shard, as `CoordinatorRuntime.write` does.

        Also fails with NotCoordinator while the topic does not exist.
        """
        if self._changes:
            self._catch_up()
        try:
            partition = self.partition_for(group_id)
        except KafkaError as error:
            return failed(error)
        return self.runtime.write(partition, operation)

    def read(self, group_id: str, operation: Callable[[GroupShard], R]) -> Pending[R]:
        return self.write(group_id, lambda shard: Result((), operation(shard)))

    def read_all(self, operation: Callable[[GroupShard], R]) -> list[Pending[R]]:
        self._catch_up()
        return self.runtime.read_all(operation)

    def expire_offsets(self) -> None:
        """Delete expired offsets now, without waiting for the check interval."""
        self._catch_up()
        self.runtime.write_all(lambda shard: shard.expire())

    def keep_alive(self, is_alive: Callable[[str, str, int], bool]) -> int | None:
        """Restart the time limits of the chosen members, as heartbeats do; see `GroupShard`.

        Return the shortest of their session time-outs; None if no member was chosen. Shards that
        are not loaded have no timers.
        """
        kept = [
            shard.context.write(lambda shard: Result((), shard.keep_alive(is_alive)))
            for shard in self.runtime.loaded()
        ]
        found = [each.result() for each in kept if each.done() and each.error() is None]
        return min((each for each in found if each is not None), default=None)

    def expire_sessions(self, is_chosen: Callable[[str, str], bool]) -> list[Pending[int]]:
        """End the sessions of the chosen members now; the results add up to their number."""
        return [
            shard.context.write(lambda shard: Result((), shard.expire_sessions(is_chosen)))
            for shard in self.runtime.loaded()
        ]

    def forget_description(self, group_id: str) -> Pending[None]:
        """Let the plugin forget an empty streams group that it may know.

        Fails with GroupDeletionFailed if the plugin fails.
        """
        descriptions = self.descriptions
        if descriptions is None:
            return completed(None)

        def forget(must_forget: bool) -> Pending[None] | None:
            if not must_forget:
                return None
            descriptions.delete(group_id)
            return self.write(group_id, lambda shard: shard.streams.descriptions.deleted(group_id))

        begun = self.write(
            group_id, lambda shard: shard.streams.descriptions.begin_deletion(group_id)
        )
        return then(begun, forget)

    # Metadata

    def on_metadata(self, change: MetadataDelta) -> None:
        """Note a change, to be applied soon. The caller may hold any lock."""
        self._changes.append(change)
        self._scheduler.notify(self)

    def run_once(self, _now_ms: int) -> int | None:
        self._catch_up()
        return None

    def _catch_up(self) -> None:
        """Apply every noted change. Requires: no lock."""
        if not self._changes:
            return
        with self._catching_up:
            while self._changes:
                # Keep the change listed until it is applied, so that no request overtakes it.
                self._act_on(self._changes[0])
                self._changes.popleft()

    def _act_on(self, change: MetadataDelta) -> None:
        deleted = change.deleted
        if any(topic.name == OFFSETS_TOPIC for topic in deleted):
            self.runtime.unload_all()
        elif deleted:
            self.runtime.write_all(lambda shard: shard.forget_topics(deleted))
