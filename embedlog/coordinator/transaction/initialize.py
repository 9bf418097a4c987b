"""InitProducerId of a transactional id: a new epoch, which fences earlier producers.

    id is new                     producer id from the controller, epoch 0
    no transaction is open        the next epoch; after the last epoch a new producer id
    a transaction is being ended  CONCURRENT_TRANSACTIONS
    a transaction is open         fence and abort it; CONCURRENT_TRANSACTIONS until that is done

A client that continues after an error names its producer id and epoch (KIP-360). If they are the
present ones, it gets the next epoch. If they are the previous ones, its last request succeeded and
only the answer was lost: it gets the present epoch again. Otherwise another producer has taken
over, and the client is fenced.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.transaction import states
from embedlog.coordinator.transaction.transaction_metadata import (
    NO_EPOCH,
    NO_TIME,
    TransactionMetadata,
    is_exhausted,
)
from embedlog.logger import Logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.coordinator.result import Result
    from embedlog.coordinator.transaction.transaction_metadata import ProducerIdAndEpoch
    from embedlog.coordinator.transaction.transaction_shard import TransactionShard

_log = Logger("coordinator")


def initialize(
    shard: TransactionShard,
    transactional_id: str,
    *,
    timeout_ms: int,
    expected: ProducerIdAndEpoch | None,
    new_producer_id: Callable[[], int],
) -> Result[ProducerIdAndEpoch]:
    """Give a client the producer id and epoch of its transactional id. Requires: the shard's lock.

    `expected` is the producer id and epoch of a client that continues, None for a new client.

    Raises:
        ConcurrentTransactions: the last transaction is not over; the client may retry.
        ProducerFenced: another producer has taken over the transactional id.
    """
    shard.check_settled(transactional_id)
    present = shard.transactions.get(transactional_id)
    if present is None:
        shard.check_room()
        present = TransactionMetadata(transactional_id, new_producer_id(), timeout_ms)
    if expected is not None and not _may_name(present, expected):
        raise errors.ProducerFenced()
    if present.state == states.ONGOING:
        _log.debug(
            "transactional id %s is aborted: a new producer fences epoch %d",
            transactional_id,
            present.producer_epoch,
        )
        target = present.fenced(
            now_ms=shard.context.wall_ms(), transaction_version=shard.transaction_version()
        )
        return shard.transit(target, shard.refusal(errors.ConcurrentTransactions()))
    target = _taken_over(
        present,
        expected_epoch=None if expected is None else expected[1],
        timeout_ms=timeout_ms,
        now_ms=shard.context.wall_ms(),
        new_producer_id=new_producer_id,
    )
    return shard.transit(target, (target.producer_id, target.producer_epoch))


def _may_name(present: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    producer_id, epoch = expected
    return (
        present.producer_epoch == NO_EPOCH
        or producer_id == present.producer_id
        or (producer_id == present.previous_producer_id and is_exhausted(epoch))
    )


def _taken_over(
    present: TransactionMetadata,
    *,
    expected_epoch: int | None,
    timeout_ms: int,
    now_ms: int,
    new_producer_id: Callable[[], int],
) -> TransactionMetadata:
    producer_id, epoch = present.producer_id, present.producer_epoch
    if expected_epoch is not None and epoch not in (NO_EPOCH, expected_epoch):
        if expected_epoch != present.last_producer_epoch:
            raise errors.ProducerFenced()
        last_epoch = expected_epoch
    else:
        # Without a last epoch, a new client cannot be mistaken for a client that repeats a request.
        last_epoch = NO_EPOCH if expected_epoch is None else epoch
        if is_exhausted(epoch):
            producer_id, epoch = new_producer_id(), 0
        else:
            epoch += 1
    return present.moved(
        states.EMPTY,
        now_ms=now_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIME,
    )
