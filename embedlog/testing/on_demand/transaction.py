"""`Transaction`: a test's handle of one transactional id, to look at it and to end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedlog.common import TopicPartition
from embedlog.coordinator.transaction import states
from embedlog.coordinator.transaction.ending import end
from embedlog.coordinator.transaction.initialize import initialize
from embedlog.errors import ConfigError, IllegalState, TransactionalIdNotFound
from embedlog.testing.inspection.brokers import Brokers
from embedlog.testing.inspection.transactions import (
    TransactionValue,
    read_transaction,
    read_transactions,
)
from embedlog.testing.names import hint

if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.coordinator.result import Result
    from embedlog.coordinator.transaction.transaction_metadata import TransactionMetadata
    from embedlog.coordinator.transaction.transaction_shard import TransactionShard


class Transaction:
    """One transactional id. Each property is read when it is used, and is a copy.

    >>> from embedlog.testing import Kafka
    >>> with Kafka(topics={"orders": 1}) as kafka:
    ...     producer = kafka.producer(transactional_id="payments")
    ...     producer.init_transactions()
    ...     kafka.transaction("payments").state
    'Empty'
    """

    def __init__(self, brokers: Brokers, transactional_id: str) -> None:
        if not isinstance(transactional_id, str) or not transactional_id:
            raise ConfigError(f"transaction {transactional_id!r}: expected a transactional id")
        self.transactional_id = transactional_id
        self._brokers = brokers

    # Values

    @property
    def value(self) -> TransactionValue:
        """Everything about the transactional id at one moment."""
        return read_transaction(self._brokers, self.transactional_id)

    @property
    def exists(self) -> bool:
        """Whether a producer has used the transactional id."""
        return self.value.exists

    @property
    def state(self) -> str:
        """The state as Kafka spells it; "Dead" if nobody uses the id."""
        return self.value.state

    @property
    def producer_id(self) -> int:
        """The producer id; -1 if nobody uses the id."""
        return self.value.producer_id

    @property
    def epoch(self) -> int:
        """The producer epoch that the coordinator expects."""
        return self.value.epoch

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions of the open transaction; during its end, the ones without the marker."""
        return self.value.partitions

    @property
    def timeout_ms(self) -> int:
        """The time after which the coordinator aborts an open transaction."""
        return self.value.timeout_ms

    # Changes

    def fence(self) -> None:
        """Let a new producer take over the id: the present one is fenced at its next request.

        An open transaction is aborted first, and the call waits for that.

        Raises:
            TransactionalIdNotFound: nobody uses the id.
            TimedOut: the end of the last transaction takes too long; a test may be holding it.
        """
        timeout_ms = self._check_exists().timeout_ms

        def take_over(core: Broker, shard: TransactionShard) -> Result[Any]:
            return initialize(
                shard,
                self.transactional_id,
                timeout_ms=timeout_ms,
                expected=None,
                new_producer_id=core.producer_ids.next,
            )

        self._brokers.write_transaction(self.transactional_id, take_over)

    def expire(self) -> None:
        """Abort the open transaction as its time-out does: its producer is fenced.

        Raises:
            TransactionalIdNotFound: nobody uses the id.
            IllegalState: no transaction is open.
        """
        self._check_exists()

        def time_out(_core: Broker, shard: TransactionShard) -> Result[Any]:
            shard.check_settled(self.transactional_id)
            target = self._open(shard).fenced(
                now_ms=shard.context.wall_ms(), transaction_version=shard.transaction_version()
            )
            return shard.transit(target, None)

        self._brokers.write_transaction(self.transactional_id, time_out)

    def abort(self) -> None:
        """Abort the open transaction in place of its producer, as if the producer had done it.

        The producer does not know it: its next request for the transaction fails.

        Raises:
            TransactionalIdNotFound: nobody uses the id.
            IllegalState: no transaction is open.
        """
        self._check_exists()

        def decide(core: Broker, shard: TransactionShard) -> Result[Any]:
            shard.check_settled(self.transactional_id)
            present = self._open(shard)
            return end(
                shard,
                self.transactional_id,
                present.producer_id,
                present.producer_epoch,
                is_committed=False,
                client_version=present.client_version,
                new_producer_id=core.producer_ids.next,
            )

        self._brokers.write_transaction(self.transactional_id, decide)

    def _open(self, shard: TransactionShard) -> TransactionMetadata:
        present = shard.transactions[self.transactional_id]
        if present.state != states.ONGOING:
            raise IllegalState(
                f"transactional id {self.transactional_id!r} has no open transaction: its state is "
                f"{states.NAMES[present.state]}"
            )
        return present

    def _check_exists(self) -> TransactionValue:
        value = self.value
        if not value.exists:
            names = [each.transactional_id for each in read_transactions(self._brokers)]
            raise TransactionalIdNotFound(
                f"there is no transactional id {self.transactional_id!r}; "
                f"{hint(self.transactional_id, names)}"
            )
        return value

    def __repr__(self) -> str:
        return f"<Transaction {self.transactional_id!r}>"

    def __str__(self) -> str:
        return str(self.value)
