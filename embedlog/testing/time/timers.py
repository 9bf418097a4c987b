"""The due times of everything in a cluster, in words: see `KafkaClock.timers`."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from embedlog.broker.broker import Broker
from embedlog.cluster.cluster import Cluster
from embedlog.cluster.member import ClusterMember
from embedlog.coordinator.group.classic.group_operation import DelayedHeartbeat, GroupOperation
from embedlog.coordinator.transaction import states
from embedlog.coordinator.transaction.transaction_metadata import NO_TIME, NO_TIMEOUT_MS
from embedlog.purgatory.timer import Timer, TimerTask
from embedlog.storage.directory.tasks import LogTasks
from embedlog.topic_names import TRANSACTIONS_TOPIC

_NEVER = float("inf")
_LOG_TASKS = {
    "retention": "retention of old segments",
    "expire": "expiry of idle producers",
    "unlink": "removal of deleted segments' files",
    "clean": "compaction",
    "checkpoint": "checkpoint of synced offsets",
    "high watermarks": "checkpoint of high watermarks",
    "unsaved": "repeated storing of state",
    "flush": "flush of logs",
}
_KEYED = {
    "consumer-session": "session of member {1} of group {0}",
    "consumer-rebalance": "member {1} of group {0} must give up partitions",
    "consumer-join": "member {1} of group {0} must join again",
    "consumer-sync": "member {1} of group {0} must ask for its assignment",
    "offset expiry": "expiry of committed offsets",
    "time-outs": "look for transactions that timed out",
    "expiry": "expiry of transactional ids",
}
_OF_CLASSES = {
    "DelayedFetch": "a waiting Fetch",
    "DelayedProduce": "a waiting Produce",
    "DelayedAppend": "a waiting append",
    "DelayedCommit": "a waiting commit of coordinator records",
    "DelayedDeleteRecords": "a waiting DeleteRecords",
    "DelayedRegistration": "a waiting AddPartitionsToTxn",
    "BrokerSessions": "look for silent brokers",
    "MembershipDuty": "heartbeat of a consumer in this process",
    "InSyncReplicas": "look for lagging replicas",
}


@dataclass(frozen=True, order=True)
class DueTimer:
    """One thing that will happen when its time comes."""

    in_seconds: float
    """Seconds of the cluster's clock until then; 0 if it is due."""
    what: str
    """The thing, in words."""
    broker: int | None = None
    """The broker whose timer it is; None if it is not one broker's."""


def timers_of(cluster: Cluster) -> list[DueTimer]:
    """Return everything that is due at some time, the next one first."""
    clock = cluster.runtime.clock
    now_ms = clock.monotonic_ms()
    found: list[DueTimer] = []
    for duty, due_ms in cluster.runtime.scheduler.duties():
        if isinstance(duty, Timer):
            for task in duty.tasks():
                at_ms = task.deadline_ms if isinstance(task, DelayedHeartbeat) else None
                found.append(_due(_task_name(task), at_ms or task.expiration_ms, now_ms))
        elif isinstance(duty, LogTasks):
            for name, at_ms in duty.due_times().items():
                found.append(_due(_LOG_TASKS.get(name, name), at_ms, now_ms))
        elif due_ms != _NEVER:
            found.append(_due(_duty_name(duty), due_ms, now_ms))
    for node in cluster.brokers:
        if node.is_running:
            found += _transactions(node.core, clock.elapsed_ms())
    return sorted(found, key=lambda each: (each.in_seconds, each.what))


def _due(what: str, at_ms: float, now_ms: int, broker: int | None = None) -> DueTimer:
    return DueTimer(max(0.0, (at_ms - now_ms) / 1000), what, broker)


def _transactions(core: Broker, elapsed_ms: int) -> Iterator[DueTimer]:
    if TRANSACTIONS_TOPIC not in core.image.topics_by_name:
        return
    for shard in core.transaction_coordinator.runtime.loaded():
        for each in list(shard.transactions.values()):
            if each.state == states.ONGOING and each.timeout_ms != NO_TIMEOUT_MS:
                began_ms = elapsed_ms if each.began_ns == NO_TIME else each.began_ns // 1_000_000
                what = f"time-out of transaction {each.transactional_id}"
                yield _due(what, began_ms + each.timeout_ms, elapsed_ms, core.node_id)


def _duty_name(duty: object) -> str:
    if isinstance(duty, ClusterMember):
        return f"heartbeat of broker {duty.node_id}"
    return _class_name(duty)


def _task_name(task: TimerTask) -> str:
    if isinstance(task, DelayedHeartbeat):
        assert isinstance(task.key, tuple), task.key
        return "session of member {1} of group {0}".format(*task.key)
    if isinstance(task, GroupOperation):
        return f"end of the rebalance of group {task.key}"
    key: Hashable = getattr(task, "key", None)
    if isinstance(key, tuple) and key and key[0] in _KEYED:
        return _KEYED[key[0]].format(*key[1:])
    if isinstance(key, str):
        return _KEYED.get(key, key)
    return _class_name(task)


def _class_name(thing: object) -> str:
    name = type(thing).__name__
    return _OF_CLASSES.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
