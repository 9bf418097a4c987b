"""`ShareCoordinator`: the stored states of share partitions of a broker.

A state belongs to the partition of `__share_group_state` that the hash of its key selects. The
first look-up or call creates the topic; until then every request fails with NotCoordinator.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import deque
from embedlog.coordinator.answers import failed
from embedlog.coordinator.placement import Placement
from embedlog.coordinator.records import SHARE_RECORD_TYPES, RecordFormat
from embedlog.coordinator.runtime import CoordinatorRuntime
from embedlog.coordinator.shard_context import CoordinatorWorld
from embedlog.coordinator.share.keys import key_text
from embedlog.coordinator.share.share_shard import ShareShard
from embedlog.errors import EmbedlogError
from embedlog.logger import Logger
from embedlog.purgatory.purgatory import DelayedOperationPurgatory
from embedlog.purgatory.timer import Timer
from embedlog.topic_names import SHARE_STATE_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from embedlog.config import BrokerConfig
    from embedlog.controller.metadata import MetadataDelta, MetadataImage
    from embedlog.coordinator.result import Result
    from embedlog.coordinator.share.keys import ShareKey
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.runtime import Runtime
    from embedlog.runtime.pending import Pending
    from embedlog.storage.data_directories import DataDirectories

    R = TypeVar("R")

_log = Logger("coordinator")

_RETRY_MS = 1000


class ShareCoordinator:
    """The states of share partitions. Every method may be called from any thread."""

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        replica_manager: ReplicaManager,
        log_manager: DataDirectories,
        metadata: Callable[[], MetadataImage],
    ) -> None:
        self._replica_manager = replica_manager
        self._scheduler = runtime.scheduler
        self._timer = Timer(runtime.clock, runtime.scheduler.notify)
        runtime.scheduler.add(self._timer, is_timer=True)
        self._placement = Placement(SHARE_STATE_TOPIC, metadata)
        self._changes: deque[MetadataDelta] = deque()
        self._kept_topics: set[bytes] = set()
        """Ids of deleted topics whose states could not be deleted yet."""
        self._runs = self._is_closed = False
        purgatory = DelayedOperationPurgatory("Share", self._timer)
        world = CoordinatorWorld(
            runtime,
            config,
            metadata,
            timer=self._timer,
            join_purgatory=purgatory,
            heartbeat_purgatory=purgatory,
        )
        self.runtime: CoordinatorRuntime[ShareShard] = CoordinatorRuntime(
            world,
            replica_manager,
            log_manager,
            topic=SHARE_STATE_TOPIC,
            record_format=RecordFormat(SHARE_RECORD_TYPES, is_cumulative=True),
            make_shard=lambda context: ShareShard(
                context, delete_records=self._delete_records, state_count=self._state_count
            ),
            commit_timeout_ms=config.share_coordinator_write_timeout_ms,
            codec=config.share_coordinator_state_topic_compression_codec,
        )
        runtime.scheduler.add(self)

    def write(self, key: ShareKey, operation: Callable[[ShareShard], Result[R]]) -> Pending[R]:
        """Run `operation` on the shard of a share partition, as `CoordinatorRuntime.write` does.

        Also fails with NotCoordinator while the topic does not exist.
        """
        group_id, topic_id, number = key
        try:
            partition = self._placement.partition_of(key_text(group_id, (topic_id, number)))
        except errors.NotCoordinator as error:
            return failed(error)
        return self.runtime.write(partition, operation)

    def close(self) -> None:
        """Close; later requests find no coordinator."""
        self._is_closed = True
        self._scheduler.remove(self)
        self.runtime.close()
        self._scheduler.remove(self._timer)

    # Metadata

    def on_metadata(self, change: MetadataDelta) -> None:
        """Note a change with deleted topics, to be applied soon. The caller may hold any lock.

        A request that comes before is answered as Kafka answers it at such a moment: the ids of
        topics are never used again.
        """
        self._changes.append(change)
        self._scheduler.notify(self)

    def run_once(self, _now_ms: int) -> int | None:
        self._runs = True
        try:
            if self._kept_topics:
                topic_ids = frozenset(self._kept_topics)
                self._kept_topics.clear()
                self._forget(topic_ids)
            while self._changes:
                # Keep the change listed until it is applied: Ctrl-C may end this call.
                deleted = self._changes[0].deleted
                if any(topic.name == SHARE_STATE_TOPIC for topic in deleted):
                    self.runtime.unload_all()
                else:
                    self._forget(frozenset(topic.topic_id for topic in deleted))
                self._changes.popleft()
        finally:
            self._runs = False
        return _RETRY_MS if self._kept_topics else None

    def _forget(self, topic_ids: frozenset[bytes]) -> None:
        """Delete the states of deleted topics. Try again later if replicas are missing."""

        def written(done: Pending[None]) -> None:
            if isinstance(done.error(), errors.CoordinatorNotAvailable) and not self._is_closed:
                self._kept_topics.update(topic_ids)
                if not self._runs:
                    self._scheduler.notify(self, _RETRY_MS)

        for pending in self.runtime.write_all(lambda shard: shard.forget_topics(topic_ids)):
            pending.add_callback(written)

    def _state_count(self) -> int:
        """Count the states of all loaded shards. Needs no lock."""
        return sum(len(shard.states) for shard in self.runtime.loaded())

    def _delete_records(self, index: int, offset: int) -> None:
        """Delete the records of a partition below an offset. Requires: no lock."""
        try:
            partition = self._replica_manager.partition(SHARE_STATE_TOPIC, index)
            if partition.log.offsets.log_start_offset >= offset:
                return
            partition.delete_records(offset)
        except EmbedlogError as error:
            _log.info("the records of %s-%d are kept: %s", SHARE_STATE_TOPIC, index, error)
            return
        self._replica_manager.records_deleted(partition)
