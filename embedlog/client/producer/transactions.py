"""Sequences of an idempotent producer: what lets a broker drop what was sent twice.

Every batch gets, when it is drained, the producer's id and epoch and the number of its first
record in its partition. A retry carries the same numbers. What may happen to them:

    answered                       the partition's last acknowledged number moves on
    out of order, an earlier
      batch is still to come       sent again
    out of order otherwise         the broker lost what came before: a new epoch
    refused for good               the numbers behind it leave a gap: a new epoch
    given up without an answer     unresolved: nothing new is sent until all that was sent is
                                   settled; if later numbers were acknowledged, so were these,
                                   else a new epoch
    a new epoch                    the partition counts from 0, its batches are numbered anew

Three things are stricter than in Kafka's client. A partition gets its new epoch when none of its
batches is on the wire: a batch that is being written under the old epoch, with the answer lost,
would be written again. And until the first batch of a partition is acknowledged no second one is
sent: a broker that knows nothing of the producer takes any number for its first, so the second
could be written though the first was refused. And no more than four batches follow one that has no
outcome, answered or not: a broker knows the last five again, and one before those would be refused
for ever though it is written.
"""

from __future__ import annotations

from embedlog.client.backoff import Backoff, Retry
from embedlog.errors import KafkaError, error_for
from embedlog.transport import ANY_NODE
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.producer.batch import ProducerBatch
    from embedlog.client.settings import Settings
    from embedlog.pending import Pending
    from embedlog.transport import Transport
    from wire.schemas.init_producer_id import InitProducerIdResponse

_EPOCH_MAX = 32_767
_SEQUENCE_MASK = 0x7FFF_FFFF
_HALF = 0x4000_0000
_KNOWN_AGAIN_COUNT = 5


class PartitionSequences:
    """The numbers of one partition, and its batches without an outcome, in their order."""

    __slots__ = (
        "in_flight",
        "last_acked",
        "next_sequence",
        "producer_epoch",
        "producer_id",
        "unresolved_end",
    )

    def __init__(self, producer_id: int, producer_epoch: int) -> None:
        self.in_flight: list[ProducerBatch] = []
        """Sent at least once; on the wire, or queued to be sent again."""
        self.restart(producer_id, producer_epoch)

    def restart(self, producer_id: int, producer_epoch: int) -> None:
        """Count from 0 under a new id or epoch; batches without an outcome are numbered anew."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.next_sequence = 0
        self.last_acked = -1
        self.unresolved_end = -1
        """The number after those of a batch that was given up without an answer; -1 without."""
        for batch in self.in_flight:
            batch.set_producer(producer_id, producer_epoch, self.next_sequence)
            self.next_sequence = _after(batch)

    @property
    def expected(self) -> int:
        """The number that the broker must see next, as far as its answers tell."""
        return (self.last_acked + 1) & _SEQUENCE_MASK

    @property
    def has_room(self) -> bool:
        """Would the broker still know the oldest batch without an outcome, after one more?"""
        oldest = self.in_flight[0]
        return oldest.overtaken_count + len(self.in_flight) < _KNOWN_AGAIN_COUNT

    @property
    def is_on_wire(self) -> bool:
        """Is any batch's last attempt unanswered?"""
        return any(batch.is_on_wire for batch in self.in_flight)


class TransactionManager:
    """The producer's id, its epoch, and the sequences of each partition.

    The sender owns it: no method waits, and none is thread-safe.
    """

    def __init__(self, transport: Transport, settings: Settings) -> None:
        self._transport = transport
        self._retry = Retry(Backoff.of_retries(settings, transport.runtime.random))
        self.producer_id = -1
        self.producer_epoch = -1
        self.epoch_bump_count = 0
        """New epochs, and new ids after the first."""
        self._partitions: dict[tuple[str, int], PartitionSequences] = {}
        self._to_restart: set[tuple[str, int]] = set()
        self._unresolved: set[tuple[str, int]] = set()
        self.pending: Pending[InitProducerIdResponse] | None = None

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
            self._resolve()
            if self._to_restart and not self._waits_for_answers():
                self._raise_epoch()
            if self.producer_id >= 0:
                return None
        if self.pending is not None:
            if not self.pending.done():
                return None
            self._take_id(now_ms)
            if self.producer_id >= 0:
                return None
        left = self._retry.left_ms(now_ms)
        if left:
            return left
        from wire.schemas.init_producer_id import InitProducerIdRequest

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        self.pending = self._transport.send(ANY_NODE, request)
        if self.pending.done():
            self._take_id(now_ms)
        return None if self.producer_id >= 0 else self._retry.left_ms(now_ms) or None

    def may_drain(self, batch: ProducerBatch) -> bool:
        """May this first batch of its queue be sent now, without breaking the order of numbers?"""
        if self.producer_id < 0:
            return False
        key = (batch.topic, batch.partition)
        if key in self._to_restart:
            return False
        sequences = self._partitions.get(key)
        if sequences is None:
            return True
        if batch.base_sequence >= 0:
            # A retry: only the oldest batch without an outcome may go.
            return sequences.in_flight[0] is batch
        if sequences.unresolved_end >= 0:
            return False
        return not sequences.in_flight or (
            sequences.last_acked >= 0 and sequences.has_room and self._is_current(sequences)
        )

    def number(self, batch: ProducerBatch) -> None:
        """Give a drained batch its numbers, unless a former attempt has."""
        batch.is_on_wire = True
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
        sequences.next_sequence = _after(batch)
        sequences.in_flight.append(batch)

    def acknowledged(self, batch: ProducerBatch) -> None:
        """The broker has the batch."""
        sequences = self._partitions.get((batch.topic, batch.partition))
        if sequences is None or batch not in sequences.in_flight:
            return
        slot = sequences.in_flight.index(batch)
        del sequences.in_flight[slot]
        for earlier in sequences.in_flight[:slot]:
            earlier.overtaken_count += 1
        last = (_after(batch) - 1) & _SEQUENCE_MASK
        # Not `>`: after 2^31 numbers they begin again at 0.
        if sequences.last_acked < 0 or (last - sequences.last_acked) & _SEQUENCE_MASK < _HALF:
            sequences.last_acked = last

    def may_retry(self, batch: ProducerBatch, error: KafkaError) -> bool:
        """Does sending again help, for an error about sequences? It may take a new epoch."""
        sequences = self._partitions.get((batch.topic, batch.partition))
        if sequences is None or batch.base_sequence < 0:
            return False
        if error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            if sequences.unresolved_end < 0:
                is_gap = batch.base_sequence == sequences.expected
            else:
                # Others behind an unresolved batch wait until it is known what became of it.
                is_gap = batch.base_sequence == sequences.unresolved_end
        elif error.code == ErrorCode.UNKNOWN_PRODUCER_ID:
            # Brokers before 2.5: they forget a producer whose records retention removed.
            is_gap = error.log_start_offset >= 0
        else:
            return False
        if is_gap:
            self._to_restart.add((batch.topic, batch.partition))
        return True

    def gave_up(self, batch: ProducerBatch) -> None:
        """The batch failed, and is not sent again."""
        if batch.base_sequence < 0:
            return
        key = (batch.topic, batch.partition)
        sequences = self._partitions.get(key)
        if sequences is None or batch not in sequences.in_flight:
            return
        sequences.in_flight.remove(batch)
        if batch.is_on_wire or batch.may_be_written:
            sequences.unresolved_end = _after(batch)
            self._unresolved.add(key)
        else:
            self._to_restart.add(key)

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """The batch is sent in parts: they share out its numbers."""
        sequences = self._partitions.get((batch.topic, batch.partition))
        if sequences is None or batch not in sequences.in_flight:
            return
        sequence = batch.base_sequence
        for part in parts:
            part.set_producer(*batch.numbers[:2], sequence)
            sequence = _after(part)
        slot = sequences.in_flight.index(batch)
        sequences.in_flight[slot : slot + 1] = parts

    def _is_current(self, sequences: PartitionSequences) -> bool:
        return (
            sequences.producer_epoch == self.producer_epoch
            and sequences.producer_id == self.producer_id
        )

    def _resolve(self) -> None:
        """See what became of batches that were given up without an answer, once all is settled."""
        for key in list(self._unresolved):
            sequences = self._partitions[key]
            if sequences.unresolved_end < 0:
                self._unresolved.discard(key)
            elif not sequences.in_flight:
                self._unresolved.discard(key)
                sequences.unresolved_end = -1
                if sequences.next_sequence != sequences.expected:
                    self._to_restart.add(key)

    def _waits_for_answers(self) -> bool:
        return any(self._partitions[key].is_on_wire for key in self._to_restart)

    def _raise_epoch(self) -> None:
        self.epoch_bump_count += 1
        if self.producer_epoch >= _EPOCH_MAX:
            self.producer_id = self.producer_epoch = -1
            return
        self.producer_epoch += 1
        self._restart_partitions()

    def _restart_partitions(self) -> None:
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
            self._retry.succeeded()
            self._restart_partitions()
            return
        self._retry.failed(now_ms)
        if not isinstance(error, KafkaError) or not error.retriable:
            raise error


def _after(batch: ProducerBatch) -> int:
    """The number after the batch's last."""
    return (batch.base_sequence + batch.record_count) & _SEQUENCE_MASK
