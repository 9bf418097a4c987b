"""Sequences of a transactional producer: which batches may be sent, and the effects of their
outcomes.

A batch waits until its partition is part of the transaction: with transaction.version 2 the broker
adds it, below 2 AddPartitionsToTxn does. A batch that fails ends its transaction, so no gap in the
sequences needs mending: the next transaction has another epoch, and counts from 0.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client.errors import TransactionAborted
from embedlog.client.producer.transactions.requests import AddPartitions
from embedlog.client.producer.transactions.sequences import Sequences
from embedlog.client.producer.transactions.status import CLOSED, SENDS
from wire.error_codes import ErrorCode
from wire.schemas.produce import ProduceRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.producer.batch import ProducerBatch
    from embedlog.client.producer.transactions.coordinators import Coordinators
    from embedlog.client.producer.transactions.queue import RequestQueue
    from embedlog.client.producer.transactions.status import TransactionStatus
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending


class TransactionalSequences(Sequences):
    """The sequences of one transactional producer. No method waits."""

    queue: RequestQueue
    """The manager's request queue; the manager sets it."""

    def __init__(self, status: TransactionStatus, coordinators: Coordinators) -> None:
        super().__init__()
        self._status = status
        status.identity = lambda: (self.producer_id, self.producer_epoch)
        self._coordinators = coordinators

    @property
    def pending(self) -> Pending[Any] | None:
        return self.queue.pending

    @property
    def may_send(self) -> bool:
        return self._status.state in SENDS and self.producer_id >= 0

    @property
    def has_duties(self) -> bool:
        return bool(self.queue) or bool(self._status.open.new_partitions)

    @property
    def is_due(self) -> bool:
        return bool(self._status.open.new_partitions) and self.queue.is_idle

    @property
    def doom(self) -> Exception | None:
        """The error for unsent records once the transaction cannot commit; None before that.

        After an error or an abort, no reader would see more records, and the next transaction has
        another epoch. Once EndTxn is sent, only records of a `send` at that moment can be unsent.
        They are not part of the transaction, and must not become part of the next.
        """
        status = self._status
        if status.doom is None and (status.open.is_ending or status.state in CLOSED):
            return TransactionAborted("the transaction was ended while the record was sent")
        return status.doom

    def produce_version(self, node_id: int) -> int | None:
        """Return the version of produce requests; None, the newest, with transaction.version 2."""
        if self._status.open.is_v2:
            return None
        return self._coordinators.version(ProduceRequest, node_id, is_v2=False)

    def advance(self, now_ms: int) -> int | None:
        opened = self._status.open
        if opened.new_partitions and self.queue.is_idle:
            partitions, opened.new_partitions = opened.new_partitions, set()
            opened.pending_partitions |= partitions
            self.queue.add(AddPartitions(partitions))
        return self.queue.advance(now_ms)

    def may_drain(self, batch: ProducerBatch) -> bool:
        """Return whether the batch may be sent; add its partition to the transaction."""
        if batch.base_sequence < 0:
            opened, key = self._status.open, (batch.topic, batch.partition)
            if self._status.state not in SENDS or opened.is_ending:
                return False
            if key not in opened.partitions:
                if not opened.is_v2:
                    if key not in opened.pending_partitions:
                        opened.new_partitions.add(key)
                    return False
                opened.partitions.add(key)
                opened.is_started = True
        return self._has_turn(batch)

    def may_retry(self, batch: ProducerBatch, error: KafkaError) -> bool:
        """Return whether the batch is out of order only because an earlier batch is missing."""
        if error.code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER or batch.base_sequence < 0:
            return False
        sequences = self._partitions.get((batch.topic, batch.partition))
        return sequences is not None and batch.base_sequence != sequences.expected

    @property
    def _is_first_checked(self) -> bool:
        return self._status.open.is_v2

    def gave_up(self, batch: ProducerBatch, error: Exception) -> Exception:
        """Note that the batch failed, and fail its transaction; name a fenced producer."""
        if getattr(error, "code", None) == ErrorCode.INVALID_PRODUCER_EPOCH:
            error = self._status.fenced(errors.InvalidProducerEpoch)
        sequences = self._partitions.get((batch.topic, batch.partition))
        if sequences is not None and batch in sequences.in_flight:
            sequences.in_flight.remove(batch)
            self._status.open.needs_epoch = True
        if error is not self._status.doom and not isinstance(error, TransactionAborted):
            self._status.record_failed(error)
        return error
