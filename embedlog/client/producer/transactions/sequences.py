"""Sequences of a producer, with which a broker recognizes a batch that was sent twice.

Every batch gets, when it is drained, the producer's id and epoch and the number of its first record
in its partition. A retry carries the same numbers. See `idempotence` for their use without
transactions, `manager` with transactions.

Two rules are stricter than in Kafka's client. Until the first batch of a partition is acknowledged
no second one is sent: a broker that does not know the producer accepts any first number, so the
second batch could be written although the first was refused. And after a batch without an outcome
at most four more batches are sent, even if they are answered: a broker recognizes only the last
five, and would refuse an older one for ever although it is written.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.producer.batch import ProducerBatch
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending

_SEQUENCE_MASK = 0x7FFF_FFFF
_HALF = 0x4000_0000
_KNOWN_AGAIN_COUNT = 5


class PartitionSequences:
    """The sequence numbers of one partition, and its batches without an outcome, in order."""

    def __init__(self, producer_id: int, producer_epoch: int) -> None:
        self.in_flight: list[ProducerBatch] = []
        """Batches sent at least once: on the wire, or queued to be sent again."""
        self.restart(producer_id, producer_epoch)

    def restart(self, producer_id: int, producer_epoch: int) -> None:
        """Count from 0 under a new id or epoch; batches without an outcome are numbered anew."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.next_sequence = 0
        self.last_acked = -1
        self.unresolved_end = -1
        """The sequence after a batch that was given up without an answer; -1 if there is none."""
        self.gap = -1
        """The first sequence that the broker lacks; -1 if it lacks none. It refuses later ones."""
        for batch in self.in_flight:
            batch.set_producer(producer_id, producer_epoch, self.next_sequence)
            self.next_sequence = after(batch)

    def is_of(self, owner: Sequences) -> bool:
        """Return whether the numbers belong to the present id and epoch of `owner`."""
        return self.producer_epoch == owner.producer_epoch and self.producer_id == owner.producer_id

    @property
    def expected(self) -> int:
        """The number that the broker must see next, according to its answers."""
        return (self.last_acked + 1) & _SEQUENCE_MASK

    @property
    def has_room(self) -> bool:
        """True if the broker would still recognize the oldest batch after one more batch."""
        oldest = self.in_flight[0]
        return oldest.overtaken_count + len(self.in_flight) < _KNOWN_AGAIN_COUNT

    @property
    def may_restart(self) -> bool:
        """True if the log has no batch that `restart` would number anew.

        A batch on the wire, or before the gap, may be in the log: it needs its outcome first.
        """
        if any(batch.is_on_wire for batch in self.in_flight):
            return False
        return not self.in_flight or not self.is_before_gap(self.in_flight[0])

    def is_before_gap(self, batch: ProducerBatch) -> bool:
        return 0 < (self.gap - batch.base_sequence) & _SEQUENCE_MASK < _HALF

    def note_gap(self, sequence: int) -> None:
        """Note that the broker lacks `sequence`."""
        if self.gap < 0 or 0 < (self.gap - sequence) & _SEQUENCE_MASK < _HALF:
            self.gap = sequence

    def is_missing(self, batch: ProducerBatch) -> bool:
        """Return whether the log lacks a batch that was refused as out of order.

        A broker recognizes the last batch of a producer for ever, earlier ones only for a while: a
        restart forgets them. It never recognizes a part of a batch. So the refusal proves nothing
        if an earlier attempt may have written the batch, and the log may have a later batch.
        """
        if not batch.may_be_written:
            return True
        if batch.is_split_product:
            return False
        later = self.in_flight[self.in_flight.index(batch) + 1 :]
        return not any(each.may_be_written or each.is_on_wire for each in later)


class Sequences:
    """A producer's id and epoch, and the sequence numbers of each of its partitions.

    No method waits, and none is thread-safe: call them in the sender's pass or while no pass runs.
    """

    def __init__(self) -> None:
        self.producer_id = -1
        self.producer_epoch = -1
        self._partitions: dict[tuple[str, int], PartitionSequences] = {}

    @property
    def pending(self) -> Pending[Any] | None:
        """The answer that the next step waits for."""
        return None

    @property
    def has_duties(self) -> bool:
        """True if there are requests to make besides produce requests."""
        return False

    @property
    def is_due(self) -> bool:
        """True if batches wait for a request that can be made now."""
        return False

    @property
    def doom(self) -> Exception | None:
        """The error for unsent records once they must not be sent any more; None before that."""
        return None

    @property
    def may_send(self) -> bool:
        """True if batches can be numbered."""
        return self.producer_id >= 0

    def produce_version(self, _node_id: int) -> int | None:
        """Return the version of produce requests; None for the newest that the node knows."""
        return None

    def advance(self, now_ms: int) -> int | None:
        """Make the next step towards `may_send`.

        Return the milliseconds until time makes another step useful; None if it never does.
        """
        raise AssertionError(self)

    def may_drain(self, batch: ProducerBatch) -> bool:
        """Return whether `batch`, the first of its queue, may be sent now."""
        raise AssertionError(self)

    def may_retry(self, batch: ProducerBatch, error: KafkaError) -> bool:
        """Return whether sending again helps, for an error about sequences."""
        raise AssertionError(self)

    def gave_up(self, batch: ProducerBatch, error: Exception) -> Exception:
        """Note that the batch failed, and is not sent again; return the error for the user."""
        raise AssertionError(self)

    def number(self, batch: ProducerBatch) -> None:
        """Number a drained batch, unless an earlier attempt has done so."""
        batch.is_on_wire = True
        if batch.base_sequence >= 0:
            return
        key = (batch.topic, batch.partition)
        sequences = self._partitions.get(key)
        if sequences is None:
            sequences = PartitionSequences(self.producer_id, self.producer_epoch)
            self._partitions[key] = sequences
        elif not sequences.is_of(self):
            sequences.restart(self.producer_id, self.producer_epoch)
        batch.set_producer(self.producer_id, self.producer_epoch, sequences.next_sequence)
        sequences.next_sequence = after(batch)
        sequences.in_flight.append(batch)

    def acknowledged(self, batch: ProducerBatch) -> None:
        sequences = self._partitions.get((batch.topic, batch.partition))
        if sequences is None or batch not in sequences.in_flight:
            return
        slot = sequences.in_flight.index(batch)
        del sequences.in_flight[slot]
        for earlier in sequences.in_flight[:slot]:
            earlier.overtaken_count += 1
        last = (after(batch) - 1) & _SEQUENCE_MASK
        # Not `>`: numbers begin at 0 again after 2^31.
        if sequences.last_acked < 0 or (last - sequences.last_acked) & _SEQUENCE_MASK < _HALF:
            sequences.last_acked = last

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Divide the numbers of a split batch among its parts."""
        sequences = self._partitions.get((batch.topic, batch.partition))
        if sequences is None or batch not in sequences.in_flight:
            return
        sequence = batch.base_sequence
        for part in parts:
            part.set_producer(*batch.numbers[:2], sequence)
            sequence = after(part)
        slot = sequences.in_flight.index(batch)
        sequences.in_flight[slot : slot + 1] = parts

    def _has_turn(self, batch: ProducerBatch) -> bool:
        """Return whether the order of numbers lets `batch`, the first of its queue, be sent now."""
        sequences = self._partitions.get((batch.topic, batch.partition))
        if sequences is None:
            return True
        if batch.base_sequence >= 0:
            # A retry: only the oldest batch without an outcome may be sent.
            return sequences.in_flight[0] is batch
        if sequences.unresolved_end >= 0:
            return False
        return not sequences.in_flight or (
            (sequences.last_acked >= 0 or self._is_first_checked)
            and sequences.has_room
            and sequences.is_of(self)
        )

    @property
    def _is_first_checked(self) -> bool:
        """True if a broker refuses a new producer or epoch whose first number is not 0."""
        return False


def after(batch: ProducerBatch) -> int:
    """Return the number after the batch's last record."""
    return (batch.base_sequence + batch.record_count) & _SEQUENCE_MASK
