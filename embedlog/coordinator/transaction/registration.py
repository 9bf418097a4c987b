"""What belongs to a transaction: partitions that are added, and the question whether one was."""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.result import Result
from embedlog.coordinator.transaction import states

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from embedlog.coordinator.transaction.transaction import TopicIndex, Transaction
    from embedlog.coordinator.transaction.transaction_shard import TransactionShard


def add_partitions(
    shard: TransactionShard,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicIndex],
    *,
    client_version: int,
) -> Result[None]:
    """Make partitions part of the open transaction, or of a new one. Requires: the shard's lock.

    Raises:
        InvalidProducerIdMapping: the transactional id is unknown, or of another producer.
        ProducerFenced: another epoch is the present one.
        ConcurrentTransactions: the last transaction is not over; ask again.
        UnsupportedVersion: see `check_client`.
    """
    shard.check_settled(transactional_id)
    present = _of_producer(shard, transactional_id, producer_id, producer_epoch)
    if present.state == states.ONGOING and present.partitions.issuperset(partitions):
        return Result()
    shard.check_client(client_version)
    now_ms = shard.context.wall_ms()
    target = present.moved(
        states.ONGOING,
        now_ms=now_ms,
        partitions=present.partitions.union(partitions),
        start_ms=present.start_ms if present.state == states.ONGOING else now_ms,
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
    """Those of `partitions` that are not part of the producer's transaction. Requires: the shard's
    lock. Raises as `add_partitions`.
    """
    present = _of_producer(shard, transactional_id, producer_id, producer_epoch)
    if present.is_prepared:
        raise errors.ConcurrentTransactions()
    return set(partitions) - present.partitions


def _of_producer(
    shard: TransactionShard, transactional_id: str, producer_id: int, producer_epoch: int
) -> Transaction:
    present = shard.transactions.get(transactional_id)
    if present is None or present.producer_id != producer_id:
        raise errors.InvalidProducerIdMapping()
    if present.producer_epoch != producer_epoch:
        raise errors.ProducerFenced()
    return present
