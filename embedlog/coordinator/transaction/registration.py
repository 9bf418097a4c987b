"""Adding partitions to a transaction, and finding the partitions that it lacks."""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.result import Result
from embedlog.coordinator.transaction import states
from embedlog.purgatory.delayed_operation import DelayedOperation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from embedlog.coordinator.transaction.transaction_metadata import (
        TopicIndex,
        TransactionMetadata,
    )
    from embedlog.coordinator.transaction.transaction_shard import TransactionShard


def add_partitions(
    shard: TransactionShard,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicIndex],
    *,
    client_version: int,
) -> Result[Any]:
    """Add partitions to the open transaction, or begin a new one. Requires: the shard's lock.

    Raises:
        InvalidProducerIdMapping: the transactional id is unknown, or of another producer.
        ProducerFenced: the epoch is not the present one.
        ConcurrentTransactions: the last transaction is not over; the client may retry.
        UnsupportedVersion: see `check_client`.
    """
    shard.check_settled(transactional_id)
    present = _of_producer(shard, transactional_id, producer_id, producer_epoch)
    if present.state == states.ONGOING and present.partitions.issuperset(partitions):
        return Result()
    shard.check_client(client_version)
    context, is_open = shard.context, present.state == states.ONGOING
    now_ms = context.wall_ms()
    target = present.moved(
        states.ONGOING,
        now_ms=now_ms,
        partitions=present.partitions.union(partitions),
        start_ms=present.start_ms if is_open else now_ms,
        began_ns=present.began_ns if is_open else context.elapsed_ns(),
        client_version=client_version,
    )
    return shard.transit(target, None)


def missing_partitions(
    shard: TransactionShard,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicIndex],
) -> set[TopicIndex]:
    """Return the partitions not yet in the transaction. Requires and raises as `add_partitions`."""
    present = _of_producer(shard, transactional_id, producer_id, producer_epoch)
    if present.is_prepared:
        raise errors.ConcurrentTransactions()
    return set(partitions) - present.partitions


class DelayedRegistration(DelayedOperation):
    """A registration that waits for the end of the id's last transaction.

    A client of version 2 may send the first batch of a transaction while the markers of the last
    one are still being written. The registration is retried after that, or after `delay_ms`.
    """

    __slots__ = ("_register_again", "_is_free")

    def __init__(
        self, delay_ms: int, is_free: Callable[[], bool], register_again: Callable[[], None]
    ) -> None:
        super().__init__(delay_ms)
        self._is_free = is_free
        self._register_again = register_again

    def try_complete(self) -> bool:
        return self._is_free() and self.complete_held()

    def on_complete(self) -> None:
        self._register_again()


def _of_producer(
    shard: TransactionShard, transactional_id: str, producer_id: int, producer_epoch: int
) -> TransactionMetadata:
    present = shard.transactions.get(transactional_id)
    if present is None or present.producer_id != producer_id:
        raise errors.InvalidProducerIdMapping()
    if present.producer_epoch != producer_epoch:
        raise errors.ProducerFenced()
    return present
