"""One partition's log, made of parts:

    chain           the segments, oldest first
    writer          appends batches, begins new segments
    reader          reads batches from an offset on, finds offsets by timestamp
    offsets         log start, high watermark, last stable offset, and how far compaction has come
    durability      syncs, and the offset below which everything is synced
    transactions    producers, open and aborted transactions
    epochs          the leader epoch of each offset
    health          why the log refuses writes, and known damage

An append checks its batch, writes it after the published end, and publishes it by one assignment
(`Segment.end`). Then it updates the state that is computed from batches, such as the producers'.
Whatever interrupts an append, a reader sees all of the batch or nothing; if the state was not
updated, the next append does that first. Reads take no lock and copy nothing.

After a failed sync or an I/O error the log is poisoned: it refuses writes for good and goes on
answering reads. A full disk poisons nothing: the append fails and the log is unchanged.
"""

from __future__ import annotations

from embedlog.errors import KafkaError
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.storage.log.durability import LogDurability
from embedlog.storage.log.epochs import LogEpochs
from embedlog.storage.log.offsets import LogOffsets
from embedlog.storage.log.reader import LogReader
from embedlog.storage.log.transactions import LogTransactions
from embedlog.storage.log.writer import LogWriter
from embedlog.storage.log_health import LogHealth
from embedlog.storage.log_values import LogAppendInfo
from embedlog.storage.producers.entry import Duplicate, ProducerUpdate, VerificationState
from embedlog.storage.segments.chain import SegmentChain
from embedlog.storage.state_files.published_offset import PublishedOffset
from embedlog.storage.validation.ordinary_batch import ordinary
from embedlog.storage.validation.origin import AppendOrigin
from embedlog.storage.validation.validated_batch import MAGIC
from embedlog.storage.validation.validator import validate
from wire.records.format import CONTROL_BIT, FRAME_HEAD, LOG_OVERHEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.common import Buffer, TopicPartition
    from embedlog.runtime import Runtime
    from embedlog.runtime.files import Files
    from embedlog.storage.log_config import LogConfig
    from embedlog.storage.open_files import OpenFiles
    from embedlog.storage.producers.state import ProducerStateManager
    from embedlog.storage.segments.segment import Segment
    from embedlog.storage.state_files.leader_epochs import LeaderEpochs
    from embedlog.storage.validation.validated_batch import GoodBatch
    from wire.records.encode.built import BuiltBatch


class Log:
    """The log of one partition; `LogManager` opens or creates it.

    Appending, truncating and configuring require the partition lock, `lock`. Call syncs without
    that lock. Any thread may call everything else at any time.
    """

    __slots__ = (
        "_open_files",
        "chain",
        "clock",
        "config",
        "directory",
        "durability",
        "epochs",
        "health",
        "lock",
        "offsets",
        "reader",
        "topic_id",
        "topic_partition",
        "transactions",
        "writer",
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
        checkpoint: Callable[[], object],
        is_replicated: bool = False,
    ) -> None:
        """Build the log from its loaded state.

        `checkpoint` stores the synced and start offsets of all logs of the data directory. With
        `is_replicated` other brokers may have the partition as well.
        """
        self.topic_partition = topic_partition
        self.directory = directory
        self.topic_id: bytes | None = None
        self.clock = clock = runtime.clock
        self._open_files = open_files
        self.lock = ranked_rlock(Rank.PARTITION)
        self.health = health = LogHealth(topic_partition, clock)
        self.chain = chain = SegmentChain(
            segments, directory=directory, open_files=open_files, clock=clock
        )
        self.durability = durability = LogDurability(chain, health, synced_offset)
        self.epochs = LogEpochs(leader_epochs, chain, health)
        self.transactions = LogTransactions(producers, chain, health, high_watermark)
        self.writer = LogWriter(chain, durability, self.transactions, health, runtime.random)
        self.offsets = LogOffsets(
            topic_partition,
            chain=chain,
            durability=durability,
            transactions=self.transactions,
            epochs=self.epochs,
            health=health,
            log_start_offset=log_start_offset,
            high_watermark=high_watermark,
            checkpoint=checkpoint,
            is_replicated=is_replicated,
        )
        self.reader = LogReader(
            topic_partition, chain=chain, offsets=self.offsets, epochs=self.epochs, health=health
        )
        self.configure(config)

    def configure(self, config: LogConfig) -> None:
        """Use `config` from the next append on. Requires: the partition lock."""
        self.config = config
        self.writer.configure(config)
        self.epochs.configure(config)
        self.offsets.published = None
        if config.durability != "memory":
            published = PublishedOffset(self._open_files, self.directory)
            if config.durability == "fsync" or self.offsets.is_replicated:
                self.offsets.published = published
            else:
                published.remove()

    # Facts

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, oldest first; appends go to the last one."""
        return self.chain.segments

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.chain.segments[-1].end[0]

    @property
    def size(self) -> int:
        return sum(segment.end[1] for segment in self.chain.segments)

    @property
    def failure(self) -> BaseException | None:
        """Why the log refuses writes; None while it takes them."""
        return self.health.failure

    @property
    def files(self) -> Files:
        return self.chain.files

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

        `records` is only read. The batch is not synced: at durability `fsync` the caller syncs.

        Raises:
            KafkaError: a rule of `validation` or `producers` is broken, or the disk refuses.
        """
        batch = ordinary(records, self.config, now_ms)
        if batch is None:
            batch = self._validated(records, origin, now_ms, magic_limits)
        segment = self.chain.segments[-1]
        first = segment.end[0]
        if self.health.failure is not None or self.transactions.applied_offset != first:
            self.check_usable()
        update: ProducerUpdate | None = None
        if batch.producer_id > -1:
            try:
                if batch.attributes & CONTROL_BIT:
                    update = self.transactions.judge(batch, first, origin, transaction_version)
                else:
                    judged = self.transactions.producers.prepare(
                        batch, first_offset=first, origin=origin, verification=verification
                    )
                    if isinstance(judged, Duplicate):
                        return self._duplicate(judged)
                    update = judged
            except KafkaError as error:
                error.log_start_offset = self.offsets.log_start_offset
                raise
        if leader_epoch != self.epochs.stored:
            leader_epoch = self.epochs.lead_in(leader_epoch)
        last = first + batch.last_offset_delta
        head = FRAME_HEAD.pack(first, batch.size - LOG_OVERHEAD, leader_epoch, MAGIC, batch.crc)
        self.writer.append(
            segment,
            (head, *batch.checked),
            batch.size,
            first_offset=first,
            last_offset=last,
            latest=batch.max_timestamp,
            now_ms=now_ms,
        )
        if update is not None:
            self.transactions.apply(update, self.offsets.high_watermark)
        self.transactions.applied_offset = last + 1
        start = self.offsets.log_start_offset
        return LogAppendInfo(
            (first, last, batch.log_append_time_ms, start, False, batch.max_timestamp, batch.size)
        )

    def _validated(
        self, records: Buffer | BuiltBatch, origin: int, now_ms: int, magic_limits: tuple[int, int]
    ) -> GoodBatch:
        return validate(
            records,
            config=self.config,
            origin=origin,
            now_ms=now_ms,
            magic_limits=magic_limits,
            log_start_offset=self.offsets.log_start_offset,
            topic_partition=self.topic_partition,
        )

    def _duplicate(self, known: Duplicate) -> LogAppendInfo:
        first, last, timestamp = known.base_offset, known.last_offset, known.timestamp
        append_time = timestamp if self.config.log_append_time else -1
        start_offset = self.offsets.log_start_offset
        return LogAppendInfo((first, last, append_time, start_offset, True, timestamp, 0))

    def check_usable(self) -> None:
        """Raise if the log refuses writes; update the state if an append was interrupted."""
        self.health.check()
        if self.transactions.applied_offset != self.log_end_offset:
            offsets = self.offsets
            self.transactions.reload(
                offsets.log_start_offset, offsets.high_watermark, self.clock.wall_ms()
            )

    # State that the disk has refused

    def refusals(self) -> list[tuple[str, int, OSError]]:
        """Return (state, wall time or -1, error) for state that is newer in memory than on disk."""
        found = []
        if self.epochs.refusal is not None:
            found.append(("leader epochs", *self.epochs.refusal))
        published = self.offsets.published
        if published is not None and published.refusal is not None:
            found.append(("published offset", -1, published.refusal))
        return found

    def save(self) -> None:
        """Store again what `refusals` lists. Requires: the partition lock."""
        self.epochs.save()
        self.offsets.publish()

    # Changing the segments. Requires: the partition lock

    def roll(self, now_ms: int | None = None) -> None:
        """Begin a new segment unless the last one is empty. `now_ms` is wall time."""
        self.check_usable()
        if self.segments[-1].size:
            self.writer.roll(self.log_end_offset, now_ms)

    def take_segment(self, segment: Segment) -> None:
        """Replace the empty last segment by `segment`, which was made elsewhere.

        Requires: the batches of `segment` have no producers; they and all batches before them are
        synced.
        """
        assert self.log_end_offset == segment.base_offset, segment
        self.chain.segments = (*self.segments[:-1], segment)
        self.transactions.applied_offset = self.durability.synced_offset = segment.next_offset

    def replace_segments(self, segments: tuple[Segment, ...]) -> None:
        """Replace the segments after a truncation, which lowers the end or raises the start.

        Raises:
            KafkaStorageError: the disk refuses to store the epochs; the segments are replaced
                nevertheless.
        """
        end = segments[-1].end[0]
        offsets = self.offsets
        start = min(max(offsets.log_start_offset, segments[0].base_offset), end)
        # One statement sets both, so that no interrupt comes in between.
        self.chain.segments, offsets.log_start_offset = segments, start
        self.durability.promise_less(end)
        try:
            self.epochs.truncate(start, end)
            if self.transactions.applied_offset != end:
                self.transactions.reload(start, offsets.high_watermark, self.clock.wall_ms())
        finally:
            offsets.update_high_watermark(offsets.high_watermark)

    def move_to(
        self, directory: str, open_files: OpenFiles, checkpoint: Callable[[], object]
    ) -> None:
        """Continue in another directory, which has a synced copy of all bytes.

        `checkpoint` stores the offsets of all logs in the new data directory. Requires: the
        partition lock and the sync lock.
        """
        published, former = self.offsets.published, self.segments
        self.chain.move_to(directory, open_files)
        self.epochs.is_dirty = True  # only the sealed form was copied
        self.durability.synced_offset = self.log_end_offset
        self.offsets.keep_with(checkpoint)
        if published is not None:
            self.offsets.published = PublishedOffset(open_files, directory)
        self._open_files = open_files
        self.directory = directory  # set last: the old value shows that an interrupt came before
        for segment in former:
            segment.file.release()
        if published is not None:
            published.release()

    def retire(self, reason: BaseException) -> None:
        """Refuse writes from now on; published records can still be read."""
        self.health.retire(reason)
        for segment in self.segments:
            segment.file.release()
        if self.offsets.published is not None:
            self.offsets.published.release()

    def __repr__(self) -> str:
        return (
            f"Log({self.topic_partition}, {self.offsets.log_start_offset}..{self.log_end_offset}, "
            f"{len(self.segments)} segments)"
        )
