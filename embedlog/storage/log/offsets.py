"""The offsets of a log: where it begins, and how far it is committed, stable and compacted.

The synced offset is in `LogDurability`.

log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset
                                          synced_offset  <= log_end_offset
"""

from __future__ import annotations

from embedlog import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.common import TopicPartition
    from embedlog.storage.log.durability import LogDurability
    from embedlog.storage.log.epochs import LogEpochs
    from embedlog.storage.log.transactions import LogTransactions
    from embedlog.storage.log_health import LogHealth
    from embedlog.storage.segments.chain import SegmentChain
    from embedlog.storage.state_files.published_offset import PublishedOffset


class LogOffsets:
    """The offsets of one log. Change them under the partition lock; reads need no lock.

    A new start offset, or a new limit of gaps, is stored in the checkpoint before it takes effect.
    """

    __slots__ = (
        "_chain",
        "_checkpoint",
        "_durability",
        "_epochs",
        "_health",
        "_topic_partition",
        "_transactions",
        "cleaned_offset",
        "gaps_below",
        "high_watermark",
        "is_replicated",
        "log_start_offset",
        "published",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        chain: SegmentChain,
        durability: LogDurability,
        transactions: LogTransactions,
        epochs: LogEpochs,
        health: LogHealth,
        log_start_offset: int,
        high_watermark: int,
        checkpoint: Callable[[], object],
        is_replicated: bool,
    ) -> None:
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark
        self.cleaned_offset = -1
        """Compaction has processed all records below this offset; -1 if it has never run."""
        self.gaps_below = 0
        """Below this offset, offsets need not be contiguous; see `log/gaps.py`."""
        self.is_replicated = is_replicated
        self.published: PublishedOffset | None = None
        """The file with the high watermark, for other processes; None if it is always the end."""
        self._topic_partition = topic_partition
        self._chain = chain
        self._durability = durability
        self._transactions = transactions
        self._epochs = epochs
        self._health = health
        self._checkpoint = checkpoint

    @property
    def last_stable_offset(self) -> int:
        """The end for read_committed readers: the first undecided transaction, or the watermark.

        Never below the log start offset, even if records of an open transaction were deleted.
        """
        unstable = self._transactions.first_unstable_offset
        high_watermark = self.high_watermark
        if unstable is None or unstable > high_watermark:
            return high_watermark
        start = self.log_start_offset
        return unstable if unstable > start else start

    # Changing the offsets. Requires: the partition lock

    def commit(self, synced_only: bool) -> None:
        """Raise the high watermark to the log's end; with `synced_only` to the synced offset."""
        end = self._chain.segments[-1].end[0]
        if synced_only and self._durability.synced_offset < end:
            end = self._durability.synced_offset
        if end > self.high_watermark:
            if self._transactions.first_unstable_offset is None:
                self.high_watermark = end
            else:
                self.update_high_watermark(end)
        if self.published is not None and self.published.offset != self.high_watermark:
            self.published.publish(self.high_watermark)

    def publish(self) -> None:
        """Store the high watermark for other processes if the file has another one."""
        if self.published is not None and self.published.offset != self.high_watermark:
            self.published.publish(self.high_watermark)

    def commit_to(self, offset: int) -> None:
        """Raise the high watermark to `offset`, if that is higher: the replicas have it."""
        if offset > self.high_watermark:
            self.follow(offset)

    def follow(self, offset: int) -> bool:
        """Set the high watermark and publish it; return whether it changed.

        `offset`, from a leader or this broker's replicas, is bounded by the log's start and end.
        """
        has_changed = self.update_high_watermark(offset)
        self.publish()
        return has_changed

    def update_high_watermark(self, offset: int) -> bool:
        """Set the high watermark to `offset`, bounded by the log's start and end.

        Return whether it changed. It is not published.
        """
        bounded = self._chain.segments[-1].end[0]
        if offset < bounded:
            bounded = offset if offset > self.log_start_offset else self.log_start_offset
        if bounded == self.high_watermark:
            return False
        if self._transactions.first_unstable_offset is not None:
            self._transactions.forget_below(bounded, bounded)
        # Last: if an interrupt comes before this line, the next call repeats everything.
        self.high_watermark = bounded
        return True

    def increment_log_start_offset(self, offset: int) -> bool:
        """Hide the records below `offset`; return whether anything changed.

        Raises:
            OffsetOutOfRange: `offset` is above the high watermark.
            KafkaStorageError: the disk refuses to store the offset; nothing has changed.
        """
        if offset > self.high_watermark:
            raise errors.OffsetOutOfRange(
                f"Cannot increment the log start offset to {offset} of partition "
                f"{self._topic_partition} since it is larger than the high watermark "
                f"{self.high_watermark}"
            )
        if offset <= self.log_start_offset:
            return False
        former, self.log_start_offset = self.log_start_offset, offset
        try:
            self.checkpoint()
        except errors.KafkaStorageError:
            self.log_start_offset = former
            raise
        self._epochs.truncate_from_start(offset)
        self._transactions.forget_below(offset, self.high_watermark)
        return True

    def allow_gaps_below(self, offset: int) -> None:
        """Allow gaps below `offset`, and store that in the checkpoint before any gap is made."""
        former = self.gaps_below
        self.gaps_below = max(former, offset)
        try:
            self.checkpoint()
        except errors.KafkaStorageError:
            self.gaps_below = former
            raise

    def before_truncation(self, offset: int) -> None:
        """Lower the stored offsets before records from `offset` on are removed.

        Otherwise a crash during the truncation would look like rot. Requires: the sync
        lock as well, because a sync would raise the synced offset above `offset` again.
        """
        self._durability.promise_less(offset)
        self.cleaned_offset = min(self.cleaned_offset, offset)
        self.checkpoint()

    def keep_with(self, checkpoint: Callable[[], object]) -> None:
        """Store the offsets by `checkpoint` from now on: the log has moved to another directory."""
        self._checkpoint = checkpoint

    def checkpoint(self) -> None:
        try:
            self._checkpoint()
        except OSError as error:
            raise self._health.refused(error) from error
