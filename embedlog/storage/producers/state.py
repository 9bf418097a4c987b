"""The state of each producer in a partition: idempotence, transactions, the last stable offset.

    a leader's append                              a follower's append, recovery
    update = manager.prepare(batch, ...)           manager.replay(batch)
    ... write the batch ...
    aborted = manager.apply(update)

`prepare` changes nothing, so a failed write leaves the state as it was. `checks` has the rules.
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

    from embedlog.storage.validation.validated_batch import GoodBatch
    from wire.records.batch import RecordBatch


PRODUCER_COUNT_MAX = 10_000
"""By default at most this many producers are remembered; each takes half a kilobyte."""


class ProducerStateManager:
    """The producer state of one partition. Every call requires the partition lock.

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
        """Remember at most `count_max` producers; see `_forget_oldest`."""
        self.count_max = count_max
        self.expiration_ms = expiration_ms
        self._checks = ProducerChecks(name)
        self._entries: dict[int, ProducerStateEntry] = {}
        # First offset of each open transaction -> its producer. A transaction starts at the log's
        # end, so insertion order is offset order.
        self._open: dict[int, int] = {}
        # First offset -> ended transaction whose marker may lie above the high watermark. Until the
        # marker is replicated, the last stable offset stays below the transaction. Transactions end
        # in any order, and each append needs the one with the lowest offset, so this is an ordered
        # map once it has an entry.
        self._completed: dict[int, CompletedTransaction] = {}
        # (producer id, epoch) -> the lowest base sequence of batches whose verification began since
        # the producer's last append. The batch with that sequence must be written first, so a
        # higher sequence is refused. The epoch is part of the key, so that a zombie producer cannot
        # block its successor.
        self._lowest_sequences: dict[tuple[int, int], int] = {}

    # Reading

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerStateEntry]:
        return iter(list(self._entries.values()))

    def get(self, producer_id: int) -> ProducerStateEntry | None:
        return self._entries.get(producer_id)

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, supports_epoch_bump: bool
    ) -> VerificationState:
        """Begin the coordinator's verification of a transactional append.

        Return the state that the append must give to `prepare`. If its `is_open` is True, no
        verification is needed. `sequence` is the batch's first one, -1 for none.

        Raises:
            InvalidProducerEpoch: a later epoch of the producer was seen here.
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
        entry = self._entries.get(producer_id)
        return (
            entry is not None
            and entry.current_txn_first_offset != NO_OFFSET
            and entry.producer_epoch == producer_epoch
        )

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the first offset of the first transaction that is undecided, or None.

        A transaction is decided once its marker lies below `high_watermark`. The last stable offset
        is the smaller of the returned offset and the high watermark. This call forgets decided
        transactions, so `high_watermark` must not fall between calls.
        """
        if self._completed:
            self.forget_transactions_below(high_watermark)
        if not self._completed:
            return next(iter(self._open), None)
        return min(next(iter(self._completed)), next(iter(self._open), 1 << 63))

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """Return the last stable offset after `completed`, for the transaction index.

        It is the start of the oldest other open transaction; if there is none, the offset after the
        marker.
        """
        for first_offset, producer_id in self._open.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    # Appending

    def prepare(
        self,
        batch: GoodBatch | RecordBatch,
        *,
        first_offset: int,
        origin: int,
        verification: VerificationState | None = None,
    ) -> Duplicate | ProducerUpdate | None:
        """Check a data batch that would start at `first_offset`. Change nothing.

        Return the update to apply once the batch is written, the earlier batch that it repeats, or
        None for a batch without a producer id. A batch of origin REPLICATION is never refused.

        Raises:
            InvalidProducerEpoch: the producer was fenced by a later epoch.
            OutOfOrderSequenceNumber: a batch before this one is missing.
            InvalidTxnState: a plain batch of a producer with an open transaction.
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
        """Check an end-of-transaction marker that would lie at `offset`. Change nothing.

        Return the update to apply once the marker is written. With `transaction_version` 2 the
        coordinator raised the epoch for this marker: then an equal epoch is a retry, accepted only
        if no transaction is open (KAFKA-19999).

        Raises:
            InvalidProducerEpoch: the marker's epoch is too old.
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
        # A marker of a transaction without records concerns no reader, so it completes nothing.
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
        """Apply a prepared update after its batch was written.

        Return the transaction index's entry if the update aborts a transaction.
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
        """Apply a batch that is in the log already, or that the leader has checked.

        Return the transaction index's entry if the batch aborts a transaction. Requires: the caller
        has verified the CRC.
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
        """Apply a marker that compaction has emptied: its epoch still fences older producers."""
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
        """Forget the producers that have not written for longest: the surplus and a tenth more.

        Kafka forgets by age alone, so a peer that makes up producer ids fills its memory for a day.
        Refusing new ids would let that peer shut everybody out instead. A forgotten producer loses
        little: its next batch is accepted, and only a retry of a batch that lies thousands of
        producers back is written twice. The order is by offsets, because a client chooses its
        timestamps. These are kept whatever their number: producers whose entry only fences, and
        producers with an open transaction. The latest writer is kept as well.
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
        """Forget everything, before the log is replayed or restarts empty."""
        self._entries.clear()
        self._open.clear()
        self._completed.clear()
        self._lowest_sequences.clear()

    def forget_transactions_below(self, offset: int) -> None:
        """Forget ended transactions whose marker lies below `offset`.

        `offset` is the high watermark, or the log start offset if that has changed.
        """
        decided = [
            first_offset
            for first_offset, transaction in self._completed.items()
            if transaction.last_offset < offset
        ]
        for first_offset in decided:
            del self._completed[first_offset]

    def restore(self, entries: Iterable[ProducerStateEntry], now_ms: int) -> None:
        """Replace the state by the `entries` that have not expired at `now_ms`."""
        entries = sorted(entries, key=lambda entry: entry.current_txn_first_offset)
        self.truncate()
        for entry in entries:
            self._entries[entry.producer_id] = entry
            if entry.current_txn_first_offset != NO_OFFSET:
                self._open[entry.current_txn_first_offset] = entry.producer_id
        self.expire(now_ms)
        if len(self._entries) > self.count_max:
            self._forget_oldest()


def read_marker(batch: RecordBatch) -> tuple[bool, int, int] | None:
    """Return (committed, coordinator epoch, timestamp) of a control batch that ends a transaction.

    Return None for control records of other types, and for a batch that compaction has emptied.

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


def _ordered_map() -> dict[int, CompletedTransaction]:
    """Return an empty map that iterates in key order. Only this call pays for the import, 9 ms."""
    from sortedcontainers import SortedDict

    made: dict[int, CompletedTransaction] = SortedDict()
    return made
