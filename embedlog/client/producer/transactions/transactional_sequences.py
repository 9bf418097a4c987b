"""What a sender asks of a transactional producer: which batches may go, and what their end means.

Batches wait until their partition is part of the transaction: since transaction.version 2 the
broker makes it so itself, before that AddPartitionsToTxn does. A batch that fails takes its
transaction with it, so that no gap in the sequences needs to be mended: the next transaction has
another epoch, and counts from 0.
"""

from __future__ import annotations

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
    """Of one producer, in its sender's turn. No method waits."""

    queue: RequestQueue
    """Set by the manager, whose requests they are."""

    def __init__(self, status: TransactionStatus, coordinators: Coordinators) -> None:
        super().__init__()
        self._status = status
        self._coordinators = coordinators

    @property
    def pending(self) -> Pending[Any] | None:
        """The answer that the next step waits for."""
        return self.queue.pending

    @property
    def may_send(self) -> bool:
        """May batches be numbered?"""
        return self._status.state in SENDS and self.producer_id >= 0

    @property
    def has_duties(self) -> bool:
        """Is there anything to do beside sending records?"""
        return bool(self.queue) or bool(self._status.open.new_partitions)

    @property
    def is_due(self) -> bool:
        """Do batches wait for a request that can be made now?"""
        return bool(self._status.open.new_partitions) and self.queue.is_idle

    @property
    def doom(self) -> Exception | None:
        """What records fail with that are not sent, nor sent again; None while they may be.

        After an error, or in an abort, nobody will read them, wherever they are, and the next
        transaction has another epoch. When the end of a transaction has been sent there can only
        be those of a thread that sent at that moment: they are not part of it, and must not become
        part of the next.
        """
        status = self._status
        if status.doom is None and (status.open.is_ending or status.state in CLOSED):
            return TransactionAborted("the transaction was ended while the record was sent")
        return status.doom

    def produce_version(self, node_id: int) -> int | None:
        """The version of produce requests; None for the newest, as version 2 wants it."""
        if self._status.open.is_v2:
            return None
        return self._coordinators.version(ProduceRequest, node_id, is_v2=False)

    def advance(self, now_ms: int) -> int | None:
        """Make the requests that are due; ms until time makes another possible."""
        opened = self._status.open
        if opened.new_partitions and self.queue.is_idle:
            partitions, opened.new_partitions = opened.new_partitions, set()
            opened.pending_partitions |= partitions
            self.queue.add(AddPartitions(partitions))
        return self.queue.advance(now_ms)

    def may_drain(self, batch: ProducerBatch) -> bool:
        """May this first batch of its queue be sent now? Its partition becomes part of it all."""
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
        """Is it only out of order because an earlier one is still to come?"""
        if error.code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER or batch.base_sequence < 0:
            return False
        sequences = self._partitions.get((batch.topic, batch.partition))
        return sequences is not None and batch.base_sequence != sequences.expected

    @property
    def _is_first_checked(self) -> bool:
        return self._status.open.is_v2

    def gave_up(self, batch: ProducerBatch, error: Exception) -> None:
        """The batch failed, and with it the transaction."""
        sequences = self._partitions.get((batch.topic, batch.partition))
        if sequences is not None and batch in sequences.in_flight:
            sequences.in_flight.remove(batch)
            self._status.open.needs_epoch = True
        if error is not self._status.doom and not isinstance(error, TransactionAborted):
            self._status.record_failed(error)
