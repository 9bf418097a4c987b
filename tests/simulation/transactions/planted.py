"""Bugs planted on purpose in transactions. The stories must find every one of them."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from embedlog.broker.apis import write_txn_markers
from embedlog.coordinator.group.offsets.store import OffsetStore
from embedlog.coordinator.result import Result
from embedlog.coordinator.transaction import initialize, markers, registration
from embedlog.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from embedlog.coordinator.transaction.transaction_shard import TransactionShard
from embedlog.runtime.pending import completed
from embedlog.storage.log.offsets import LogOffsets
from embedlog.storage.log.transactions import LogTransactions
from embedlog.storage.producers.state import ProducerStateManager
from embedlog.storage.validation.origin import AppendOrigin
from tests.simulation.planted import Bug, instead
from wire.records.control import ControlType, EndTransactionMarker


def a_partition_never_gets_its_marker(right: Any, told: Any, shard: Any, transaction: Any) -> None:
    right(told, shard, transaction)
    if len(transaction.partitions) > 1:
        told.untold.pop()


def undecided_offsets_count(right: Any, store: Any, key: Any, value: Any, **how: Any) -> None:
    right(store, key, value, offset=how["offset"])


def offsets_of_aborted_transactions_count(right: Any, store: Any, who: int, **_how: Any) -> None:
    right(store, who, is_committed=True)


def a_new_owner_gets_the_same_epoch(right: Any, present: Any, **how: Any) -> Any:
    target = right(present, **how)
    if present.producer_epoch >= 0:
        return target.replace(producer_epoch=present.producer_epoch)
    return target


def aborted_transactions_are_not_listed(_right: Any, *_arguments: Any) -> list[Any]:
    return []


def every_marker_commits(right: Any, marker: EndTransactionMarker, **how: Any) -> Any:
    return right(EndTransactionMarker(ControlType.COMMIT, marker.coordinator_epoch), **how)


def decisions_are_forgotten_at_a_restart(_right: Any, _shard: Any) -> None:
    return


def a_fenced_producer_may_continue(_right: Any, shard: Any, name: str, *_producer: Any) -> Any:
    return shard.transactions[name]


def the_coordinator_is_not_asked(_right: Any, _self: Any, *who: Any, **_how: Any) -> Any:
    return completed(dict.fromkeys(who[-1], 0))


def sequences_do_not_matter(right: Any, producers: Any, batch: Any, **how: Any) -> Any:
    return right(producers, batch, **{**how, "origin": AppendOrigin.COORDINATOR})


def a_commit_is_answered_and_not_made(right: Any, shard: Any, target: Any, response: Any) -> Any:
    if target.is_prepared and len(target.partitions) > 1:
        return Result((), response)
    return right(shard, target, response)


def no_transaction_times_out(_right: Any, _shard: Any) -> Any:
    return Result()


BUGS = (
    instead(OffsetStore, "replay", undecided_offsets_count),
    instead(OffsetStore, "end_transaction", offsets_of_aborted_transactions_count),
    Bug(
        "open transactions do not hold the last stable offset back",
        lambda: patch.object(
            LogOffsets, "last_stable_offset", property(lambda offsets: offsets.high_watermark)
        ),
    ),
    instead(LogTransactions, "aborted", aborted_transactions_are_not_listed),
    instead(initialize, "_taken_over", a_new_owner_gets_the_same_epoch),
    instead(write_txn_markers, "BuiltMarker", every_marker_commits),
    instead(TransactionShard, "loaded", decisions_are_forgotten_at_a_restart),
    instead(TransactionShard, "abort_timed_out", no_transaction_times_out),
    instead(TransactionShard, "transit", a_commit_is_answered_and_not_made),
    instead(registration, "_of_producer", a_fenced_producer_may_continue),
    instead(ProducerStateManager, "prepare", sequences_do_not_matter),
    instead(TransactionCoordinator, "register", the_coordinator_is_not_asked),
    instead(markers._Decided, "__init__", a_partition_never_gets_its_marker),
)
