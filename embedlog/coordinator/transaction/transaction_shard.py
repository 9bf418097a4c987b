"""`TransactionShard`: the transactional ids whose records lie in one partition of
`__transaction_state`.

A transition is pending from its append until it is committed; meanwhile the id takes no other
request. Then it is applied, and what is decided goes to the markers.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.result import Result
from embedlog.coordinator.transaction import states
from embedlog.coordinator.transaction.transaction import from_record, record_of, tombstone
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from embedlog.coordinator.result import CoordinatorRecord
    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.coordinator.transaction.transaction import Transaction
    from embedlog.errors import KafkaError

    WhenDecided = Callable[["TransactionShard", Transaction], None]

_TIMEOUTS = "time-outs"
_EXPIRY = "expiry"
_FIRST_WITH_TAGGED_VALUES = 1


class TransactionShard:
    """One loaded shard. Requires for every method: the shard's lock.

    `when_decided(shard, transaction)` is called, without the lock, for every transaction whose
    partitions must be told; also for those that were found so when the shard was loaded.
    `when_free(id)` is called, without the lock, when an id has nothing on its way any more.
    `id_count` says how many ids all loaded shards of the broker have.
    """

    __slots__ = (
        "_id_count",
        "_pending",
        "_when_decided",
        "_when_free",
        "context",
        "transaction_version",
        "transactions",
    )

    def __init__(
        self,
        context: ShardContext,
        *,
        transaction_version: Callable[[], int],
        when_decided: WhenDecided,
        when_free: Callable[[str], object],
        id_count: Callable[[], int],
    ) -> None:
        self.context = context
        self.transaction_version = transaction_version
        """The level of the cluster's feature `transaction.version`."""
        self.transactions: dict[str, Transaction] = {}
        """By transactional id, as committed."""
        self._pending: set[str] = set()
        self._when_decided = when_decided
        self._when_free = when_free
        self._id_count = id_count

    # Asking

    def is_settled(self, transactional_id: str) -> bool:
        """Is no transition of the id on its way?"""
        return transactional_id not in self._pending

    def check_settled(self, transactional_id: str) -> None:
        """Raises ConcurrentTransactions while a transition of the id is on its way.

        One that is decided is on its way to its end until every partition knows: who asks by then
        may have the producer id and epoch that it will have, of which nothing is known before.
        """
        if not self.is_free(transactional_id):
            raise errors.ConcurrentTransactions()

    def is_free(self, transactional_id: str) -> bool:
        """May the next transaction of the id begin? Needs no lock."""
        present = self.transactions.get(transactional_id)
        return self.is_settled(transactional_id) and (present is None or not present.is_prepared)

    def check_client(self, client_version: int) -> None:
        """Raises UnsupportedVersion for a client of version 2 where the cluster is at level 0.

        No client does that, as it is told the level; and Kafka never answers the id again.
        """
        if client_version > 0 == self.transaction_version():
            raise errors.UnsupportedVersion("transaction.version is 0")

    def check_room(self) -> None:
        """Raises PolicyViolation when there are as many ids as the broker may have."""
        count_max: int = self.context.config.embedlog_max_transactional_ids
        if self._id_count() >= count_max:
            raise errors.PolicyViolation(
                f"There are {count_max} transactional ids; no more than "
                "embedlog.max.transactional.ids can be in use."
            )

    # Changing

    def transit(self, target: Transaction, response: Any) -> Result[Any]:
        """Append what `target` is; it becomes so when that is committed."""
        return self._transit_all([target], response)

    def _transit_all(self, targets: Sequence[Transaction], response: Any = None) -> Result[Any]:
        self._pending.update(target.transactional_id for target in targets)

        def when_appended(error: KafkaError | None) -> None:
            for target in targets:
                self._pending.discard(target.transactional_id)
                if error is None:
                    self.transactions[target.transactional_id] = target
                    if target.is_prepared:
                        self._tell(target)
                    elif target.is_over:
                        self._free(target.transactional_id)

        # What a client of version 2 has begun is ended as such, also where the level was lowered.
        has_tags = self.transaction_version() >= _FIRST_WITH_TAGGED_VALUES
        return Result(
            [
                record_of(target, value_version=1 if has_tags or target.client_version else 0)
                for target in targets
            ],
            response,
            is_replayed=False,
            on_append=when_appended,
        )

    @staticmethod
    def refusal(error: KafkaError) -> Pending[Any]:
        """A response that refuses a request although what it did is committed."""
        pending: Pending[Any] = Pending()
        pending.fail(error)
        return pending

    def _tell(self, decided: Transaction) -> None:
        self.context.defer(lambda: self._when_decided(self, decided))

    def _free(self, transactional_id: str) -> None:
        def tell() -> None:
            self._when_free(transactional_id)

        self.context.defer(tell)

    # By the clock

    def abort_timed_out(self) -> Result[None]:
        """Fence and abort what has been open for longer than its producer had asked for.

        What is decided is told once more, lest Ctrl-C has come between the decision and that.
        """
        interval_ms = (
            self.context.config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        )
        self.context.timer.schedule(_TIMEOUTS, interval_ms, self.abort_timed_out)
        for transaction in self.transactions.values():
            if transaction.is_prepared:
                self._tell(transaction)
        now_ms = self.context.wall_ms()
        version = self.transaction_version()
        return self._transit_all(
            [
                each.fenced(now_ms=now_ms, transaction_version=version)
                for each in self.transactions.values()
                if each.is_overdue(now_ms) and self.is_settled(each.transactional_id)
            ]
        )

    def expire(self) -> Result[None]:
        """Forget ids that nobody has used for transactional.id.expiration.ms.

        Nothing while the wall clock is not believed: what it deletes does not come back with it.
        """
        config = self.context.config
        interval_ms = config.transaction_remove_expired_transaction_cleanup_interval_ms
        self.context.timer.schedule(_EXPIRY, interval_ms, self.expire)
        if not self.context.allows_deletion():
            return Result()
        latest_ms = self.context.wall_ms() - config.transactional_id_expiration_ms
        return Result(
            [
                tombstone(each.transactional_id)
                for each in self.transactions.values()
                if each.state in states.ENTERED_FROM[states.DEAD]
                and each.last_update_ms <= latest_ms
                and self.is_settled(each.transactional_id)
            ],
            is_atomic=False,
        )

    # Life

    def replay(self, record: CoordinatorRecord, *, offset: int, producer_id: int = -1) -> None:
        """Take over what a record says."""
        transactional_id = record.key.transactional_id
        if record.value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = from_record(transactional_id, record.value)

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """Nobody writes to this topic in transactions."""

    def loaded(self) -> None:
        """The log was replayed: go on with what was decided, begin what runs by the clock."""
        config = self.context.config
        self.context.timer.schedule(
            _TIMEOUTS,
            config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            self.abort_timed_out,
        )
        self.context.timer.schedule(
            _EXPIRY,
            config.transaction_remove_expired_transaction_cleanup_interval_ms,
            self.expire,
        )
        for transaction in self.transactions.values():
            if transaction.is_prepared:
                self._tell(transaction)

    def unloaded(self, error: KafkaError) -> None:
        """The shard ends here; whoever loads the log next goes on."""
        self._pending.clear()
