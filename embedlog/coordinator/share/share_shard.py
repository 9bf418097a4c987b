"""`ShareShard`: the stored states of one partition of `__share_group_state`.

The topic is not compacted: the coordinator itself deletes the records below the oldest snapshot
that is the latest of its share partition. So that idle share partitions do not keep all records of
the others, they get a fresh snapshot from time to time, a *cold* one.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.result import Result
from embedlog.coordinator.share.stored_state import StoredState, tombstone
from wire.schemas.share_state import ShareSnapshotKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from embedlog.coordinator.result import CoordinatorRecord
    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.coordinator.share.keys import ShareKey
    from embedlog.errors import KafkaError

    DeleteRecords = Callable[[int, int], None]

_COLD = "cold snapshots"
_PRUNING = "pruning"
_SNAPSHOTS_AT_ONCE = 5000
"""After about this many cold snapshots other operations of the shard get their turn."""


class ShareShard:
    """One loaded shard. Requires for every method: the shard's lock.

    `delete_records(partition, offset)` deletes the records below an offset; it is called without
    the lock. `state_count` counts the states of all loaded shards of the broker.
    """

    def __init__(
        self,
        context: ShardContext,
        *,
        delete_records: DeleteRecords,
        state_count: Callable[[], int],
    ) -> None:
        self.context = context
        self.states: dict[ShareKey, StoredState] = {}
        self._delete_records = delete_records
        self._state_count = state_count
        self._end_offset = 0
        """The offset after the last record."""

    def check_room(self) -> None:
        """Raise PolicyViolation if the broker has the maximum number of states."""
        count_max: int = self.context.config.embedlog_max_share_partitions
        if self._state_count() >= count_max:
            raise errors.PolicyViolation(
                f"There are {count_max} share partitions; no more than "
                "embedlog.max.share.partitions can be in use."
            )

    def forget_topics(self, topic_ids: Collection[bytes]) -> Result[None]:
        """Delete the states of deleted topics."""
        return Result(
            [tombstone(key) for key in self.states if key[1] in topic_ids], is_atomic=False
        )

    # By the clock

    def snapshot_cold(self) -> Result[None]:
        """Write a snapshot of every state that has had none for an interval.

        If all states have cold snapshots already, others would free no space.
        """
        interval_ms = self.context.config.share_coordinator_cold_partition_snapshot_interval_ms
        latest_ms = self.context.wall_ms() - interval_ms
        now_ms = self.context.wall_ms()
        due: list[ShareKey] = []
        if not all(state.is_cold for state in self.states.values()):
            due = [key for key, state in self.states.items() if state.write_ms <= latest_ms]
        is_any_left = len(due) > _SNAPSHOTS_AT_ONCE
        self.context.timer.schedule(_COLD, 1 if is_any_left else interval_ms, self.snapshot_cold)
        return Result(
            [self.states[key].repeated(key, now_ms=now_ms) for key in due[:_SNAPSHOTS_AT_ONCE]],
            is_atomic=False,
        )

    def prune(self) -> Result[None]:
        """Delete the records that no load needs, once all records that replace them are committed.

        Without states no record is needed.
        """
        interval_ms = self.context.config.share_coordinator_state_topic_prune_interval_ms
        self.context.timer.schedule(_PRUNING, interval_ms, self.prune)
        needed = min(
            (state.snapshot_offset for state in self.states.values()), default=self._end_offset
        )

        def committed(error: KafkaError | None) -> None:
            if error is None:
                self.context.defer(lambda: self._delete_records(self.context.partition, needed))

        return Result(on_append=committed)

    # Life

    def replay(self, record: CoordinatorRecord, *, offset: int, producer_id: int = -1) -> None:
        self._end_offset = offset + 1
        named = record.key
        key = named.group_id, bytes(named.topic_id), named.partition
        present = self.states.get(key)
        if isinstance(named, ShareSnapshotKey):
            if record.value is None:
                self.states.pop(key, None)
            else:
                self.states[key] = StoredState(record.value, offset=offset, before=present)
        elif present is not None and record.value is not None:
            # Without a state the update's snapshot was deleted, and a later record replaces it.
            present.update(record.value)

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """Do nothing: this topic has no transactional records."""

    def loaded(self) -> None:
        config, timer = self.context.config, self.context.timer
        timer.schedule(
            _COLD, config.share_coordinator_cold_partition_snapshot_interval_ms, self.snapshot_cold
        )
        timer.schedule(_PRUNING, config.share_coordinator_state_topic_prune_interval_ms, self.prune)

    def unloaded(self, error: KafkaError) -> None:
        """Do nothing: no request waits in this shard."""
