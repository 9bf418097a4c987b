"""The state of one log and what changes it: offsets, segments, syncing, failing.

`embedlog.storage.log.Log` is this with the operations of a log on top.
"""

from __future__ import annotations

from _bisect import bisect_right
from errno import EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM, ENOSPC

from embedlog import errors
from embedlog.runtime.files import NotOpened
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.storage import events, paths
from embedlog.storage.producers.append import load_producers, write_snapshot
from embedlog.storage.segment import Segment, base_offset_of, segments_from
from embedlog.storage.state_files.sealed_file import write_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.common import TopicPartition
    from embedlog.errors import CorruptRecord
    from embedlog.runtime import Runtime
    from embedlog.runtime.files import Bytes, Files
    from embedlog.storage.log_config import LogConfig
    from embedlog.storage.open_files import OpenFiles
    from embedlog.storage.producers.state import ProducerStateManager
    from embedlog.storage.state_files.leader_epochs import LeaderEpochs
    from wire.records.batch import RecordBatch

SYNC_WINDOW_SIZE = 4 << 20
"""At most this many bytes are written and not synced at durability `fsync`: recovery relies on it
to tell a torn tail from rot (valid data further behind a bad batch proves it had been synced)."""

HARMLESS_ERRORS = (ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM)
"""Something ran short: what was asked for was not done, and may be asked for again."""
NO_DESCRIPTOR = (EMFILE, ENFILE)
"""Of a sync these alone are harmless, whoever raised them: no file was opened, and the kernel asked
for nothing. The others are if `NotOpened` says so."""


class LogState:
    """See `Log`, whose locking rules hold here too."""

    __slots__ = (
        "_applied_offset",
        "_checkpoint",
        "_failure",
        "_first_unstable_offset",
        "_latest_epoch",
        "_memory",
        "_open_files",
        "_runtime",
        "_segment_age_max",
        "_segments",
        "_tell_from_ms",
        "cleaned_offset",
        "config",
        "damage",
        "directory",
        "disk_error",
        "doomed",
        "epochs_dirty",
        "epochs_unsaved",
        "failed_since_ms",
        "gaps_below",
        "high_watermark",
        "is_swapping",
        "leader_epochs",
        "lock",
        "log_start_offset",
        "producers",
        "sync_lock",
        "synced_offset",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        directory: str,
        config: LogConfig,
        runtime: Runtime,
        open_files: OpenFiles,
        segments: Sequence[Segment],
        leader_epochs: LeaderEpochs,
        producers: ProducerStateManager,
        log_start_offset: int,
        high_watermark: int,
        synced_offset: int,
        checkpoint: Callable[[], None],
    ) -> None:
        """Take over loaded state; `checkpoint` stores every log's synced and start offset."""
        assert segments, topic_partition
        self.topic_partition = topic_partition
        self.directory = directory
        self.topic_id: bytes | None = None
        self.epochs_dirty = False
        """Changed since Kafka's text form of the epoch cache was written."""
        self.epochs_unsaved = False
        """The sealed epoch cache still has epochs of records that are gone: it is written later."""
        self.doomed: list[Segment] = []
        """Segments that left the log and whose files are still to be removed, oldest first."""
        self.is_swapping = False
        """Compaction has decided on a new segment and could not yet put it in place."""
        self.cleaned_offset = -1
        """Compaction has seen what lies below; -1 for never."""
        self.gaps_below = 0
        """Offsets below need not be contiguous, see `gaps`."""
        self._runtime = runtime
        self._open_files = open_files
        self._segments: tuple[Segment, ...] = tuple(segments)
        self.leader_epochs = leader_epochs
        self._latest_epoch = leader_epochs.latest_epoch
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark
        self.synced_offset = synced_offset
        """Everything below survives loss of power."""
        self._applied_offset = self.log_end_offset
        self._first_unstable_offset = producers.first_unstable_offset(high_watermark)
        self._failure: BaseException | None = None
        self.failed_since_ms = -1
        self.damage: tuple[int, CorruptRecord] | None = None
        """When a reader came upon rot, as wall time, and which it was."""
        self._tell_from_ms = 0
        self.disk_error: OSError | None = None
        """What the disk last refused a write with; the log may have gone on since."""
        self._checkpoint = checkpoint
        # Re-entrant, so that an interrupt at its release does not lock this thread out for good.
        self.sync_lock = ranked_rlock(Rank.SYNC)
        self.lock = ranked_rlock(Rank.PARTITION)
        """The partition lock."""
        self.configure(config)

    def configure(self, config: LogConfig) -> None:
        """Obey another configuration from the next append on."""
        self.config = config
        active = self._segments[-1]
        active.limits.forget()
        active.file.zeroed = config.durability == "fsync"
        self._memory = config.durability == "memory"
        jitter = min(config.segment_jitter_ms, config.segment_age_ms)
        self._segment_age_max = config.segment_age_ms - (
            self._runtime.random.below(jitter) if jitter > 0 else 0
        )

    def retire(self, reason: BaseException) -> None:
        """Refuse writes from here on; reads of what is published go on."""
        if self._failure is None:
            self._failure = reason
        for segment in self._segments:
            segment.file.release()

    def mark_opened(self, *, recovered: bool, failure: CorruptRecord | None) -> None:
        """End the opening: refuse writes on rot; after an unclean stop begin a leader epoch.

        A reader may have seen records that the crash took. The new epoch tells it so (KIP-320):
        without it, it would read other records at their offsets and not know.
        """
        if failure is not None:
            self._failure, self.failed_since_ms = failure, self.wall_ms()
            return
        end = self.log_end_offset
        if recovered and end > 0 and self._latest_epoch >= 0:
            self.assign_epoch(self._latest_epoch + 1, end)
        if self.config.durability == "fsync":
            # What was recovered must not vanish in the next crash, once somebody has read it.
            try:
                self.flush()
            except errors.KafkaStorageError:
                if self._failure is None:
                    raise
                # The log stays, read-only: a second opening would be told that all is well.

    # Facts

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, oldest first; the last one is appended to."""
        return self._segments

    @property
    def files(self) -> Files:
        """The file system that the log lives on."""
        return self._open_files.files

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._segments[-1].end[0]

    @property
    def last_stable_offset(self) -> int:
        """The end of what a read_committed reader may see.

        Never below the log start offset, also where records of an open transaction were deleted.
        """
        unstable = self._first_unstable_offset
        high_watermark = self.high_watermark
        if unstable is None or unstable > high_watermark:
            return high_watermark
        start = self.log_start_offset
        return unstable if unstable > start else start

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.end[1] for segment in self._segments)

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the last records, -1 for none."""
        return self._latest_epoch

    @property
    def failure(self) -> BaseException | None:
        """Why the log refuses writes; None while it takes them."""
        return self._failure

    def wall_ms(self) -> int:
        """The wall clock's time."""
        return self._runtime.clock.wall_ms()

    def segment_of(self, offset: int) -> Segment:
        """The segment that holds `offset`, or would."""
        segments = self._segments
        return segments[max(0, bisect_right(segments, offset, key=base_offset_of) - 1)]

    # Growing. Requires: the partition lock

    def assign_epoch(self, epoch: int, start_offset: int | None = None) -> None:
        """Note that the leader of `epoch` writes from `start_offset`, the log's end unless given.

        Raises:
            KafkaStorageError: the disk refuses the checkpoint.
        """
        if epoch < 0:
            return
        start = self.log_end_offset if start_offset is None else start_offset
        if self.leader_epochs.assign(epoch, start) or self.epochs_unsaved:
            self.epochs_changed()

    def _lead_in(self, leader_epoch: int) -> int:
        """Note a leader's first append; return the epoch to stamp.

        That is not the leader's when an unclean open began a later one than it was told of.
        """
        if leader_epoch > self._latest_epoch:
            self.assign_epoch(leader_epoch)
        return self._latest_epoch

    def new_segment(self, base_offset: int, now_ms: int | None = None) -> Segment:
        """A segment of this log, not yet on disk and not yet part of it."""
        return Segment(
            self._open_files,
            self.directory,
            base_offset,
            created_ms=self.wall_ms() if now_ms is None else now_ms,
            zeroed=self.config.durability == "fsync",
        )

    def segment_for(
        self, size: int, first_offset: int, last_offset: int, latest: int, now_ms: int
    ) -> Segment:
        """The segment that takes the next `size` bytes, a new one when the present is done."""
        segment = self._segments[-1]
        if self._must_roll(segment, size, last_offset, latest, now_ms):
            segment = self._roll(first_offset, now_ms)
        return segment

    def write(self, segment: Segment, buffers: Sequence[Bytes], size: int) -> None:
        """Write behind the segment's end, publishing nothing. For the appends of this package.

        Raises:
            KafkaStorageError: the disk refuses; the log is as it was, or poisoned.
        """
        if segment.file.zeroed:
            self._keep_window(segment, size)
        try:
            segment.file.write(buffers, size, segment.end[1])
        except OSError as error:
            raise self._write_failed(segment, error) from error

    def _keep_window(self, segment: Segment, size: int) -> None:
        if segment.end[1] + size - segment.synced_size > SYNC_WINDOW_SIZE:
            self.sync(segment.end[0])

    def _write_failed(self, segment: Segment, error: OSError) -> errors.KafkaError:
        error.filename = segment.path  # a call on a descriptor names no file
        try:
            segment.file.cut_to(segment.size)
        except OSError as second:
            if second.errno not in HARMLESS_ERRORS:
                return self.poison(second)
            segment.file.distrust_capacity()
        return self.refused(error)

    def replay(self, batch: RecordBatch) -> None:
        """Bring the producer state up to a published batch that its leader has judged."""
        if batch.producer_id >= 0:
            aborted = self.producers.replay(batch)
            if aborted is not None:
                self._segments[-1].aborted.note(aborted)
            self._first_unstable_offset = self.producers.first_unstable_offset(self.high_watermark)
        self._applied_offset = batch.next_offset

    def _must_roll(
        self, segment: Segment, size: int, last_offset: int, latest: int, now_ms: int
    ) -> bool:
        """Whether a batch needs a new segment; if not, note what fits without asking again."""
        position = segment.end[1]
        return segment.limits.is_reached(
            self.config,
            self._segment_age_max,
            base_offset=segment.base_offset,
            position=position,
            size=size,
            last_offset=last_offset,
            latest=latest,
            now_ms=now_ms,
            entry_count=len(segment.indexes.load(position)[0]) if position else 0,
        )

    def roll(self, now_ms: int | None = None) -> None:
        """Begin a new segment unless the present one is empty."""
        self._check_usable()
        segment = self._segments[-1]
        if segment.size:
            self._roll(segment.end[0], self.wall_ms() if now_ms is None else now_ms)

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        """Finish the present segment and begin one at `base_offset`."""
        former = self._segments[-1]
        if former.size == 0 and former.base_offset == base_offset:
            return former
        segment = self.new_segment(base_offset, now_ms)
        try:
            if not self._memory:
                # Cut to its content before the sync: once it is known to be synced, no recovery
                # looks for the zeros behind it.
                former.finish()
                write_snapshot(self.files, self.directory, self.producers, base_offset)
            is_durable = self.config.durability == "fsync"
            if is_durable or (self.synced_offset >= base_offset and not self._memory):
                # Also when its records are synced: so that the cut is, too; a recovery that begins
                # behind them does not look for zeros. Not beside a group commit: the kernel tells
                # of a failed write once, and one of two would not hear.
                with self.sync_lock:
                    if self._failure is not None:
                        raise self._refusal()
                    self._sync(self.log_end_offset, (former,))
            segment.file.create()
            if is_durable:
                with self.sync_lock:
                    self._do_sync((segment,), _sync_name)
        except OSError as error:
            raise self.refused(error) from error
        self._segments = (*self._segments, segment)
        return segment

    # Durability

    def prepare_sync(self) -> None:
        """Do what a sync needs beside the sync itself, which then fails for a broken disk only.

        Requires: the partition lock.

        Raises:
            KafkaStorageError: the disk refuses.
        """
        with self.sync_lock:
            if self._failure is not None:
                raise self._refusal()
            self._do_sync(self._segments[-1:], _sync_name)

    def sync(self, offset: int) -> None:
        """Return once every record below `offset` survives loss of power.

        Group commit: of the threads that call at the same time one syncs for all, and the others
        find their records synced when they get the lock: 20 k durable appends/s by 8 threads. A
        lock per waiter, all woken at once, made it 14 k. Call it without the partition lock.

        Raises:
            KafkaStorageError: the sync failed, or an earlier one has, and the log is poisoned; or
                there was no descriptor for it, and a later call may succeed.
        """
        if offset <= self.synced_offset:
            return
        with self.sync_lock:
            if offset > self.synced_offset:
                if self._failure is not None:
                    raise self._refusal()
                segments = segments_from(self._segments, self.synced_offset)
                self._sync(segments[-1].end[0], segments)

    def _sync(self, end: int, segments: tuple[Segment, ...]) -> None:
        """Sync some segments. Requires: the sync lock, and a look at `_failure` under it."""
        self._do_sync(segments, Segment.sync)
        self.synced_offset = max(self.synced_offset, end)

    def _do_sync(self, segments: tuple[Segment, ...], do_sync: Callable[[Segment], None]) -> None:
        for segment in segments:
            try:
                do_sync(segment)
            except OSError as error:
                if isinstance(error, FileNotFoundError) and segment not in self._segments:
                    continue  # retention has removed it meanwhile
                error.filename = segment.path
                if isinstance(error, NotOpened) or error.errno in NO_DESCRIPTOR:
                    raise self.refused(error) from error
                # Never again: the kernel may have dropped the pages it could not write.
                raise self.poison(error) from error

    def sync_sealed(self, offset: int) -> None:
        """`sync` the segments before the one that begins at `offset`: nothing is added to them.

        Not beside a removal of segments.

        Raises:
            KafkaStorageError: as `sync`.
        """
        with self.sync_lock:
            offset = min(offset, self._segments[-1].base_offset)
            if self._failure is None and offset > self.synced_offset:
                segments = segments_from(self._segments, self.synced_offset)
                self._sync(offset, tuple(one for one in segments if one.base_offset < offset))

    def flush(self) -> None:
        """`sync` everything appended so far."""
        self.sync(self.log_end_offset)

    # Offsets that move. Requires: the partition lock

    def update_high_watermark(self, offset: int) -> bool:
        """Set the high watermark, kept within the log; say whether it changed."""
        bounded = self._segments[-1].end[0]
        if offset < bounded:
            bounded = offset if offset > self.log_start_offset else self.log_start_offset
        if bounded == self.high_watermark:
            return False
        if self._first_unstable_offset is not None:
            self.producers.forget_transactions_below(bounded)
            self._first_unstable_offset = self.producers.first_unstable_offset(bounded)
        # Last: if an interrupt comes before it, the next call does all of it again.
        self.high_watermark = bounded
        return True

    def increment_log_start_offset(self, offset: int) -> bool:
        """Hide what lies below `offset`, at most the high watermark; say whether it changed.

        Raises:
            OffsetOutOfRange: `offset` is above the high watermark.
            KafkaStorageError: the disk refuses to keep the offset; nothing has changed.
        """
        if offset > self.high_watermark:
            raise errors.OffsetOutOfRange(
                f"Cannot increment the log start offset to {offset} of partition "
                f"{self.topic_partition} since it is larger than the high watermark "
                f"{self.high_watermark}"
            )
        if offset <= self.log_start_offset:
            return False
        former, self.log_start_offset = self.log_start_offset, offset
        try:
            self._checkpoint()
        except OSError as error:
            self.log_start_offset = former
            raise self.refused(error) from error
        if self.leader_epochs.truncate_from_start(offset):
            self.epochs_outlived()
        self.producers.forget_transactions_below(offset)
        self._first_unstable_offset = self.producers.first_unstable_offset(self.high_watermark)
        return True

    def before_truncation(self, offset: int) -> None:
        """Promise less before doing it: a crash during the truncation must not look like rot.

        Raises:
            KafkaStorageError: the disk refuses; nothing was cut.
        """
        self.synced_offset = min(self.synced_offset, offset)
        self.cleaned_offset = min(self.cleaned_offset, offset)
        try:
            self._checkpoint()
        except OSError as error:
            raise self.refused(error) from error

    def allow_gaps_below(self, offset: int) -> None:
        """Let what lies below `offset` have gaps, and be it known before there are any.

        Raises:
            KafkaStorageError: the disk refuses to keep it.
        """
        former = self.gaps_below
        self.gaps_below = max(former, offset)
        try:
            self._checkpoint()
        except OSError as error:
            self.gaps_below = former
            raise self.refused(error) from error

    def swap_in(self, cleaned: Segment, former: tuple[Segment, ...]) -> None:
        """Go on with one segment in place of several that it was made from, which are there."""
        start = self._segments.index(former[0])
        end = start + len(former)
        self._segments = (*self._segments[:start], cleaned, *self._segments[end:])

    def take_segment(self, segment: Segment) -> None:
        """Go on with a segment that was made elsewhere, in place of the last one, which is empty.

        Its batches have no producers, and are synced with all that lies before them.
        """
        assert self._segments[-1].next_offset == segment.base_offset, segment
        self._segments = (*self._segments[:-1], segment)
        self._applied_offset = self.synced_offset = segment.next_offset

    def replace_segments(self, segments: tuple[Segment, ...]) -> None:
        """Go on with other segments, whose end is lower or whose begin is higher."""
        end = segments[-1].end[0]
        start = min(max(self.log_start_offset, segments[0].base_offset), end)
        # Both at once: no interrupt may come between them.
        self._segments, self.log_start_offset = segments, start
        self.synced_offset = min(self.synced_offset, end)
        try:
            if self.leader_epochs.truncate_from_end(end):
                self.leader_epochs.truncate_from_start(self.log_start_offset)
                self.epochs_changed()
            elif self.leader_epochs.truncate_from_start(self.log_start_offset):
                self.epochs_outlived()
            if self._applied_offset != end:
                self._reload_producers()
        finally:
            self.update_high_watermark(self.high_watermark)

    def start_over(self, segment: Segment) -> None:
        """Go on as an empty log: without epochs, without producers.

        Requires: its directory holds no snapshot of producers.

        Raises:
            KafkaStorageError: the disk refuses. It is done but for what the next append stores.
        """
        self.leader_epochs.clear()
        self.epochs_dirty, self.epochs_unsaved = True, not self._memory
        self._applied_offset = -1
        self.log_start_offset = segment.base_offset
        self.replace_segments((segment,))
        self.epochs_changed()

    def epochs_changed(self) -> None:
        """Store the epoch cache, with a checksum; Kafka's text form is written at the close.

        Raises:
            KafkaStorageError: the disk refuses.
        """
        self.epochs_dirty = True
        self.epochs_unsaved = not self._memory
        try:
            if not self._memory:
                self._store_epochs()
        except OSError as error:
            raise self.refused(error) from error
        self._latest_epoch = self.leader_epochs.latest_epoch
        self.epochs_unsaved = False

    def _store_epochs(self) -> None:
        write_sealed(
            self._open_files.files,
            f"{self.directory}/{paths.SEALED_LEADER_EPOCHS}",
            self.leader_epochs.encode(),
            sync=self.config.durability == "fsync",
        )

    def epochs_outlived(self) -> None:
        """The oldest epochs went with their records. To store that can wait: whoever loads the log
        drops what lies before its start, and a full disk must not keep space from being freed.
        """
        try:
            self.epochs_changed()
        except errors.KafkaStorageError:
            if self._failure is not None:
                raise

    # Failure

    def _check_usable(self) -> None:
        """Refuse a poisoned log; finish what an interrupt has left of the append before."""
        if self._failure is not None:
            raise self._refusal()
        if self._applied_offset != self.log_end_offset:
            self._reload_producers()

    def _reload_producers(self) -> None:
        """Make the producer state anew from the last good snapshot and the batches behind it."""
        end = self.log_end_offset
        self._applied_offset = -1
        try:
            load_producers(
                self.files,
                self.directory,
                self._segments,
                self.producers,
                log_end_offset=end,
                log_start_offset=self.log_start_offset,
                now_ms=self.wall_ms(),
            )
        except OSError as error:
            raise self.refused(error) from error
        self._first_unstable_offset = self.producers.first_unstable_offset(self.high_watermark)
        self._applied_offset = end

    def note_damage(self, damage: CorruptRecord) -> None:
        """A reader came upon rot in what is published: say so once. Callable by any thread."""
        if self.damage is None or str(self.damage[1]) != str(damage):
            self.damage = (self.wall_ms(), damage)
            events.events.error("%s is damaged: %s", self.topic_partition, damage)

    def refused(self, error: OSError) -> errors.KafkaError:
        """The error to raise for a failed file call; poisons the log unless it is harmless."""
        self.disk_error = error
        if error.errno not in HARMLESS_ERRORS:
            return self.poison(error)
        now_ms, known = self._runtime.clock.monotonic_ms(), self.topic_partition
        self._tell_from_ms = events.write_refused(known, error, now_ms, self._tell_from_ms)
        return errors.KafkaStorageError(f"{self.topic_partition}: {error}")

    def poison(self, error: Exception) -> errors.KafkaError:
        """Refuse writes from here on, for `error`; return what to raise."""
        if isinstance(error, OSError):
            self.disk_error = error
        if self._failure is None:
            self._failure, self.failed_since_ms = error, self.wall_ms()
            events.poisoned(self.topic_partition, error)
        return self._refusal()

    def _refusal(self) -> errors.KafkaError:
        return errors.KafkaStorageError(
            f"{self.topic_partition} refuses writes since an earlier failure: {self._failure}"
        )

    def _out_of_range(self, offset: int, end: int) -> errors.KafkaError:
        return errors.OffsetOutOfRange(
            f"Received request for offset {offset} for partition {self.topic_partition}, but we "
            f"only have log segments from offset {self.log_start_offset} to {end}."
        )


def _sync_name(segment: Segment) -> None:
    segment.file.sync_name()
