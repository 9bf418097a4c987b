"""The offsets of a log up to which each promise holds, except for the synced offset.

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
    """The offsets of one log. Moved under the partition lock, read by anyone without one.

    Offsets that the checkpoints keep are stored before the log acts on them.
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
        """`checkpoint` stores every log's offsets. `is_replicated`: see `LogManager`."""
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark
        self.cleaned_offset = -1
        """Compaction has seen the records below; -1 for never."""
        self.gaps_below = 0
        """Offsets below need not be contiguous, see `gaps`."""
        self.is_replicated = is_replicated
        self.published: PublishedOffset | None = None
        """Stores the high watermark for other processes, if the files do not show it."""
        self._topic_partition = topic_partition
        self._chain = chain
        self._durability = durability
        self._transactions = transactions
        self._epochs = epochs
        self._health = health
        self._checkpoint = checkpoint

    @property
    def last_stable_offset(self) -> int:
        """The end for read_committed readers: before the first open transaction.

        Never below the log start offset, even if records of an open transaction were deleted.
        """
        unstable = self._transactions.first_unstable_offset
        high_watermark = self.high_watermark
        if unstable is None or unstable > high_watermark:
            return high_watermark
        start = self.log_start_offset
        return unstable if unstable > start else start

    # Moving them. Requires: the partition lock

    def commit(self, synced_only: bool) -> None:
        """Raise the high watermark to the log's end, or to the synced offset."""
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

    def commit_to(self, offset: int) -> None:
        """Raise the high watermark to `offset`, which every counting replica has."""
        if offset > self.high_watermark:
            self.follow(offset)

    def follow(self, offset: int) -> bool:
        """Take over a leader's high watermark, kept within the log; return whether it changed."""
        has_changed = self.update_high_watermark(offset)
        if self.published is not None and self.published.offset != self.high_watermark:
            self.published.publish(self.high_watermark)
        return has_changed

    def update_high_watermark(self, offset: int) -> bool:
        """Set the high watermark, kept within the log; return whether it changed."""
        bounded = self._chain.segments[-1].end[0]
        if offset < bounded:
            bounded = offset if offset > self.log_start_offset else self.log_start_offset
        if bounded == self.high_watermark:
            return False
        if self._transactions.first_unstable_offset is not None:
            self._transactions.forget_below(bounded, bounded)
        # Last: after an interrupt before this line the next call repeats everything.
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
        """Allow gaps below `offset`, and store that before there are any."""
        former = self.gaps_below
        self.gaps_below = max(former, offset)
        try:
            self.checkpoint()
        except errors.KafkaStorageError:
            self.gaps_below = former
            raise

    def before_truncation(self, offset: int) -> None:
        """Promise less before a truncation: a crash during it must not look like rot.

        Requires: the sync lock as well: a sync under way must not promise records that go.
        """
        self._durability.promise_less(offset)
        self.cleaned_offset = min(self.cleaned_offset, offset)
        self.checkpoint()

    def keep_with(self, checkpoint: Callable[[], object]) -> None:
        """Store the offsets with another directory's from now on, where the log has moved."""
        self._checkpoint = checkpoint

    def checkpoint(self) -> None:
        """Store the offsets of every log."""
        try:
            self._checkpoint()
        except OSError as error:
            raise self._health.refused(error) from error
