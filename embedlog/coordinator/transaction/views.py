"""DescribeTransactions and ListTransactions of one shard."""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.transaction import states
from wire.schemas import describe_transactions, list_transactions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from embedlog.coordinator.transaction.transaction_shard import TransactionShard

_ALL = -1


def described(
    shard: TransactionShard, transactional_id: str
) -> describe_transactions.TransactionState:
    """Describe an id. Raises TransactionalIdNotFound. Requires: the shard's lock."""
    found = shard.transactions.get(transactional_id)
    if found is None:
        raise errors.TransactionalIdNotFound()
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(found.partitions):
        topics.setdefault(topic, []).append(index)
    return describe_transactions.TransactionState(
        transactional_id=transactional_id,
        transaction_state=states.NAMES[found.state],
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[
            describe_transactions.TopicData(topic=topic, partitions=indexes)
            for topic, indexes in topics.items()
        ],
    )


def listed(
    shard: TransactionShard,
    *,
    names: Collection[str] | None,
    producer_ids: Collection[int],
    longer_than_ms: int,
    matches: Callable[[str], object] | None,
) -> list[list_transactions.TransactionState]:
    """List the ids that pass every filter; None, () and -1 pass all. Requires: the shard's lock."""
    now_ms = shard.context.wall_ms()
    return [
        list_transactions.TransactionState(
            transactional_id=each.transactional_id,
            producer_id=each.producer_id,
            transaction_state=states.NAMES[each.state],
        )
        for each in shard.transactions.values()
        if (names is None or states.NAMES[each.state] in names)
        and (not producer_ids or each.producer_id in producer_ids)
        and (longer_than_ms <= _ALL or now_ms - each.start_ms > longer_than_ms)
        and (matches is None or matches(each.transactional_id))
    ]
