"""`TransactionValue`: one transactional id at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedlog.common import TopicPartition
from embedlog.coordinator.transaction.states import NAMES
from embedlog.testing.inspection.brokers import Brokers
from embedlog.testing.inspection.group_values import shown

if TYPE_CHECKING:
    from embedlog.coordinator.transaction.transaction_metadata import TransactionMetadata
    from embedlog.coordinator.transaction.transaction_shard import TransactionShard

DEAD = "Dead"
STATES = tuple(name for name in NAMES if name != "PrepareEpochFence")
"""The states that a transactional id may be in."""


@dataclass(frozen=True, slots=True)
class TransactionValue:
    """One transactional id at one moment. An id that nobody uses is in the state "Dead"."""

    transactional_id: str
    state: str = DEAD
    producer_id: int = -1
    epoch: int = -1
    """The producer epoch that the coordinator expects."""
    partitions: tuple[TopicPartition, ...] = ()
    """The partitions of the open transaction; during its end, the ones without the marker."""
    timeout_ms: int = -1
    start_ms: int = -1
    """The wall time of the transaction's start; -1 without one."""

    @property
    def exists(self) -> bool:
        return self.state != DEAD

    def __str__(self) -> str:
        if not self.exists:
            return f"transactional id {self.transactional_id!r} does not exist"
        places = f", partitions {', '.join(map(shown, self.partitions))}" if self.partitions else ""
        return (
            f"transactional id {self.transactional_id!r}: {self.state}, "
            f"producer {self.producer_id} at epoch {self.epoch}{places}"
        )


def read_transaction(
    brokers: Brokers, transactional_id: str, *, waits: bool = True
) -> TransactionValue:
    """Return a transactional id as it is now, also if nobody uses it.

    With `waits` the call waits for a coordinator that moves.
    """
    found = brokers.read_transaction(
        transactional_id, lambda shard: _value(shard, transactional_id), waits=waits
    )
    return TransactionValue(transactional_id) if found is None else found


def read_transactions(brokers: Brokers) -> list[TransactionValue]:
    """Return all transactional ids, sorted."""
    values = brokers.read_transactions(
        lambda shard: [_value_of(each) for each in shard.transactions.values()]
    )
    found = {each.transactional_id: each for some in values for each in some}
    return [each for _, each in sorted(found.items())]


def _value(shard: TransactionShard, transactional_id: str) -> TransactionValue:
    found = shard.transactions.get(transactional_id)
    return TransactionValue(transactional_id) if found is None else _value_of(found)


def _value_of(found: TransactionMetadata) -> TransactionValue:
    return TransactionValue(
        found.transactional_id,
        NAMES[found.state],
        found.producer_id,
        found.producer_epoch,
        tuple(sorted(TopicPartition(*each) for each in found.partitions)),
        found.timeout_ms,
        found.start_ms,
    )
