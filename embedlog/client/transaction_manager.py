"""Sequences of an idempotent producer: what lets a broker drop what was sent twice.

Every batch gets, when it is drained, the producer's id and epoch and the number of its first
record in its partition. A retry carries the same numbers. When numbers are lost for good (a batch
was given up) the epoch is raised and the partition counts from 0 again.
"""

from __future__ import annotations

from embedlog.errors import KafkaError, error_for
from embedlog.transport import ANY_NODE
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.producer_batch import ProducerBatch
    from embedlog.client.settings import Settings
    from embedlog.pending import Pending
    from embedlog.transport import Transport
    from wire.schemas.init_producer_id import InitProducerIdResponse

_EPOCH_MAX = 32_767
_SEQUENCE_MASK = 0x7FFF_FFFF


class PartitionSequences:
    """The numbers of one partition, and its batches without an outcome, in their order."""

    __slots__ = (
        "in_flight",
        "is_unresolved",
        "last_acked",
        "next_sequence",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, producer_id: int, producer_epoch: int) -> None:
        self.in_flight: list[ProducerBatch] = []
        self.restart(producer_id, producer_epoch)

    def restart(self, producer_id: int, producer_epoch: int) -> None:
        """Count from 0 under a new id or epoch; batches without an outcome are numbered anew."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.next_sequence = 0
        self.last_acked = -1
        self.is_unresolved = False
        """A batch timed out in flight: nobody knows whether its numbers were used."""
        for batch in self.in_flight:
            batch.set_producer(producer_id, producer_epoch, self.next_sequence)
            self.next_sequence = (self.next_sequence + batch.record_count) & _SEQUENCE_MASK


class TransactionManager:
    """The producer's id, its epoch, and the sequences of each partition.

    The sender owns it: no method waits, and none is thread-safe.
    """

    def __init__(self, transport: Transport, settings: Settings) -> None:
        self._transport = transport
        self._backoff_ms: int = settings["retry.backoff.ms"]
        self.producer_id = -1
        self.producer_epoch = -1
        self._partitions: dict[tuple[str, int], PartitionSequences] = {}
        self._to_restart: set[tuple[str, int]] = set()
        self.pending: Pending[InitProducerIdResponse] | None = None
        self._not_before_ms = 0

    @property
    def has_producer_id(self) -> bool:
        """May batches be numbered?"""
        return self.producer_id >= 0

    def advance(self, now_ms: int) -> int | None:
        """Get a producer id, raise the epoch if numbers were lost; ms to the next step, if known.

        Raises:
            KafkaError: the broker refuses to give an id.
        """
        if self.producer_id >= 0:
            if self._partitions:
                self._resolve()
            if self._to_restart:
                self._raise_epoch()
            if self.producer_id >= 0:
                return None
        if self.pending is not None:
            if not self.pending.done():
                return None
            self._take_id(now_ms)
            if self.producer_id >= 0:
                return None
        if now_ms < self._not_before_ms:
            return self._not_before_ms - now_ms
        from wire.schemas.init_producer_id import InitProducerIdRequest

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        self.pending = self._transport.send(ANY_NODE, request)
        if self.pending.done():
            self._take_id(now_ms)
        return None if self.producer_id >= 0 else self._backoff_ms

    def may_drain(self, batch: ProducerBatch) -> bool:
        """May this first batch of its queue be sent now, without breaking the order of numbers?"""
        if self.producer_id < 0:
            return False
        sequences = self._partitions.get((batch.topic, batch.partition))
        if sequences is None or not sequences.in_flight:
            return True
        if batch.base_sequence >= 0:
            # A retry: only the oldest batch without an outcome may go.
            return sequences.in_flight[0] is batch
        return not sequences.is_unresolved and self._is_current(sequences)

    def number(self, batch: ProducerBatch) -> None:
        """Give a drained batch its numbers, unless a former attempt has."""
        if batch.base_sequence >= 0:
            return
        key = (batch.topic, batch.partition)
        sequences = self._partitions.get(key)
        if sequences is None:
            sequences = PartitionSequences(self.producer_id, self.producer_epoch)
            self._partitions[key] = sequences
        elif not self._is_current(sequences):
            sequences.restart(self.producer_id, self.producer_epoch)
        batch.set_producer(self.producer_id, self.producer_epoch, sequences.next_sequence)
        sequences.next_sequence = (sequences.next_sequence + batch.record_count) & _SEQUENCE_MASK
        sequences.in_flight.append(batch)

    def acknowledged(self, batch: ProducerBatch) -> None:
        """The broker has the batch."""
        sequences = self._drop(batch)
        if sequences is not None and batch.producer_epoch == sequences.producer_epoch:
            last = (batch.base_sequence + batch.record_count - 1) & _SEQUENCE_MASK
            sequences.last_acked = max(sequences.last_acked, last)

    def may_retry(self, batch: ProducerBatch, code: int) -> bool:
        """Does sending again help, for the errors about sequences?

        An out of order sequence is harmless while an earlier batch is still to be retried.
        Otherwise the partition's numbers start again under a new epoch.
        """
        sequences = self._partitions.get((batch.topic, batch.partition))
        if sequences is None or batch.base_sequence < 0:
            return False
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            expected = (sequences.last_acked + 1) & _SEQUENCE_MASK
            if not sequences.is_unresolved and batch.base_sequence != expected:
                return True
        elif code != ErrorCode.UNKNOWN_PRODUCER_ID:
            return False
        self._to_restart.add((batch.topic, batch.partition))
        return True

    def gave_up(self, batch: ProducerBatch, *, in_flight: bool) -> None:
        """The batch failed. `in_flight`: its last attempt has no answer, it may yet be written."""
        if batch.base_sequence < 0:
            return
        sequences = self._drop(batch)
        if sequences is None:
            return
        if in_flight:
            sequences.is_unresolved = True
        else:
            self._to_restart.add((batch.topic, batch.partition))

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """The batch is sent in parts: they share out its numbers."""
        sequences = self._partitions.get((batch.topic, batch.partition))
        if sequences is None or batch not in sequences.in_flight:
            return
        sequence = batch.base_sequence
        for part in parts:
            part.set_producer(batch.producer_id, batch.producer_epoch, sequence)
            sequence = (sequence + part.record_count) & _SEQUENCE_MASK
        slot = sequences.in_flight.index(batch)
        sequences.in_flight[slot : slot + 1] = parts

    def _is_current(self, sequences: PartitionSequences) -> bool:
        return (
            sequences.producer_epoch == self.producer_epoch
            and sequences.producer_id == self.producer_id
        )

    def _drop(self, batch: ProducerBatch) -> PartitionSequences | None:
        sequences = self._partitions.get((batch.topic, batch.partition))
        if sequences is None or batch not in sequences.in_flight:
            return None
        sequences.in_flight.remove(batch)
        return sequences

    def _resolve(self) -> None:
        for key, sequences in self._partitions.items():
            if sequences.is_unresolved and not sequences.in_flight:
                sequences.is_unresolved = False
                if sequences.next_sequence != (sequences.last_acked + 1) & _SEQUENCE_MASK:
                    self._to_restart.add(key)

    def _raise_epoch(self) -> None:
        if self.producer_epoch >= _EPOCH_MAX:
            self.producer_id = self.producer_epoch = -1
            return
        self.producer_epoch += 1
        for key in self._to_restart:
            self._partitions[key].restart(self.producer_id, self.producer_epoch)
        self._to_restart.clear()

    def _take_id(self, now_ms: int) -> None:
        pending, self.pending = self.pending, None
        assert pending is not None, self
        error = pending.error()
        if error is None:
            response = pending.result()
            if response.error_code:
                error = error_for(response.error_code)
        if error is None:
            self.producer_id = response.producer_id
            self.producer_epoch = response.producer_epoch
            for key in self._to_restart:
                self._partitions[key].restart(self.producer_id, self.producer_epoch)
            self._to_restart.clear()
        elif isinstance(error, KafkaError) and error.retriable:
            self._not_before_ms = now_ms + self._backoff_ms
        else:
            raise error
