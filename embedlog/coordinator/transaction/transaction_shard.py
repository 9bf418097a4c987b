"""`TransactionShard`: the transactional ids of one partition of `__transaction_state`.

A transition is pending from its append to its commit, and meanwhile the id takes no other request.
At the commit the shard applies the transition, and passes a decision to the markers.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.result import CoordinatorRecord, Result
from embedlog.coordinator.transaction import states
from embedlog.coordinator.transaction.transaction_metadata import (
    TransactionMetadata,
    from_record,
    record_of,
    tombstone,
)
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.errors import KafkaError

    WhenDecided = Callable[["TransactionShard", TransactionMetadata], None]

_TIMEOUTS = "time-outs"
_EXPIRY = "expiry"
_FIRST_WITH_TAGGED_VALUES = 1


class TransactionShard:
    """One loaded shard. Requires for every method: the shard's lock.

    `when_decided(shard, transaction)` is called, without the lock, for every transaction whose
    partitions need markers, including the ones found at loading. `when_free(id)` is called, without
    the lock, when an id has no pending transition any more. `id_count` counts the ids of all loaded
    shards of the broker.
    """

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
        """Returns the level of the cluster's feature `transaction.version`."""
        self.transactions: dict[str, TransactionMetadata] = {}
        """Transactional id -> its last committed state."""
        self._pending: set[str] = set()
        self._when_decided = when_decided
        self._when_free = when_free
        self._id_count = id_count

    # Asking

    def is_settled(self, transactional_id: str) -> bool:
        return transactional_id not in self._pending

    def check_settled(self, transactional_id: str) -> None:
        """Raise ConcurrentTransactions while a transition of the id is pending.

        A decided transaction stays pending until all partitions have the marker; a client may
        already use the next producer id and epoch.
        """
        if not self.is_free(transactional_id):
            raise errors.ConcurrentTransactions()

    def is_free(self, transactional_id: str) -> bool:
        """Return whether the id's next transaction may begin. Needs no lock."""
        present = self.transactions.get(transactional_id)
        return self.is_settled(transactional_id) and (present is None or not present.is_prepared)

    def check_client(self, client_version: int) -> None:
        """Raise UnsupportedVersion for a client of version 2 if the cluster is at level 0.

        Clients know the level and do not cause this. After such a request Kafka would never again
        answer a request for the id.
        """
        if client_version > 0 == self.transaction_version():
            raise errors.UnsupportedVersion("transaction.version is 0")

    def check_room(self) -> None:
        """Raise PolicyViolation if the broker has the maximum number of ids."""
        count_max: int = self.context.config.embedlog_max_transactional_ids
        if self._id_count() >= count_max:
            raise errors.PolicyViolation(
                f"There are {count_max} transactional ids; no more than "
                "embedlog.max.transactional.ids can be in use."
            )

    # Changing

    def transit(self, target: TransactionMetadata, response: Any) -> Result[Any]:
        """Append `target`; it becomes the id's state when the record is committed."""
        return self._transit_all([target], response)

    def _transit_all(
        self, targets: Sequence[TransactionMetadata], response: Any = None
    ) -> Result[Any]:
        self._pending.update(target.transactional_id for target in targets)

        def when_appended(error: KafkaError | None) -> None:
            for target in targets:
                self._pending.discard(target.transactional_id)
                if error is None:
                    self.transactions[target.transactional_id] = target
                    if target.is_prepared:
                        self._send_markers(target)
                    elif target.is_over:
                        self._free(target.transactional_id)

        # The end of a version 2 client's transaction follows version 2, even if the cluster's level
        # was lowered meanwhile.
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
        """Return a response that refuses a request although its transition is committed."""
        pending: Pending[Any] = Pending()
        pending.fail(error)
        return pending

    def _send_markers(self, decided: TransactionMetadata) -> None:
        self.context.defer(lambda: self._when_decided(self, decided))

    def _free(self, transactional_id: str) -> None:
        def announce() -> None:
            self._when_free(transactional_id)

        self.context.defer(announce)

    # By the clock

    def abort_timed_out(self) -> Result[None]:
        """Fence and abort the transactions that exceed their producer's time-out.

        Also send all missing markers again, in case Ctrl-C came between a decision and its markers.
        """
        interval_ms = (
            self.context.config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        )
        self.context.timer.schedule(_TIMEOUTS, interval_ms, self.abort_timed_out)
        for transaction in self.transactions.values():
            if transaction.is_prepared:
                self._send_markers(transaction)
        now_ms, elapsed_ns = self.context.wall_ms(), self.context.elapsed_ns()
        version = self.transaction_version()
        return self._transit_all(
            [
                each.fenced(now_ms=now_ms, transaction_version=version)
                for each in self.transactions.values()
                if each.is_overdue(now_ms=now_ms, elapsed_ns=elapsed_ns)
                and self.is_settled(each.transactional_id)
            ]
        )

    def expire(self) -> Result[None]:
        """Delete ids that were not used for transactional.id.expiration.ms.

        Delete nothing while the wall clock is not trusted: deleted ids do not come back when it is
        corrected.
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
        transactional_id = record.key.transactional_id
        if record.value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = from_record(transactional_id, record.value)

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """Do nothing: this topic has no transactional records."""

    def loaded(self) -> None:
        """Resume decided transactions and start the timers."""
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
                self._send_markers(transaction)

    def unloaded(self, error: KafkaError) -> None:
        """Drop pending transitions; the next broker that loads the log resumes them."""
        self._pending.clear()
