"""Sequences of an idempotent producer without transactions.

The events of a batch change the numbers of its partition:

    answered                       the partition's last acknowledged number moves on
    out of order, an earlier
      batch has no outcome         sent again
    out of order otherwise         the broker lost earlier records: a new epoch. If the batch may be
                                   in the log, it fails
    refused for good               the later numbers leave a gap: a new epoch
    given up without an answer     unresolved: no new batch is sent until every sent batch has an
                                   outcome; if later numbers were acknowledged, the batch was
                                   written, else a new epoch
    a new epoch                    the partition counts from 0, its batches are numbered anew

Stricter than in Kafka's client: no batch that may be in the log is numbered anew, because it would
be written again. A partition gets its new epoch only when none of its batches is on the wire, and
none before the gap is without an outcome.
"""

from __future__ import annotations

from embedlog.client.backoff import Backoff, Retry
from embedlog.client.producer.transactions.sequences import Sequences, after
from embedlog.errors import KafkaError, error_for
from embedlog.transport import ANY_NODE
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.producer.batch import ProducerBatch
    from embedlog.client.settings import Settings
    from embedlog.runtime.pending import Pending
    from embedlog.transport import Transport
    from wire.schemas.init_producer_id import InitProducerIdResponse

_EPOCH_MAX = 32_767


class IdempotentSequences(Sequences):
    """Sequences of a producer that gets its id from any broker, and raises its own epoch."""

    has_duties = is_due = False
    doom = None
    pending: Pending[InitProducerIdResponse] | None = None

    def __init__(self, transport: Transport, settings: Settings) -> None:
        super().__init__()
        self._transport = transport
        self._retry = Retry(Backoff.of_retries(settings, transport.runtime.random))
        self._to_restart: set[tuple[str, int]] = set()
        self._unresolved: set[tuple[str, int]] = set()

    def advance(self, now_ms: int) -> int | None:
        """Get a producer id, or raise the epoch if numbers were lost.

        Return the milliseconds to the next step, if known.

        Raises:
            KafkaError: the broker refuses to give an id.
        """
        if self.producer_id >= 0:
            self._resolve()
            if any(self._partitions[key].may_restart for key in self._to_restart):
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
        key = (batch.topic, batch.partition)
        if self.producer_id < 0:
            return False
        if key in self._to_restart and not (
            batch.base_sequence >= 0 and self._partitions[key].is_before_gap(batch)
        ):
            return False
        return self._has_turn(batch)

    def may_retry(self, batch: ProducerBatch, error: KafkaError) -> bool:
        """Return whether sending again helps, perhaps under a new epoch."""
        key = (batch.topic, batch.partition)
        sequences = self._partitions.get(key)
        if sequences is None or batch.base_sequence < 0:
            return False
        if error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            if sequences.unresolved_end < 0:
                is_gap = batch.base_sequence == sequences.expected
            else:
                # The batches behind an unresolved batch wait until its outcome is known.
                is_gap = batch.base_sequence == sequences.unresolved_end
        elif error.code == ErrorCode.UNKNOWN_PRODUCER_ID:
            # Brokers before 2.5 forget a producer when retention has removed its records.
            is_gap = error.log_start_offset >= 0
        else:
            return False
        if is_gap:
            if not sequences.is_missing(batch):
                error.add_note("An attempt before got no answer: the records may be in the log.")
                return False
            sequences.note_gap(batch.base_sequence)
            self._to_restart.add(key)
        return True

    def gave_up(self, batch: ProducerBatch, error: Exception) -> Exception:
        key = (batch.topic, batch.partition)
        sequences = self._partitions.get(key)
        if batch.base_sequence < 0 or sequences is None or batch not in sequences.in_flight:
            return error
        sequences.in_flight.remove(batch)
        if batch.is_on_wire or batch.may_be_written:
            sequences.unresolved_end = after(batch)
            self._unresolved.add(key)
        else:
            sequences.note_gap(batch.base_sequence)
            self._to_restart.add(key)
        return error

    def _resolve(self) -> None:
        """Restart unresolved partitions that have a gap, once all their batches have outcomes."""
        for key in list(self._unresolved):
            sequences = self._partitions[key]
            if sequences.unresolved_end < 0:
                self._unresolved.discard(key)
            elif not sequences.in_flight:
                self._unresolved.discard(key)
                sequences.unresolved_end = -1
                if sequences.next_sequence != sequences.expected:
                    sequences.note_gap(sequences.expected)
                    self._to_restart.add(key)

    def _raise_epoch(self) -> None:
        if self.producer_epoch >= _EPOCH_MAX:
            self.producer_id = self.producer_epoch = -1
            return
        self.producer_epoch += 1
        self._restart_partitions()

    def _restart_partitions(self) -> None:
        for key in [key for key in self._to_restart if self._partitions[key].may_restart]:
            self._partitions[key].restart(self.producer_id, self.producer_epoch)
            self._to_restart.remove(key)

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
