"""The producers of a log and their transactions.

    producers               each producer's last batches, and its open transaction
    first_unstable_offset   the first record of a transaction whose outcome is not yet replicated:
                            the last stable offset does not pass it
    aborted                 the transactions that a read_committed reader leaves out; the segment
                            that holds a transaction's control batch keeps the transaction

All of this is computed from the batches below `applied_offset`.
"""

from __future__ import annotations

from embedlog.errors import KafkaStorageError
from embedlog.storage.producers.append import judge_marker, load_aborted, load_producers
from embedlog.storage.producers.entry import NO_OFFSET, ProducerUpdate
from embedlog.storage.segments.segment import Segment, segments_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.log_health import LogHealth
    from embedlog.storage.producers.state import ProducerStateManager
    from embedlog.storage.segments.chain import SegmentChain
    from embedlog.storage.segments.indexes.transaction import AbortedTransaction, TransactionIndex
    from embedlog.storage.validation.validated_batch import GoodBatch
    from wire.records.batch import RecordBatch


class LogTransactions:
    """The transactions of one log. Change them under the partition lock.

    Any thread may read the aborted transactions, without a lock.
    """

    __slots__ = ("_chain", "_health", "applied_offset", "first_unstable_offset", "producers")

    def __init__(
        self,
        producers: ProducerStateManager,
        chain: SegmentChain,
        health: LogHealth,
        high_watermark: int,
    ) -> None:
        self.producers = producers
        self.applied_offset = chain.end_offset
        """All batches below this offset are applied. -1 during a reload and after a failed one."""
        self.first_unstable_offset = producers.first_unstable_offset(high_watermark)
        """None if every transaction has ended below the high watermark."""
        self._chain = chain
        self._health = health

    # Following the batches. Requires: the partition lock

    def judge(
        self, batch: GoodBatch, first_offset: int, origin: int, transaction_version: int
    ) -> ProducerUpdate | None:
        """Return the update that a control batch at `first_offset` would make; change nothing."""
        return judge_marker(
            self.producers,
            batch,
            first_offset=first_offset,
            origin=origin,
            transaction_version=transaction_version,
        )

    def apply(self, update: ProducerUpdate, high_watermark: int) -> None:
        """Apply the update of a published batch."""
        aborted = self.producers.apply(update)
        if aborted is not None:
            self._chain.segments[-1].aborted.note(aborted)
        if (
            self.first_unstable_offset is not None
            or update.entry.current_txn_first_offset != NO_OFFSET
        ):
            self.first_unstable_offset = self.producers.first_unstable_offset(high_watermark)

    def replay(self, batch: RecordBatch, high_watermark: int) -> None:
        """Apply a published batch that was checked by the leader that wrote it."""
        if batch.producer_id >= 0:
            aborted = self.producers.replay(batch)
            if aborted is not None:
                self._chain.segments[-1].aborted.note(aborted)
            self.first_unstable_offset = self.producers.first_unstable_offset(high_watermark)
        self.applied_offset = batch.next_offset

    def forget_below(self, offset: int, high_watermark: int) -> None:
        """Forget the transactions that ended below `offset`; update `first_unstable_offset`."""
        self.producers.forget_transactions_below(offset)
        self.first_unstable_offset = self.producers.first_unstable_offset(high_watermark)

    def reload(self, log_start_offset: int, high_watermark: int, now_ms: int) -> None:
        """Rebuild the state from the last good snapshot and the batches after it.

        `now_ms` is wall time.
        """
        end = self._chain.end_offset
        self.applied_offset = -1
        try:
            load_producers(
                self._chain.files,
                self._chain.directory,
                self._chain.segments,
                self.producers,
                log_end_offset=end,
                log_start_offset=log_start_offset,
                now_ms=now_ms,
            )
        except OSError as error:
            raise self._health.refused(error) from error
        self.first_unstable_offset = self.producers.first_unstable_offset(high_watermark)
        self.applied_offset = end

    # For read_committed readers. No lock

    def knows_aborted(self, offset: int) -> bool:
        """Whether the aborted transactions of the segment that holds `offset` are in memory.

        If they are not, the next call of `aborted` reads all batches of that segment.
        """
        return self._chain.holding(offset).aborted.index is not None

    def aborted(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that a reader of [start, end) must filter."""
        found: list[AbortedTransaction] = []
        for segment in segments_from(self._chain.segments, start):
            index = segment.aborted.index
            if index is None:
                index = self._load_aborted(segment)
            some, complete = index.collect_aborted(start, end)
            found += some
            if complete:
                break
        return found

    def _load_aborted(self, segment: Segment) -> TransactionIndex:
        while True:
            files, directory = self._chain.files, self._chain.directory
            try:
                return load_aborted(files, directory, self._chain.segments, segment)
            except OSError as error:
                if directory == self._chain.directory:
                    raise KafkaStorageError(f"{directory}: {error}") from error
