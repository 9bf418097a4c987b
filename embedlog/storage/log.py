"""One partition's log: segments in a row, and the offsets that say how far each promise reaches.

    log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset
                                              synced_offset  <= log_end_offset

An append is prepared aside, written behind the published end, and published by one assignment
(`Segment.end`); then the things that only follow from it are brought up to date. Whatever
interrupts an append, a reader sees all of it or nothing, and the next append goes on from there.
Reads take no lock and copy nothing.

After a failed sync or an I/O error the log is poisoned: it refuses writes for good and goes on
answering reads. A full disk poisons nothing: the append fails and the log is as it was before.
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord, KafkaError, KafkaStorageError
from embedlog.storage.log_state import LogState
from embedlog.storage.log_values import LogAppendInfo, LogRead
from embedlog.storage.producers.append import judge_marker, load_aborted
from embedlog.storage.producers.entry import NO_OFFSET, Duplicate
from embedlog.storage.reader import NOTHING, cut, find_damage, read_older
from embedlog.storage.segment import segments_from
from embedlog.storage.segment_indexes import HINTS_MAX
from embedlog.storage.shutdown import close_log
from embedlog.storage.state_files.published_offset import PublishedOffset
from embedlog.storage.validation.ordinary_batch import ordinary
from embedlog.storage.validation.origin import AppendOrigin
from embedlog.storage.validation.validated_batch import MAGIC
from embedlog.storage.validation.validator import validate
from wire.records.batch import CONTROL_BIT, FRAME_HEAD, LOG_OVERHEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import Buffer
    from embedlog.storage.indexes.transaction import AbortedTransaction
    from embedlog.storage.log_config import LogConfig
    from embedlog.storage.producers.entry import (
        ProducerStateEntry,
        ProducerUpdate,
        VerificationState,
    )
    from embedlog.storage.segment import Segment
    from embedlog.storage.validation.validated_batch import GoodBatch
    from wire.records.encode.built import BuiltBatch


class Log(LogState):
    """One log. Made by `LogManager`.

    Appending, truncating and configuring require the partition lock. `sync` is called without it.
    Everything else may be called by any thread at any time.
    """

    __slots__ = ("published",)

    def configure(self, config: LogConfig) -> None:
        """Obey another configuration from the next append on."""
        super().configure(config)
        self.published: PublishedOffset | None = None
        if config.durability != "memory":
            published = PublishedOffset(self._open_files, self.directory)
            if config.durability == "fsync":
                self.published = published
            else:
                published.remove()

    def retire(self, reason: BaseException) -> None:
        """Refuse writes from here on; reads of what is published go on."""
        super().retire(reason)
        if self.published is not None:
            self.published.release()

    # Appending. Requires: the partition lock

    def append_as_leader(
        self,
        records: Buffer | BuiltBatch,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: int = AppendOrigin.CLIENT,
        magic_limits: tuple[int, int] = (2, 2),
        verification: VerificationState | None = None,
        transaction_version: int = -1,
    ) -> LogAppendInfo:
        """Check one batch, give it offsets and append it. `now_ms` is wall time.

        `records` is only read. At durability `fsync` the batch is durable once `sync` has passed
        its last offset, not before.

        Raises:
            KafkaError: by the rules of `log_validator` and `producer_state`; KafkaStorageError
                when the disk refuses. Nothing was appended.
        """
        batch = ordinary(records, self.config, now_ms)
        if batch is None:
            batch = validate(
                records,
                config=self.config,
                origin=origin,
                now_ms=now_ms,
                magic_limits=magic_limits,
                log_start_offset=self.log_start_offset,
                topic_partition=self.topic_partition,
            )
        segment = self._segments[-1]
        first_offset = segment.end[0]
        if self._failure is not None or self._applied_offset != first_offset:
            self._check_usable()
        update: ProducerUpdate | None = None
        if batch.producer_id > -1:
            try:
                if batch.attributes & CONTROL_BIT:
                    update = judge_marker(
                        self.producers,
                        batch,  # type: ignore[arg-type]  # a built one is no marker
                        first_offset=first_offset,
                        origin=origin,
                        transaction_version=transaction_version,
                    )
                else:
                    judged = self.producers.prepare(
                        batch, first_offset=first_offset, origin=origin, verification=verification
                    )
                    if isinstance(judged, Duplicate):
                        return self._duplicate(judged)
                    update = judged
            except KafkaError as error:
                error.log_start_offset = self.log_start_offset
                raise
        return self._append(segment, batch, leader_epoch, now_ms, update)

    def _append(
        self,
        segment: Segment,
        batch: GoodBatch,
        leader_epoch: int,
        now_ms: int,
        update: ProducerUpdate | None,
    ) -> LogAppendInfo:
        if leader_epoch != self._latest_epoch:
            leader_epoch = self._lead_in(leader_epoch)
        size = batch.size
        latest = batch.max_timestamp
        first_offset, position, largest, holder = segment.end
        last_offset = first_offset + batch.last_offset_delta
        limits = segment.limits
        if (
            position + size > limits.size_max
            or last_offset > limits.offset_max
            or not 0 <= latest <= limits.time_max
        ):
            segment = self.segment_for(size, first_offset, last_offset, latest, now_ms)
            _, position, largest, holder = segment.end
        if latest > largest:
            largest, holder = latest, last_offset
        head = FRAME_HEAD.pack(first_offset, size - LOG_OVERHEAD, leader_epoch, MAGIC, batch.crc)
        if segment.file.zeroed:
            self._keep_window(segment, size)
        try:
            segment.file.write((head, *batch.checked), size, position)
        except OSError as error:
            raise self._write_failed(segment, error) from error
        # This publishes the batch. Whatever comes behind is made good by the next append if an
        # interrupt keeps it from happening.
        segment.end = (last_offset + 1, position + size, largest, holder)
        if position == 0:
            segment.limits.first_timestamp = latest
        segment.modified_ms = now_ms
        segment.indexes.count(
            last_offset, position, size, self.config.index_interval_bytes, segment.end
        )
        if update is not None:
            self._apply(update)
        self._applied_offset = last_offset + 1
        append_time = batch.log_append_time_ms
        start_offset = self.log_start_offset
        return LogAppendInfo(
            (first_offset, last_offset, append_time, start_offset, False, latest, size)
        )

    def _apply(self, update: ProducerUpdate) -> None:
        """Bring the producer state up to a published batch."""
        aborted = self.producers.apply(update)
        if aborted is not None:
            self._segments[-1].aborted.note(aborted)
        is_stable = self._first_unstable_offset is None
        if not (is_stable and update.entry.current_txn_first_offset == NO_OFFSET):
            self._first_unstable_offset = self.producers.first_unstable_offset(self.high_watermark)

    def commit(self, synced_only: bool) -> None:
        """Raise the high watermark to the log's end, or to how far the log is synced."""
        end = self._segments[-1].end[0]
        if synced_only and self.synced_offset < end:
            end = self.synced_offset
        if end > self.high_watermark:
            if self._first_unstable_offset is None:
                self.high_watermark = end
            else:
                self.update_high_watermark(end)
        published = self.published
        if published is not None and published.offset != self.high_watermark:
            published.publish(self.high_watermark)

    def append_as_follower(
        self, records: Buffer, *, leader_epoch: int | None = None, now_ms: int | None = None
    ) -> LogAppendInfo:
        """Append batches as a leader has stamped them, offsets and epochs included.

        Batches of an epoch above `leader_epoch`, the follower's own, are left out with all that
        follow them (KAFKA-18723). An incomplete batch at the end is ignored.

        Raises:
            CorruptMessage: a wrong checksum or structure.
            UnknownServerError: offsets that do not increase, or begin below the log's end.
        """
        from embedlog.storage.replica.append import append_batches

        self._check_usable()
        if now_ms is None:
            now_ms = self.wall_ms()
        return append_batches(self, records, leader_epoch, now_ms)

    # Reading

    def read(
        self, offset: int, *, max_bytes: int, end_offset: int, min_one: bool = True
    ) -> LogRead:
        """Return whole batches from the one holding `offset`, ending before `end_offset`.

        At most `max_bytes` of one segment, but at least one batch with `min_one` (KIP-74). The
        view is read-only and stays valid after retention deletes the file. No lock, no copy.

        Raises:
            OffsetOutOfRange: `offset` is outside [log_start_offset, log_end_offset].
            CorruptRecord: the batches on disk are damaged, or have rotted from `offset` on.
        """
        segment = self._segments[-1]
        next_offset, size, _, _ = segment.end
        if not self.log_start_offset <= offset <= next_offset:
            self._check_rot()
            raise self._out_of_range(offset, next_offset)
        if offset < segment.base_offset:
            return read_older(self, offset, max_bytes, end_offset, min_one)
        hints = segment.indexes.hints
        position = hints.get(offset)
        if position is None:
            position = size if offset == next_offset else segment.indexes.position_of(offset, size)
        end = size
        if end_offset < next_offset:
            end = max(position, segment.indexes.position_of(end_offset, size))
            next_offset = max(offset, end_offset)
        if end - position > max_bytes:
            end, next_offset = cut(
                segment, position, end, offset=offset, max_bytes=max_bytes, min_one=min_one
            )
        if end != position:
            trusted = segment.trusted_size
            if end > trusted or end == trusted < size:
                good = find_damage(self, segment, position, end, offset)
                if good is not None:
                    end, next_offset = good
            if len(hints) >= HINTS_MAX:
                hints.clear()
            hints[next_offset] = end
            view = segment.file.view(position, end)
        else:
            view = NOTHING
            if self._failure is not None and offset == segment.end[0]:
                self._check_rot()
        return LogRead((view, next_offset, segment.base_offset, position))

    def _check_rot(self) -> None:
        """Raise if the log ends where rot begins: a reader must not wait there, nor start over."""
        if isinstance(self._failure, CorruptRecord):
            raise self._failure

    def fetch_offset(
        self, timestamp: int, *, end_offset: int | None = None
    ) -> tuple[int, int, int] | None:
        """(timestamp, offset, leader epoch) by the rules of ListOffsets; None when there is none.

        `timestamp` may be -1 latest, -2 earliest, -3 largest timestamp, -4 earliest local. Where
        `end_offset` is given (the bound of the caller's isolation), no answer lies beyond it.
        """
        from embedlog.storage.reader import fetch_offset

        return fetch_offset(self, timestamp, end_offset)

    def offset_metadata(self, offset: int) -> tuple[int, int]:
        """(segment base offset, position) at which a reader of `offset` begins."""
        segment = self.segment_of(offset)
        return segment.base_offset, segment.indexes.position_of(offset, segment.size)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) as OffsetForLeaderEpoch answers; see `LeaderEpochs`."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def knows_aborted(self, offset: int) -> bool:
        """Is what `aborted_transactions` tells about the segment of `offset` in memory?

        Otherwise the first who asks has the segment's batches looked at, all of them.
        """
        return self.segment_of(offset).aborted.index is not None

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions that a read_committed reader of [start, end) must filter."""
        found: list[AbortedTransaction] = []
        for segment in segments_from(self._segments, start):
            index = segment.aborted.index
            if index is None:
                try:
                    index = load_aborted(self.files, self.directory, self._segments, segment)
                except OSError as error:
                    raise KafkaStorageError(f"{self.topic_partition}: {error}") from error
            some, complete = index.collect_aborted(start, end)
            found += some
            if complete:
                break
        return found

    def active_producers(self) -> list[ProducerStateEntry]:
        """What is known of each producer. Requires: the partition lock."""
        return list(self.producers)

    def truncate_to(self, offset: int) -> bool:
        """Drop the records from `offset` on (from the beginning of its batch); say if any were."""
        from embedlog.storage.replica.truncation import truncate_to

        self._check_usable()
        return truncate_to(self, offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and go on as an empty log at `offset`."""
        from embedlog.storage.replica.truncation import truncate_fully

        self._check_usable()
        truncate_fully(self, offset)

    def free_below(self, offset: int) -> bool:
        """Remove the files of whole segments below `offset` at once; say if there were any.

        For who must write to give records up, and finds the disk full.

        Raises:
            KafkaStorageError: the disk refuses.
        """
        from embedlog.storage.retention import free_below

        self._check_usable()
        return free_below(self, min(offset, self.high_watermark))

    # Ending

    def close(self) -> None:
        """Bring the files into the form of a clean stop. The log is not used afterwards.

        Raises:
            KafkaStorageError: the disk refuses; the stop is not clean.
        """
        close_log(self)

    def _duplicate(self, known: Duplicate) -> LogAppendInfo:
        first, last, timestamp = known.base_offset, known.last_offset, known.timestamp
        append_time = timestamp if self.config.log_append_time else -1
        return LogAppendInfo((first, last, append_time, self.log_start_offset, True, timestamp, 0))

    def __repr__(self) -> str:
        return (
            f"Log({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset}, "
            f"{len(self._segments)} segments)"
        )
