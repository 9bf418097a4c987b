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
from embedlog.logger import Logger
from embedlog.runtime.pending import Pending
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.errors import KafkaError

    WhenDecided = Callable[["TransactionShard", TransactionMetadata], None]

_TIMEOUTS = "time-outs"
_EXPIRY = "expiry"
_ABORTED_SIZE_MAX = 256 << 10
"""Transactions that time out together are aborted in batches of about this size."""
_FIRST_WITH_TAGGED_VALUES = 1

_log = Logger("coordinator")


class TransactionShard:
    """One loaded shard. Requires for every method: the shard's lock.

    `when_decided(shard, transaction)` is called, without the lock, for every transaction whose
    partitions need markers. Loading and time-outs may find many such transactions and call
    `when_many_decided` instead. `when_free(id)` is called, without the lock, when an id has no
    pending transition any more. `id_count` counts the ids of all loaded shards of the broker.
    """

    def __init__(
        self,
        context: ShardContext,
        *,
        transaction_version: Callable[[], int],
        when_decided: WhenDecided,
        when_many_decided: WhenDecided,
        when_free: Callable[[str], object],
        id_count: Callable[[], int],
    ) -> None:
        self.context = context
        self.transaction_version = transaction_version
        """Returns the level of the cluster's feature `transaction.version`."""
        self.transactions: dict[str, TransactionMetadata] = {}
        """Transactional id -> its last committed state."""
        self._pending: set[str] = set()
        self._aborted_size_max = _ABORTED_SIZE_MAX
        self._not_aborted: set[str] = set()
        """Transactional ids whose abort the log has refused since the last time-out interval."""
        self._is_any_overdue = self._is_aborting = False
        self._when_decided = when_decided
        self._when_many_decided = when_many_decided
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
        self,
        targets: Sequence[TransactionMetadata],
        response: Any = None,
        *,
        then: Callable[[KafkaError | None], object] | None = None,
    ) -> Result[Any]:
        """Append all `targets` in one batch, and send the markers of the decided ones.

        `then` is called with the error or None, and sends the markers itself.
        """
        self._pending.update(target.transactional_id for target in targets)

        def when_appended(error: KafkaError | None) -> None:
            for target in targets:
                self._pending.discard(target.transactional_id)
                if error is None:
                    self.transactions[target.transactional_id] = target
                    _log.debug(
                        "transactional id %s is %s, producer id %d, epoch %d",
                        target.transactional_id,
                        states.NAMES[target.state],
                        target.producer_id,
                        target.producer_epoch,
                    )
                    if target.is_prepared and then is None:
                        self._send_markers(target)
                    elif target.is_over:
                        self._free(target.transactional_id)
            if then is not None:
                then(error)

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

    def _send_all_markers(self) -> None:
        decided = [each for each in self.transactions.values() if each.is_prepared]

        def tell() -> None:
            for each in decided:
                self._when_many_decided(self, each)

        if decided:
            self.context.defer(tell)

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
        self._send_all_markers()
        self._not_aborted.clear()
        return self._abort_some()

    def _abort_some(self) -> Result[None]:
        """Abort timed-out transactions, as many as fit in a batch; then the next ones.

        One batch of all of them could be larger than the log allows, and none would ever be
        aborted. The markers follow when all transactions are decided.
        """
        now_ms, elapsed_ns = self.context.wall_ms(), self.context.elapsed_ns()
        version = self.transaction_version()
        targets: list[TransactionMetadata] = []
        size, is_any_left = 0, False
        for each in self.transactions.values():
            transactional_id = each.transactional_id
            if (
                each.is_overdue(now_ms=now_ms, elapsed_ns=elapsed_ns)
                and self.is_settled(transactional_id)
                and transactional_id not in self._not_aborted
            ):
                size += each.size_estimate
                is_any_left = bool(targets) and size > self._aborted_size_max
                if is_any_left:
                    break
                targets.append(each.fenced(now_ms=now_ms, transaction_version=version))
                _log.debug(
                    "transactional id %s is aborted: its time-out of %d ms has passed",
                    transactional_id,
                    each.timeout_ms,
                )
        self._is_any_overdue = is_any_left

        def decided(error: KafkaError | None) -> None:
            if error is not None and len(targets) == 1:
                self._not_aborted.add(targets[0].transactional_id)
            elif error is not None:
                self._aborted_size_max = size // 2
                self._is_any_overdue = error.code == ErrorCode.UNKNOWN_SERVER_ERROR  # too large
            if not self._is_any_overdue:
                self._send_all_markers()
            elif not self._is_aborting:
                self.context.defer(self._abort_others)

        return self._transit_all(targets, then=decided)

    def abort_open(self, is_chosen: Callable[[str], bool]) -> Result[list[str]]:
        """Fence and abort open transactions as if their time-outs had ended; return their ids.

        `is_chosen` gets the transactional id.
        """
        now_ms, version = self.context.wall_ms(), self.transaction_version()
        targets = [
            each.fenced(now_ms=now_ms, transaction_version=version)
            for each in self.transactions.values()
            if each.state == states.ONGOING
            and self.is_settled(each.transactional_id)
            and is_chosen(each.transactional_id)
        ]
        return self._transit_all(targets, [each.transactional_id for each in targets])

    def _abort_others(self) -> None:
        """Repeat `_abort_some` while it leaves overdue transactions. Requires: no lock.

        An interrupt ends this until the next time-out interval.
        """
        self._is_aborting = True
        try:
            while self._is_any_overdue:
                pending = self.context.write(lambda shard: shard._abort_some())
                if not pending.done():
                    pending.add_callback(lambda _: self._abort_others())
                    return
        finally:
            self._is_aborting = False

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
        self._send_all_markers()

    def unloaded(self, error: KafkaError) -> None:
        """Drop pending transitions; the next broker that loads the log resumes them."""
        self._pending.clear()
