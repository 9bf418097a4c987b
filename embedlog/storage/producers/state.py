"""What a partition remembers of each producer: idempotence, transactions, the last stable offset.

    a leader's append                              a follower's append, recovery
    update = manager.prepare(batch, ...)           manager.replay(batch)
    ... write the batch ...
    aborted = manager.apply(update)

`prepare` changes nothing, so a failed write leaves the state as it was. A data batch is anything
with the attributes of `BatchFacts`. `checks` says which are refused.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.storage.producers.checks import ProducerChecks, check_guard
from embedlog.storage.producers.entry import (
    NO_OFFSET,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    CompletedTransaction,
    Duplicate,
    ProducerStateEntry,
    ProducerUpdate,
    VerificationState,
    last_sequence,
)
from embedlog.storage.segments.indexes.transaction import AbortedTransaction
from embedlog.storage.validation.errors import as_kafka_error
from embedlog.storage.validation.origin import AppendOrigin
from wire.records.errors import RecordsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Protocol

    from wire.records.batch import RecordBatch

    class BatchFacts(Protocol):
        """The header fields of a v2 batch that its producer's state depends on."""

        @property
        def producer_id(self) -> int: ...
        @property
        def producer_epoch(self) -> int: ...
        @property
        def base_sequence(self) -> int: ...
        @property
        def last_offset_delta(self) -> int: ...
        @property
        def max_timestamp(self) -> int: ...
        @property
        def is_transactional(self) -> bool: ...


PRODUCER_COUNT_MAX = 10_000
"""Half a kilobyte each."""


class ProducerStateManager:
    """The producer state of one partition. Requires: the partition lock, for every call.

    `expiration_ms` is producer.id.expiration.ms; `name` is the partition, for error messages.
    """

    __slots__ = (
        "_checks",
        "_completed",
        "_entries",
        "_lowest_sequences",
        "_open",
        "count_max",
        "expiration_ms",
    )

    def __init__(
        self, expiration_ms: int, name: object = "", *, count_max: int = PRODUCER_COUNT_MAX
    ) -> None:
        """`count_max` producers are remembered; see `_forget_oldest`."""
        self.count_max = count_max
        self.expiration_ms = expiration_ms
        self._checks = ProducerChecks(name)
        self._entries: dict[int, ProducerStateEntry] = {}
        # First offset of each open transaction -> its producer. A transaction starts at the
        # log's end, so insertion order is offset order.
        self._open: dict[int, int] = {}
        # Transactions that have ended but whose marker may lie above the high watermark, by
        # first offset: until the marker is replicated they hold the last stable offset back.
        # They end in any order, and each append asks for the first: an ordered map from the
        # first one on.
        self._completed: dict[int, CompletedTransaction] = {}
        # Of batches that were to be verified, and after which nothing was appended yet: the lowest
        # first sequence by producer id and epoch. One that comes behind a refused one is refused
        # too, or the log would have a gap. By epoch, so that a zombie shuts nobody out.
        self._lowest_sequences: dict[tuple[int, int], int] = {}

    # Reading

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerStateEntry]:
        return iter(list(self._entries.values()))

    def get(self, producer_id: int) -> ProducerStateEntry | None:
        """The entry of a producer id, None when nothing is known of it."""
        return self._entries.get(producer_id)

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, supports_epoch_bump: bool
    ) -> VerificationState:
        """What guards a transactional append while the coordinator is asked about it.

        It need not be asked where the transaction is open already (`is_open`). `sequence` is the
        batch's first one, -1 for none.

        Raises:
            InvalidProducerEpoch: a later epoch was seen here, whatever the coordinator may say.
        """
        entry = self._entries.get(producer_id)
        if entry is not None and producer_epoch < entry.producer_epoch:
            raise errors.InvalidProducerEpoch(
                f"Epoch of producer {producer_id} in partition {self._checks.name} is "
                f"{producer_epoch}, which is smaller than the last seen epoch "
                f"{entry.producer_epoch}"
            )
        is_open = self.has_open_transaction(producer_id, producer_epoch)
        if not is_open and sequence != NO_SEQUENCE:
            lowest = self._lowest_sequences
            if len(lowest) >= self.count_max:
                del lowest[next(iter(lowest))]
            key = producer_id, producer_epoch
            lowest[key] = min(sequence, lowest.get(key, sequence))
        return VerificationState(
            supports_epoch_bump=supports_epoch_bump, entry=entry, is_open=is_open
        )

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether this producer, at this epoch, has a transaction open here."""
        entry = self._entries.get(producer_id)
        return (
            entry is not None
            and entry.current_txn_first_offset != NO_OFFSET
            and entry.producer_epoch == producer_epoch
        )

    def oldest_open_transaction(self) -> ProducerStateEntry | None:
        """The producer whose transaction has been open for longest, None when none is open."""
        for producer_id in self._open.values():
            return self._entries[producer_id]
        return None

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """The first offset whose transaction is undecided at `high_watermark`, None if none is.

        The last stable offset is the smaller of this and the high watermark. A transaction is
        decided when its marker lies below the high watermark; decided ones are forgotten here,
        so successive calls come with a `high_watermark` that does not fall.
        """
        if self._completed:
            self.forget_transactions_below(high_watermark)
        if not self._completed:
            return next(iter(self._open), None)
        return min(next(iter(self._completed)), next(iter(self._open), 1 << 63))

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """What the transaction index notes beside `completed`: where the log is stable after it.

        That is the start of the oldest other open transaction, else the offset after the marker.
        """
        for first_offset, producer_id in self._open.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    # Appending

    def prepare(
        self,
        batch: BatchFacts,
        *,
        first_offset: int,
        origin: int,
        verification: VerificationState | None = None,
    ) -> Duplicate | ProducerUpdate | None:
        """Judge a data batch that would start at `first_offset`. Changes nothing.

        None means the batch has no producer id and leaves no trace here. `origin` REPLICATION
        is never refused.

        Raises:
            InvalidProducerEpoch: the producer was fenced by a later epoch.
            OutOfOrderSequenceNumber: a batch before this one is missing.
            InvalidTxnState: a plain batch of a producer that has a transaction open.
        """
        producer_id = batch.producer_id
        if producer_id <= NO_PRODUCER_ID:
            return None
        epoch = batch.producer_epoch
        sequence = batch.base_sequence
        delta = batch.last_offset_delta
        entry = self._entries.get(producer_id) or ProducerStateEntry(producer_id)
        is_next = sequence == entry.next_sequence and epoch == entry.producer_epoch
        if not is_next or verification is not None:
            if origin == AppendOrigin.CLIENT:
                known = entry.find_duplicate(epoch, sequence, last_sequence(sequence, delta))
                if known is not None:
                    return Duplicate(known)
            if origin != AppendOrigin.REPLICATION:
                self._checks.check_epoch(entry, epoch, first_offset)
                if verification is not None and batch.is_transactional:
                    check_guard(entry, self._entries.get(producer_id), epoch, verification)
            if origin == AppendOrigin.CLIENT:
                if verification is not None:
                    lowest = self._lowest_sequences.get((producer_id, epoch), sequence)
                    self._checks.check_verified_sequence(
                        entry, sequence, first_offset, verification, lowest=lowest
                    )
                self._checks.check_sequence(entry, epoch, sequence, first_offset)
        transaction_start = entry.current_txn_first_offset
        if batch.is_transactional:
            if transaction_start == NO_OFFSET:
                transaction_start = first_offset
        elif transaction_start != NO_OFFSET and origin != AppendOrigin.REPLICATION:
            raise errors.InvalidTxnState(
                f"Expected transactional write from {self._checks.at(entry, first_offset)}"
            )
        return ProducerUpdate(
            entry.with_batch(
                epoch=epoch,
                sequence=sequence,
                last_offset=first_offset + delta,
                offset_delta=delta,
                timestamp=batch.max_timestamp,
                transaction_start=transaction_start,
            )
        )

    def prepare_marker(
        self,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        committed: bool,
        timestamp: int,
        offset: int,
        origin: int,
        transaction_version: int = -1,
    ) -> ProducerUpdate:
        """Judge an end-of-transaction marker that would lie at `offset`. Changes nothing.

        `transaction_version` 2 says that the coordinator raised the epoch for this marker: an
        equal epoch is then a retry, accepted only when no transaction is open (KAFKA-19999).

        Raises:
            InvalidProducerEpoch: the marker belongs to an epoch that has passed.
            TransactionCoordinatorFenced: a later coordinator wrote a marker before.
        """
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = ProducerStateEntry(producer_id)
        if origin != AppendOrigin.REPLICATION:
            if transaction_version < 2:
                self._checks.check_epoch(entry, producer_epoch, offset)
            else:
                self._checks.check_raised_epoch(entry, producer_epoch, offset)
            if entry.coordinator_epoch > coordinator_epoch:
                raise errors.TransactionCoordinatorFenced(
                    f"Invalid coordinator epoch for {self._checks.at(entry, offset)}: "
                    f"{coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)"
                )
        completed = None
        # A marker without data changes nothing for readers: no index entry, no stable offset.
        if entry.current_txn_first_offset != NO_OFFSET:
            completed = CompletedTransaction(
                producer_id=producer_id,
                first_offset=entry.current_txn_first_offset,
                last_offset=offset,
                is_aborted=not committed,
            )
        updated = ProducerStateEntry(
            producer_id,
            producer_epoch=producer_epoch,
            batches=entry.batches if entry.producer_epoch == producer_epoch else (),
            coordinator_epoch=coordinator_epoch,
            last_timestamp=timestamp,
        )
        return ProducerUpdate(updated, completed)

    def apply(self, update: ProducerUpdate) -> AbortedTransaction | None:
        """Make a prepared update true, after its batch was written.

        Returns what the transaction index must note when the update aborts a transaction.
        """
        entry = update.entry
        self._entries[entry.producer_id] = entry
        if self._lowest_sequences:
            for key in [key for key in self._lowest_sequences if key[0] == entry.producer_id]:
                del self._lowest_sequences[key]
        completed = update.completed
        if completed is None:
            if entry.current_txn_first_offset != NO_OFFSET:
                self._open[entry.current_txn_first_offset] = entry.producer_id
            if len(self._entries) > self.count_max:
                self._forget_oldest()
            return None
        del self._open[completed.first_offset]
        if not self._completed:
            self._completed = _ordered_map()
        self._completed[completed.first_offset] = completed
        if not completed.is_aborted:
            return None
        return AbortedTransaction(
            producer_id=completed.producer_id,
            first_offset=completed.first_offset,
            last_offset=completed.last_offset,
            last_stable_offset=self.last_stable_offset_after(completed),
        )

    def replay(self, batch: RecordBatch) -> AbortedTransaction | None:
        """Take over a batch that lies in the log already, or was checked by the leader.

        Returns what the transaction index must note when the batch aborts a transaction.
        Its bytes are trusted: the caller has verified the CRC.
        """
        if batch.producer_id <= NO_PRODUCER_ID:
            return None
        if batch.is_control:
            marker = read_marker(batch)
            if marker is None:
                if batch.record_count == 0:
                    self._replay_emptied_marker(batch)
                return None
            committed, coordinator_epoch, timestamp = marker
            return self.apply(
                self.prepare_marker(
                    producer_id=batch.producer_id,
                    producer_epoch=batch.producer_epoch,
                    coordinator_epoch=coordinator_epoch,
                    committed=committed,
                    timestamp=timestamp,
                    offset=batch.base_offset,
                    origin=AppendOrigin.REPLICATION,
                )
            )
        update = self.prepare(
            batch, first_offset=batch.base_offset, origin=AppendOrigin.REPLICATION
        )
        assert isinstance(update, ProducerUpdate), update
        return self.apply(update)

    def _replay_emptied_marker(self, batch: RecordBatch) -> None:
        """Of a marker that compaction has emptied the epoch is left, which still fences."""
        entry = self._entries.get(batch.producer_id)
        if entry is None or entry.producer_epoch < batch.producer_epoch:
            self._entries[batch.producer_id] = ProducerStateEntry(
                batch.producer_id,
                producer_epoch=batch.producer_epoch,
                last_timestamp=batch.max_timestamp,
            )

    # Forgetting and keeping

    def expire(self, now_ms: int) -> list[int]:
        """Forget producers idle for `expiration_ms`, and return their ids.

        `now_ms` is wall time, as the timestamps are. An open transaction keeps its producer.
        """
        limit = now_ms - self.expiration_ms
        expired = [
            entry.producer_id
            for entry in self._entries.values()
            if entry.last_timestamp <= limit and entry.current_txn_first_offset == NO_OFFSET
        ]
        for producer_id in expired:
            del self._entries[producer_id]
        return expired

    def _forget_oldest(self) -> None:
        """Forget those who have not written for longest, a tenth more than are too many.

        Kafka forgets by age alone, so a peer that makes up producer ids fills its memory for a day.
        Refusing new ids would let that peer shut everybody out instead. Who is forgotten loses
        little: its next batch is accepted, and only a retry of one that lies thousands of
        producers back is written twice. By offsets: a client chooses its timestamps.
        Producers that fence, or hold the last stable offset, are kept, whatever their number, and
        so is who has just written.
        """
        candidates = sorted(
            (entry.last_data_offset, entry.producer_id)
            for entry in self._entries.values()
            if entry.batches and entry.current_txn_first_offset == NO_OFFSET
        )
        too_many = len(self._entries) - self.count_max
        for _, producer_id in candidates[:-1][: too_many + self.count_max // 10]:
            del self._entries[producer_id]

    def truncate(self) -> None:
        """Forget everything: the log is about to be replayed, or restarts empty."""
        self._entries.clear()
        self._open.clear()
        self._completed.clear()
        self._lowest_sequences.clear()

    def forget_transactions_below(self, offset: int) -> None:
        """Forget ended transactions whose marker lies below `offset`.

        `offset` is the high watermark, or the log start offset when that has moved.
        """
        decided = [
            first_offset
            for first_offset, transaction in self._completed.items()
            if transaction.last_offset < offset
        ]
        for first_offset in decided:
            del self._completed[first_offset]

    def restore(self, entries: Iterable[ProducerStateEntry], now_ms: int) -> None:
        """Replace the state by `entries`, leaving out those expired at `now_ms`."""
        entries = sorted(entries, key=_transaction_start)
        self.truncate()
        for entry in entries:
            self._entries[entry.producer_id] = entry
            if entry.current_txn_first_offset != NO_OFFSET:
                self._open[entry.current_txn_first_offset] = entry.producer_id
        self.expire(now_ms)
        if len(self._entries) > self.count_max:
            self._forget_oldest()


def read_marker(batch: RecordBatch) -> tuple[bool, int, int] | None:
    """(committed, coordinator epoch, timestamp) of a control batch that ends a transaction.

    None for control records of other types, and for a batch that compaction has emptied.

    Raises:
        InvalidRecord: the record is malformed.
    """
    from wire.records.control import control_records, parse_end_transaction_marker

    try:
        record = next(iter(control_records(batch)), None)
        if record is None:
            return None
        marker = parse_end_transaction_marker(record.key, record.value)
    except RecordsError as error:
        raise as_kafka_error(error) from None
    if marker is None:
        return None
    return marker.is_commit, marker.coordinator_epoch, record.timestamp


def _transaction_start(entry: ProducerStateEntry) -> int:
    return entry.current_txn_first_offset


def _ordered_map() -> dict[int, CompletedTransaction]:
    """An empty map that iterates in key order; the package costs 9 ms, so nobody else pays."""
    from sortedcontainers import SortedDict

    made: dict[int, CompletedTransaction] = SortedDict()
    return made
