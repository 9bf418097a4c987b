"""EndTxn: a client's decision, and the end of a transaction once all partitions have its marker.

The answer depends on the state and on the producer epoch. From transaction version 2 on
(KIP-890) every end raises the epoch, so a client that repeats a request names the epoch before the
present one. Until all partitions have the marker the answer is CONCURRENT_TRANSACTIONS; before
version 2 a request with another producer id or epoch fails first.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.result import Result
from embedlog.coordinator.transaction import states
from embedlog.coordinator.transaction.transaction_metadata import (
    EPOCH_MAX,
    FIRST_WITH_EPOCH_BUMP,
    NO_EPOCH,
    NO_PRODUCER_ID,
    TransactionMetadata,
    is_exhausted,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from embedlog.coordinator.transaction.transaction_metadata import ProducerIdAndEpoch, TopicIndex
    from embedlog.coordinator.transaction.transaction_shard import TransactionShard

NO_PRODUCER = (NO_PRODUCER_ID, NO_EPOCH)

_DONE = "done"
_PREPARE = "prepare"
_INVALID = "INVALID_TXN_STATE"
_FENCED = "PRODUCER_FENCED"

_ENDED: dict[int, tuple[str, str]] = {
    # state                  commit        abort
    states.ONGOING: (_PREPARE, _PREPARE),
    states.COMPLETE_COMMIT: (_DONE, _INVALID),
    states.COMPLETE_ABORT: (_INVALID, _DONE),
    states.EMPTY: (_INVALID, _INVALID),
}
"""The answer to EndTxn before version 5, by state. The request names the present epoch."""

_ENDED_WITH_BUMP: dict[int, tuple[str, str, str, str]] = {
    # state                  commit: repeated  present     abort: repeated   present
    states.ONGOING: (_FENCED, _PREPARE, _FENCED, _PREPARE),
    states.COMPLETE_COMMIT: (_DONE, _INVALID, _INVALID, _PREPARE),
    states.COMPLETE_ABORT: (_INVALID, _INVALID, _DONE, _PREPARE),
    states.EMPTY: (_FENCED, _INVALID, _FENCED, _PREPARE),
}
"""The answer to EndTxn from version 5 on, by state: "repeated" is a request with the epoch before
the present one."""

_ERRORS: dict[str, type[errors.KafkaError]] = {
    _INVALID: errors.InvalidTxnState,
    _FENCED: errors.ProducerFenced,
}


def end(
    shard: TransactionShard,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    *,
    is_committed: bool,
    client_version: int,
    new_producer_id: Callable[[], int],
) -> Result[ProducerIdAndEpoch]:
    """Commit or abort; answer with the next producer id and epoch (version 2 only).

    Requires: the shard's lock.

    Raises:
        InvalidProducerIdMapping: the transactional id is unknown, or of another producer.
        ProducerFenced, InvalidTxnState: see the tables above.
        ConcurrentTransactions: the last request is not complete.
        UnsupportedVersion: see `check_client`.
    """
    present = shard.transactions.get(transactional_id)
    if present is None:
        raise errors.InvalidProducerIdMapping()
    bumps = client_version >= FIRST_WITH_EPOCH_BUMP
    if bumps:
        shard.check_settled(transactional_id)
    is_repeated = bumps and _is_repeated(present, producer_id, producer_epoch)
    if present.producer_id != producer_id and not is_repeated:
        raise errors.InvalidProducerIdMapping()
    if present.producer_epoch != producer_epoch and not is_repeated:
        raise errors.ProducerFenced()
    if not bumps:
        shard.check_settled(transactional_id)
    if bumps:
        answers = _ENDED_WITH_BUMP[present.state]
        outcome = answers[(0 if is_committed else 2) + (0 if is_repeated else 1)]
    else:
        outcome = _ENDED[present.state][0 if is_committed else 1]
    if outcome == _DONE:
        return Result((), (present.producer_id, present.producer_epoch) if bumps else NO_PRODUCER)
    if outcome != _PREPARE:
        raise _ERRORS[outcome]()
    shard.check_client(client_version)
    target = _prepared(
        present,
        is_committed=is_committed,
        client_version=client_version,
        now_ms=shard.context.wall_ms(),
        new_producer_id=new_producer_id,
    )
    after = target.completed(target.last_update_ms)
    return shard.transit(
        target, (after.producer_id, after.producer_epoch) if bumps else NO_PRODUCER
    )


def _is_repeated(present: TransactionMetadata, producer_id: int, producer_epoch: int) -> bool:
    """Return whether the request names the producer id and epoch before the client's last EndTxn.

    If so, the client missed that answer. Before version 2 EndTxn kept the epoch, so a lower epoch
    is a zombie's; Kafka compares only the numbers, and gives the zombie its successor's epoch.
    """
    if not present.bumps_epoch:
        return False
    if producer_id == present.producer_id:
        return producer_epoch == present.producer_epoch - 1
    return (
        producer_id == present.previous_producer_id
        and producer_epoch == EPOCH_MAX - 1
        and present.producer_epoch == 0
    )


def _prepared(
    present: TransactionMetadata,
    *,
    is_committed: bool,
    client_version: int,
    now_ms: int,
    new_producer_id: Callable[[], int],
) -> TransactionMetadata:
    state = states.PREPARE_COMMIT if is_committed else states.PREPARE_ABORT
    changes: dict[str, int] = {"client_version": client_version}
    if present.state != states.ONGOING:
        # No transaction is open: this abort only raises the epoch.
        changes["start_ms"] = now_ms
    if client_version >= FIRST_WITH_EPOCH_BUMP:
        changes["producer_epoch"] = present.producer_epoch + 1
        changes["last_producer_epoch"] = present.producer_epoch
        if is_exhausted(present.producer_epoch):
            changes["next_producer_id"] = new_producer_id()
    return present.moved(state, now_ms=now_ms, **changes)


def complete(shard: TransactionShard, decided: TransactionMetadata) -> Result[None]:
    """Free the id for its next transaction, because every partition has the marker.

    Do nothing if another coordinator was faster. Requires: the shard's lock.
    """
    present = _still(shard, decided)
    if present is None:
        return Result()
    return shard.transit(present.completed(shard.context.wall_ms()), None)


def keep_pending(
    shard: TransactionShard, decided: TransactionMetadata, partitions: Collection[TopicIndex]
) -> Result[None]:
    """Show administrators only the partitions that lack the marker. Requires: the shard's lock.

    The log does not get this state: the broker that loads it next sends all markers again.
    """
    present = _still(shard, decided)
    if present is not None:
        shard.transactions[decided.transactional_id] = present.reduced(frozenset(partitions))
    return Result()


def _still(shard: TransactionShard, decided: TransactionMetadata) -> TransactionMetadata | None:
    """Return the id's present state; None if it is no longer the decided state."""
    present = shard.transactions.get(decided.transactional_id)
    if (
        present is None
        or present.state != decided.state
        or present.producer_epoch != decided.producer_epoch
        or not shard.is_settled(decided.transactional_id)
    ):
        return None
    return present
