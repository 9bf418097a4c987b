"""One followed partition: its part of a fetch, and the changes of its log after the answer."""

from __future__ import annotations

from embedlog import errors
from embedlog.storage.replica.append import append_as_follower
from embedlog.storage.replica.truncation import truncate_fully_and_start_at, truncate_to
from wire.schemas.fetch import FetchPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import Buffer
    from embedlog.replication.partition import Partition

UNDEFINED = -1
_FIRST_DELAY_MS = 5


class FollowedPartition:
    """A partition that follows one leader in one term. Only its fetcher uses it, without a lock.

    It changes the log under the partition's lock, and only while the partition still follows that
    leader in that term.
    """

    __slots__ = (
        "_delay_ms",
        "_has_begun",
        "_sent_offset",
        "delayed_until_ms",
        "is_throttled",
        "key",
        "leader",
        "leader_epoch",
        "partition",
        "topic_id",
    )

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.topic_id = partition.topic_id
        self.key = (partition.topic_id, partition.index)
        self.leader = partition.state.leader
        self.leader_epoch = partition.leader_epoch
        self.delayed_until_ms = 0
        self.is_throttled = False
        """Whether the throttle delays the partition."""
        self._delay_ms = 0
        self._has_begun = False
        self._sent_offset = UNDEFINED

    def begin(self) -> None:
        """Prepare the log for fetching: after this call, fetch from its end.

        A call after a successful one does nothing. Epochs without records are removed, because the
        leader may not know them. A log without epochs may diverge from the leader's log anywhere
        after its own high watermark, so it is truncated to the high watermark.

        Raises:
            KafkaStorageError: the disk refuses; fetch nothing before a later call succeeds.
        """
        log = self.partition.log
        with self.partition.lock:
            if self._has_begun or not self.is_current():
                return
            try:
                log.epochs.truncate_from_end(log.log_end_offset)
            except errors.KafkaStorageError:
                if log.failure is not None:
                    raise
                # The disk is full: without new records the follower stays in sync, and the first
                # append stores the epochs.
            if log.epochs.latest == UNDEFINED:
                truncate_to(log, log.offsets.high_watermark)
            self._has_begun = True

    def is_current(self) -> bool:
        """Return whether the partition still follows this leader in this term.

        Requires: the partition's lock.
        """
        partition = self.partition
        return (
            not partition.is_leader
            and not partition.retired_with
            and partition.leader_epoch == self.leader_epoch
            and partition.leader == self.leader
        )

    def asked(self, max_bytes: int) -> FetchPartition:
        partition = self.partition
        log = partition.log
        self._sent_offset = log.log_end_offset
        return FetchPartition(
            partition=partition.index,
            current_leader_epoch=self.leader_epoch,
            fetch_offset=self._sent_offset,
            last_fetched_epoch=log.epochs.latest,
            log_start_offset=log.offsets.log_start_offset,
            partition_max_bytes=max_bytes,
        )

    def append(
        self, records: Buffer, *, high_watermark: int, log_start_offset: int, now_ms: int
    ) -> bool:
        """Append the leader's records and take over its offsets.

        Return whether the high watermark or the log start offset has changed. On `fsync` topics the
        records are synced on return. `now_ms` is wall time.

        Raises:
            KafkaError: `append_as_follower` refuses the records.
        """
        partition = self.partition
        log = partition.log
        with partition.lock:
            if not self.is_current() or log.log_end_offset != self._sent_offset:
                return False
            before = log.offsets.high_watermark, log.offsets.log_start_offset
            if memoryview(records).nbytes:
                append_as_follower(log, records, leader_epoch=self.leader_epoch, now_ms=now_ms)
            log.offsets.follow(high_watermark)
            if log_start_offset > log.offsets.log_start_offset:
                log.offsets.increment_log_start_offset(
                    min(log_start_offset, log.offsets.high_watermark)
                )
            has_moved = before != (log.offsets.high_watermark, log.offsets.log_start_offset)
        if partition.syncs:
            log.durability.sync(log.log_end_offset)
        return has_moved

    @property
    def was_asked(self) -> bool:
        """Whether a fetch of this term has named the partition. Answers to earlier fetches must be
        ignored."""
        return self._sent_offset != UNDEFINED

    def next_delay_ms(self, longest_ms: int) -> int:
        """Return the delay while the leader does not know its term yet; it doubles at each call."""
        self._delay_ms = min(max(2 * self._delay_ms, _FIRST_DELAY_MS), longest_ms)
        return self._delay_ms

    def has_moved_on(self) -> bool:
        """Return whether the end of the log has changed since the last fetch request."""
        return self.partition.log.log_end_offset != self._sent_offset

    def truncate(self, epoch: int, end_offset: int) -> None:
        """Truncate a diverging log; the leader has answered that `epoch` ends at `end_offset`.

        If the log still diverges, the answer to the next fetch truncates it further.

        Raises:
            KafkaStorageError: the disk refuses.
        """
        log = self.partition.log
        with self.partition.lock:
            if not self.is_current():
                return
            truncate_to(log, self._parting_offset(epoch, end_offset))

    def _parting_offset(self, epoch: int, end_offset: int) -> int:
        log = self.partition.log
        end = log.log_end_offset
        if end_offset == UNDEFINED:
            return min(log.offsets.high_watermark, end)
        if epoch == UNDEFINED:
            return min(end_offset, end)
        own_epoch, own_end = log.epochs.end_offset_for(epoch)
        if own_end == UNDEFINED:
            return min(end_offset, end)
        if own_epoch != epoch:
            return min(own_end, end)
        return min(own_end, end_offset, end)

    def truncate_behind(self, leader_end_offset: int) -> bool:
        """Truncate the log to the leader's end; return whether the log was longer."""
        log = self.partition.log
        with self.partition.lock:
            if not self.is_current() or leader_end_offset >= log.log_end_offset:
                return False
            truncate_to(log, leader_end_offset)
            return True

    def start_at(self, leader_start_offset: int) -> None:
        """If this log ends before the leader's first offset, empty it and begin at that offset."""
        log = self.partition.log
        with self.partition.lock:
            if self.is_current() and leader_start_offset > log.log_end_offset:
                truncate_fully_and_start_at(log, leader_start_offset)

    def __repr__(self) -> str:
        return f"<{self.partition.topic_partition} of leader {self.leader}@{self.leader_epoch}>"


def is_failed(followed: FollowedPartition, error: Exception) -> bool:
    """Return whether the log has failed for good, so that fetching into it is pointless."""
    return (
        isinstance(error, errors.KafkaStorageError) and followed.partition.log.failure is not None
    )
