"""The operations on the stored state of one share partition, with Kafka's checks in its order.

Requires for every function: the shard's lock.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import Value
from embedlog.coordinator.result import Result
from embedlog.coordinator.share.merging import NO_START, cut, merged
from embedlog.coordinator.share.stored_state import NO_COUNT, first_snapshot, tombstone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.coordinator.result import CoordinatorRecord
    from embedlog.coordinator.share.keys import ShareKey
    from embedlog.coordinator.share.merging import Batch
    from embedlog.coordinator.share.share_shard import ShareShard
    from embedlog.coordinator.share.stored_state import StoredState

_OFFSET_MAX = (1 << 63) - 1
_BATCH_COUNT_MAX = 20_000
"""Batches of one state. Their snapshot fits into one batch of the log. A share partition has at
most 10,000 acquired records."""

_FENCED_LEADER = "The leader epoch in the request is older than the epoch on the broker."
_FENCED_STATE = "The coordinator rejected the request because the state epoch did not match."


class StateRead(Value):
    """The answer to a read."""

    state_epoch: int
    start_offset: int
    batches: Sequence[Batch]


class StateSummary(Value):
    """The answer to a read without batches. The defaults stand for an unknown share partition."""

    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = NO_START
    delivery_complete_count: int = NO_COUNT


class StateWrite(Value):
    """A leader's changes of a state; see `ShareStateClient.write`."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[Batch]


def initialize(
    shard: ShareShard, key: ShareKey, *, state_epoch: int, start_offset: int
) -> Result[None]:
    """Begin a state anew, without batches.

    Raises:
        InvalidRequest: a number is negative.
        FencedStateEpoch: the state has a higher epoch.
        UnknownTopicOrPartition: the topic has no such partition.
        PolicyViolation: see `ShareShard.check_room`.
    """
    _check_partition(key)
    _check_state_epoch(state_epoch)
    present = shard.states.get(key)
    if present is not None and state_epoch < present.state_epoch:
        raise errors.FencedStateEpoch(_FENCED_STATE)
    _check_exists(shard, key)
    if present is None:
        shard.check_room()
    record = first_snapshot(
        key,
        snapshot_epoch=0 if present is None else present.snapshot_epoch + 1,
        state_epoch=state_epoch,
        start_offset=start_offset,
        now_ms=shard.context.wall_ms(),
    )
    return Result([record])


def read(shard: ShareShard, key: ShareKey, *, leader_epoch: int) -> Result[StateRead]:
    """Return the state. A leader epoch that is higher than all before is written down.

    Raises:
        InvalidRequest: a number is negative, or the state was never initialized.
        FencedLeaderEpoch: a later leader has read the state.
        UnknownTopicOrPartition: the topic has no such partition any more.
    """
    _check_partition(key)
    _check_leader_epoch(leader_epoch)
    present = _initialized(shard, key, "Read")
    _check_leader(present, leader_epoch)
    _check_exists(shard, key)
    answer = StateRead(present.state_epoch, present.start_offset, present.batches)
    if leader_epoch <= present.highest_leader_epoch:
        return Result((), answer)
    record = _changed(
        shard,
        key,
        present,
        leader_epoch=leader_epoch,
        start_offset=present.start_offset,
        delivery_complete_count=present.delivery_complete_count,
    )
    return Result([record], answer)


def write(shard: ShareShard, key: ShareKey, wanted: StateWrite) -> Result[None]:
    """Merge the batches of a leader into the state.

    Raises:
        InvalidRequest: a number is negative, the state was never initialized, a batch is none, or
            the state would have too many batches.
        FencedLeaderEpoch: a later leader has read the state.
        FencedStateEpoch: the state has a higher epoch.
        UnknownTopicOrPartition: the topic has no such partition any more.
    """
    _check_partition(key)
    _check_leader_epoch(wanted.leader_epoch)
    _check_state_epoch(wanted.state_epoch)
    present = _initialized(shard, key, "Write")
    _check_leader(present, wanted.leader_epoch)
    if wanted.state_epoch < present.state_epoch:
        raise errors.FencedStateEpoch(_FENCED_STATE)
    _check_exists(shard, key)
    _check_batches(present, wanted.batches)
    start, complete = present.advanced(wanted.start_offset, wanted.delivery_complete_count)
    record = _changed(
        shard,
        key,
        present,
        leader_epoch=present.leader_epoch,
        start_offset=start,
        delivery_complete_count=complete,
        batches=cut(merged((), wanted.batches), start),
    )
    return Result([record])


def delete(shard: ShareShard, key: ShareKey) -> Result[None]:
    """Delete the state. An unknown one needs no record.

    Raises:
        InvalidRequest: the partition is negative.
        UnknownTopicOrPartition: the topic has no such partition.
    """
    _check_partition(key)
    _check_exists(shard, key)
    return Result([tombstone(key)] if key in shard.states else ())


def summarize(shard: ShareShard, key: ShareKey) -> Result[StateSummary]:
    """Return the state without its batches.

    Raises:
        InvalidRequest: the partition is negative.
        UnknownTopicOrPartition: the topic has no such partition.
    """
    _check_partition(key)
    _check_exists(shard, key)
    present = shard.states.get(key)
    if present is None:
        return Result((), StateSummary())
    return Result(
        (),
        StateSummary(
            present.state_epoch,
            present.leader_epoch,
            present.start_offset,
            present.delivery_complete_count,
        ),
    )


def _changed(
    shard: ShareShard,
    key: ShareKey,
    present: StoredState,
    *,
    leader_epoch: int,
    start_offset: int,
    delivery_complete_count: int,
    batches: Sequence[Batch] = (),
) -> CoordinatorRecord:
    """Return an update, or a snapshot if the last snapshot has the maximum number of updates."""
    count_max = shard.context.config.share_coordinator_snapshot_update_records_per_snapshot
    if present.update_count < count_max:
        return present.changed(
            key,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            batches=batches,
        )
    return present.changed_by_snapshot(
        key,
        now_ms=shard.context.wall_ms(),
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=delivery_complete_count,
        batches=batches,
    )


def _check_partition(key: ShareKey) -> None:
    if key[2] < 0:
        raise errors.InvalidRequest("The partition id cannot be a negative number.")


def _check_leader_epoch(leader_epoch: int) -> None:
    if leader_epoch < 0:
        raise errors.InvalidRequest("The leader epoch cannot be a negative number.")


def _check_state_epoch(state_epoch: int) -> None:
    if state_epoch < 0:
        raise errors.InvalidRequest("The state epoch cannot be a negative number.")


def _initialized(shard: ShareShard, key: ShareKey, operation: str) -> StoredState:
    present = shard.states.get(key)
    if present is None:
        raise errors.InvalidRequest(
            f"{operation} operation on uninitialized share partition not allowed."
        )
    return present


def _check_leader(present: StoredState, leader_epoch: int) -> None:
    if leader_epoch < present.highest_leader_epoch:
        raise errors.FencedLeaderEpoch(_FENCED_LEADER)


def _check_exists(shard: ShareShard, key: ShareKey) -> None:
    topic = shard.context.metadata().topics_by_id.get(key[1])
    if topic is None or key[2] >= len(topic.partitions):
        raise errors.UnknownTopicOrPartition()


def _check_batches(present: StoredState, batches: Sequence[Batch]) -> None:
    for first, last, _, _ in batches:
        if not first <= last < _OFFSET_MAX:
            raise errors.InvalidRequest(f"A batch from offset {first} to {last} is none.")
    if len(present.batches) + len(batches) > _BATCH_COUNT_MAX:
        raise errors.InvalidRequest(
            f"The state of a share partition has at most {_BATCH_COUNT_MAX} batches."
        )
