"""The values of a partition's producer state: entries, their batches, transactions, updates."""

from __future__ import annotations

from embedlog.common import Value, item

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1

BATCHES_KEPT = 5
"""A client has at most five requests in flight, so a retry is one of the last five batches."""

SEQUENCE_COUNT = 1 << 31


def last_sequence(base_sequence: int, last_offset_delta: int) -> int:
    """Return the sequence of a batch's last record (0 follows 2^31-1), -1 if it has none."""
    if base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return (base_sequence + last_offset_delta) % SEQUENCE_COUNT


class CachedBatch(tuple[int, int, int, int]):
    """One of a producer's last batches: the fields that recognise a retry.

    A tuple, because every append makes one.
    """

    __slots__ = ()

    last_sequence: int = item(0)
    last_offset: int = item(1)
    offset_delta: int = item(2)
    timestamp: int = item(3)

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        """The sequence of the batch's first record, -1 without one."""
        if self.last_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.last_sequence - self.offset_delta) % SEQUENCE_COUNT

    def __repr__(self) -> str:
        return (
            f"CachedBatch(sequences={self.first_sequence}..{self.last_sequence}, "
            f"offsets={self.base_offset}..{self.last_offset}, timestamp={self.timestamp})"
        )


class ProducerStateEntry:
    """The state of one producer id in one partition. Never changed: an append replaces it."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "next_sequence",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        *,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        batches: tuple[CachedBatch, ...] = (),
        coordinator_epoch: int = -1,
        last_timestamp: int = -1,
        current_txn_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.batches = batches
        """The producer's last batches, at most five, oldest first, all of `producer_epoch`."""
        self.coordinator_epoch = coordinator_epoch
        """Epoch of the transaction coordinator that wrote the last marker, -1 for none."""
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset
        """The first offset of the open transaction, -1 without one."""
        self.next_sequence = (self.last_sequence + 1) % SEQUENCE_COUNT
        """The first sequence of the next batch of `producer_epoch`."""

    def with_batch(
        self,
        *,
        epoch: int,
        sequence: int,
        last_offset: int,
        offset_delta: int,
        timestamp: int,
        transaction_start: int,
    ) -> ProducerStateEntry:
        last = last_sequence(sequence, offset_delta)
        kept = self.batches[1 - BATCHES_KEPT :] if self.producer_epoch == epoch else ()
        # Do not call the constructor: its keywords would take longer than the rest of this method.
        entry = _new(ProducerStateEntry)
        entry.producer_id = self.producer_id
        entry.producer_epoch = epoch
        entry.batches = (*kept, CachedBatch((last, last_offset, offset_delta, timestamp)))
        entry.coordinator_epoch = self.coordinator_epoch
        entry.last_timestamp = timestamp
        entry.current_txn_first_offset = transaction_start
        entry.next_sequence = (last + 1) % SEQUENCE_COUNT
        return entry

    @property
    def last_sequence(self) -> int:
        """The last sequence written, -1 if no batch is known."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        """The offset of the last record written, -1 if no batch is known."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def find_duplicate(self, epoch: int, base_sequence: int, last: int) -> CachedBatch | None:
        """Return the known batch of this epoch with exactly these first and last sequences."""
        if epoch != self.producer_epoch:
            return None
        for batch in self.batches:
            if batch.last_sequence == last and batch.first_sequence == base_sequence:
                return batch
        return None

    def __repr__(self) -> str:
        return (
            f"ProducerStateEntry({self.producer_id}, producer_epoch={self.producer_epoch}, "
            f"batches={list(self.batches)}, coordinator_epoch={self.coordinator_epoch}, "
            f"last_timestamp={self.last_timestamp}, "
            f"current_txn_first_offset={self.current_txn_first_offset})"
        )


_new = object.__new__


class VerificationState:
    """The leader's knowledge of a producer when the coordinator began to verify its append.

    If a marker replaces the producer's entry before the append, the append is refused.
    `supports_epoch_bump` marks a client of transactions version 2, which starts at sequence 0.
    """

    __slots__ = ("entry", "is_open", "supports_epoch_bump")

    def __init__(
        self,
        *,
        supports_epoch_bump: bool,
        entry: ProducerStateEntry | None = None,
        is_open: bool = False,
    ) -> None:
        self.supports_epoch_bump = supports_epoch_bump
        self.entry = entry
        """The producer's entry when the verification began, None if there was none.

        Each append or marker of the producer replaces the entry in the partition's state.
        """
        self.is_open = is_open
        """True if the transaction was open in this log already: no verification is needed."""


class CompletedTransaction(Value):
    """A transaction that has ended; its marker is at `last_offset`."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class Duplicate:
    """The offsets and timestamp of a batch that was written before and is sent again.

    The produce request succeeds with these values.
    """

    __slots__ = ("base_offset", "last_offset", "timestamp")

    def __init__(self, batch: CachedBatch) -> None:
        self.base_offset = batch.base_offset
        self.last_offset = batch.last_offset
        self.timestamp = batch.timestamp


class ProducerUpdate:
    """The producer's entry once a batch is written, and the transaction that the batch ends."""

    __slots__ = ("completed", "entry")

    def __init__(
        self, entry: ProducerStateEntry, completed: CompletedTransaction | None = None
    ) -> None:
        self.entry = entry
        self.completed = completed
