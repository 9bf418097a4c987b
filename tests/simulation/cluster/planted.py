"""Bugs planted on purpose in replication. The stories must find every one of them."""

from __future__ import annotations

from typing import Any

from embedlog.controller import elections
from embedlog.replication import delayed_produce, fetch_reader
from embedlog.replication.fetcher import followed_partition as followed_module
from embedlog.replication.fetcher.followed_partition import FollowedPartition
from embedlog.replication.leader_and_isr import LeaderAndIsr
from embedlog.replication.partition import Isolation, Partition
from embedlog.replication.remote_replicas import RemoteReplicas
from embedlog.storage.log.epochs import LogEpochs
from embedlog.storage.log.transactions import LogTransactions
from embedlog.storage.replica.truncation import truncate_to
from tests.simulation.planted import instead
from wire.error_codes import ErrorCode

# The high watermark


def the_leaders_end_counts_as_committed(
    _right: Any, _replicas: Any, own_offset: int, _end_offset: int
) -> int:
    return own_offset


def any_followers_end_counts_as_committed(
    _right: Any, replicas: Any, own_offset: int, _end_offset: int
) -> int:
    return min(own_offset, max(replica.log_end_offset for replica in replicas.all()))


def too_few_in_sync_commit(right: Any, replicas: Any, own_offset: int, end_offset: int) -> int:
    state = replicas.state
    replicas.state = state.replace(min_insync_replicas=1)
    try:
        offset: int = right(replicas, own_offset, end_offset)
    finally:
        replicas.state = state
    return offset


def consumers_read_to_the_end(
    right: Any, partition: Any, params: Any, asked: Any, **how: Any
) -> Any:
    params.isolation = Isolation.LOG_END
    return right(partition, params, asked, **how)


# In-sync sets


def one_in_sync_is_enough(_right: Any, _state: Any) -> int:
    return 1


def a_lagging_replica_joins_the_isr(
    _right: Any, replicas: Any, replica: Any, _high_watermark: int
) -> Any:
    if replicas.proposal is not None or replica.node_id in replicas.state.isr:
        return None
    return replicas._propose((*replicas.state.isr, replica.node_id))


def a_returning_replica_keeps_its_old_offset(right: Any, replicas: Any, state: Any) -> None:
    """In a new term of the same leader, keep the old knowledge about the followers."""
    right(replicas, state)
    for replica in replicas.all():
        if replica.node_id in state.isr:
            replica.log_end_offset = max(replica.log_end_offset, 1 << 40)


# Followers


def truncated_to_the_high_watermark(_right: Any, followed: Any) -> None:
    partition = followed.partition
    with partition.lock:
        if followed.is_current():
            truncate_to(partition.log, partition.log.offsets.high_watermark)


def nothing_is_truncated(_right: Any, followed: Any, _epoch: int, _end_offset: int) -> None:
    return


def followers_forget_producers(right: Any, log: Any, records: Any, **how: Any) -> Any:
    transactions = log.transactions
    replay = LogTransactions.replay
    LogTransactions.replay = lambda *_: None  # type: ignore[method-assign]
    try:
        return right(log, records, **how)
    finally:
        LogTransactions.replay = replay  # type: ignore[method-assign]
        assert log.transactions is transactions


# Leaders


def a_deposed_leader_goes_on(right: Any, partition: Any, state: Any, node_id: int) -> None:
    was_leader, others = partition.is_leader, partition.remote_replicas
    right(partition, state, node_id)
    if was_leader and not partition.is_leader:
        partition.is_leader, partition.remote_replicas = True, others


def acknowledged_when_appended(right: Any, partition: Any, offset: int, **how: Any) -> Any:
    return ErrorCode.NONE if partition.is_leader else right(partition, offset, **how)


def every_epoch_ends_at_the_end(_right: Any, epochs: Any, epoch: int) -> Any:
    return epoch, epochs._chain.end_offset


# The controller


def any_replica_may_lead(right: Any, before: Any, rules: Any, target: Any) -> Any:
    for node in target.replicas:
        if rules.is_acceptable(node):
            return node, False
    return right(before, rules, target)


def a_new_leader_begins_no_epoch(right: Any, before: Any, rules: Any, target: Any) -> Any:
    after = right(before, rules, target)
    after.leader_epoch = before.leader_epoch
    return after


def a_move_ends_before_all_have_arrived(_right: Any, target: Any) -> None:
    if target.adding or target.removing:
        replicas = elections._without(target.replicas, target.removing)
        isr = elections._without(target.isr, target.removing)
        target.replicas, target.isr = replicas, isr or replicas[:1]
        target.adding = target.removing = ()


BUGS = (
    instead(RemoteReplicas, "committed_offset", the_leaders_end_counts_as_committed),
    instead(RemoteReplicas, "committed_offset", any_followers_end_counts_as_committed),
    instead(RemoteReplicas, "committed_offset", too_few_in_sync_commit),
    instead(fetch_reader, "read_partition", consumers_read_to_the_end),
    instead(LeaderAndIsr, "min_isr", one_in_sync_is_enough),
    instead(RemoteReplicas, "propose_with", a_lagging_replica_joins_the_isr),
    instead(RemoteReplicas, "take", a_returning_replica_keeps_its_old_offset),
    instead(FollowedPartition, "begin", truncated_to_the_high_watermark),
    instead(FollowedPartition, "truncate", nothing_is_truncated),
    instead(followed_module, "append_as_follower", followers_forget_producers),
    instead(Partition, "_take", a_deposed_leader_goes_on),
    instead(delayed_produce, "commit_state", acknowledged_when_appended),
    instead(LogEpochs, "end_offset_for", every_epoch_ends_at_the_end),
    instead(elections, "_elect", any_replica_may_lead),
    instead(elections, "changed", a_new_leader_begins_no_epoch),
    instead(elections.PartitionTarget, "end_reassignment", a_move_ends_before_all_have_arrived),
)
