"""`TransactionMetadata`: the state of one transactional id, and its record."""

from __future__ import annotations

from embedlog.common import Value
from embedlog.coordinator.result import CoordinatorRecord
from embedlog.coordinator.transaction import states
from wire.schemas.transaction_log import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    ProducerIdAndEpoch = tuple[int, int]
    TopicIndex = tuple[str, int]
    """A topic name and a partition number."""

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1
NO_TIMEOUT_MS = 2**31 - 1
"""The time-out of two-phase commits, which only their client ends."""
EPOCH_MAX = 32_767
_LAST_EPOCH_OF_CLIENTS = EPOCH_MAX - 1
"""Clients get no higher epoch: EPOCH_MAX is for the fence of a producer id's last transaction."""
FIRST_WITH_EPOCH_BUMP = 2
"""The first transaction version (KIP-890) that gives the producer a new epoch at every end."""


def is_exhausted(producer_epoch: int) -> bool:
    """Return True if no client can get a later epoch of the same producer id."""
    return producer_epoch >= _LAST_EPOCH_OF_CLIENTS


class TransactionMetadata(Value):
    """One transactional id at one moment; a transition makes another. Times are wall time in ms."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last transition."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id after the open transaction, if that transaction uses up the last epoch."""
    producer_epoch: int = NO_EPOCH
    last_producer_epoch: int = NO_EPOCH
    """The epoch before the present one. A client that repeats a request names it. It is not in the
    record."""
    state: int = states.EMPTY
    partitions: frozenset[TopicIndex] = frozenset()
    """The partitions of the transaction that is open or ending."""
    start_ms: int = NO_TIME
    last_update_ms: int = NO_TIME
    began_ns: int = NO_TIME
    """The start as `Clock.elapsed_source`; NO_TIME if an earlier coordinator saw it. It is not in
    the record."""
    client_version: int = 0
    """The version of transactions that the client uses; 0 and 2 behave differently."""

    def moved(self, state: int, *, now_ms: int, **changes: Any) -> TransactionMetadata:
        assert self.state in states.ENTERED_FROM[state], (self, states.NAMES[state])
        return self.replace(
            **{
                "previous_producer_id": self.producer_id,
                "state": state,
                "last_update_ms": now_ms,
                **changes,
            }
        )

    def reduced(self, partitions: frozenset[TopicIndex]) -> TransactionMetadata:
        """Return the decided transaction with only the partitions that lack its decision."""
        assert self.is_prepared, self
        return self.replace(partitions=partitions)

    @property
    def is_prepared(self) -> bool:
        """Return whether the transaction is decided, though some partition may lack its marker."""
        return self.state in (states.PREPARE_COMMIT, states.PREPARE_ABORT)

    @property
    def is_over(self) -> bool:
        """Return whether the transaction is decided, and every partition has its marker."""
        return self.state in (states.COMPLETE_COMMIT, states.COMPLETE_ABORT)

    def is_overdue(self, *, now_ms: int, elapsed_ns: int) -> bool:
        """Return whether the transaction has been open for longer than its producer's time-out.

        A wall clock that jumps, or stands still in a test, does not change the time-out.
        """
        if self.state != states.ONGOING or self.timeout_ms == NO_TIMEOUT_MS:
            return False
        if self.began_ns == NO_TIME:
            return self.start_ms + self.timeout_ms < now_ms
        return self.began_ns + self.timeout_ms * 1_000_000 < elapsed_ns

    @property
    def size_estimate(self) -> int:
        """The approximate size of its record, in bytes."""
        topics = {topic for topic, _ in self.partitions}
        names_size = len(self.transactional_id) + sum(map(len, topics))
        return 100 + names_size + 8 * len(topics) + 4 * len(self.partitions)

    @property
    def bumps_epoch(self) -> bool:
        return self.client_version >= FIRST_WITH_EPOCH_BUMP

    def fenced(self, *, now_ms: int, transaction_version: int) -> TransactionMetadata:
        """Abort the open transaction under an epoch that its producer does not have.

        `transaction_version` is the cluster's. From version 2 on the producer learns the new epoch
        by repeating its request; before version 2 the producer is fenced for good.
        """
        bumps = transaction_version >= FIRST_WITH_EPOCH_BUMP
        return self.moved(
            states.PREPARE_ABORT,
            now_ms=now_ms,
            producer_epoch=self.producer_epoch + 1,
            last_producer_epoch=self.producer_epoch if bumps else NO_EPOCH,
            client_version=transaction_version,
        )

    def completed(self, now_ms: int) -> TransactionMetadata:
        """Return the state that follows when every partition has the marker."""
        assert self.is_prepared, self
        state = (
            states.COMPLETE_COMMIT if self.state == states.PREPARE_COMMIT else states.COMPLETE_ABORT
        )
        producer_id, producer_epoch = self.producer_id, self.producer_epoch
        if self.bumps_epoch and self.next_producer_id != NO_PRODUCER_ID:
            producer_id, producer_epoch = self.next_producer_id, 0
        return self.moved(
            state,
            now_ms=now_ms,
            partitions=frozenset(),
            next_producer_id=NO_PRODUCER_ID,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )

    def __repr__(self) -> str:
        return (
            f"TransactionMetadata({self.transactional_id!r}, {states.NAMES[self.state]}, "
            f"producer {self.producer_id}@{self.producer_epoch})"
        )


# Records


def tombstone(transactional_id: str) -> CoordinatorRecord:
    """Return the record that deletes the id."""
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id))


def record_of(transaction: TransactionMetadata, *, value_version: int) -> CoordinatorRecord:
    """Return the record of a state, without `last_producer_epoch`.

    Kafka before 3.8 can read only records of value version 0.
    """
    has_tags = value_version > 0
    is_empty = transaction.state == states.EMPTY
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id if has_tags else NO_PRODUCER_ID,
        next_producer_id=transaction.next_producer_id if has_tags else NO_PRODUCER_ID,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if is_empty else _by_topic(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version if has_tags else 0,
    )
    return CoordinatorRecord(
        TransactionLogKey(transactional_id=transaction.transactional_id), value, value_version
    )


def from_record(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    """Return the state that a record stores."""
    return TransactionMetadata(
        transactional_id,
        value.producer_id,
        value.transaction_timeout_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        state=value.transaction_status,
        partitions=frozenset(
            (each.topic, index)
            for each in value.transaction_partitions or ()
            for index in each.partition_ids
        ),
        last_update_ms=value.transaction_last_update_timestamp_ms,
        start_ms=value.transaction_start_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def _by_topic(partitions: frozenset[TopicIndex]) -> list[PartitionsSchema]:
    indexes: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        indexes.setdefault(topic, []).append(index)
    return [PartitionsSchema(topic=topic, partition_ids=found) for topic, found in indexes.items()]
