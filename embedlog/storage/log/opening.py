"""The facts that are known of a log before it is opened, and the making of its `Log`."""

from __future__ import annotations

from embedlog.errors import CorruptRecord, KafkaStorageError
from embedlog.storage.log.log import Log
from embedlog.storage.producers.append import load_producers
from embedlog.storage.producers.state import ProducerStateManager
from embedlog.storage.segments.segment import Segment
from embedlog.storage.state_files.leader_epochs import LeaderEpochs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.common import TopicPartition
    from embedlog.runtime import Runtime
    from embedlog.storage.degradation import Degradation
    from embedlog.storage.log_config import LogConfig
    from embedlog.storage.open_files import OpenFiles


class Opening:
    """The opening of one log: the facts known before it, and its findings.

    `recovery_point`, `log_start_offset` and `high_watermark` come from the checkpoints; they are 0
    without an entry. `cleaned_offset` comes from the cleaner's checkpoint; it is -1 if the log was
    never compacted. Offsets below `gaps_below` need not be contiguous (see `log/gaps.py`).

    At first `log_start_offset` is the sealed checkpoint's, and `told_start_offset` the one in
    Kafka's text; each is -1 if unknown. `recovery/start_offset.py` decides between them.

    With `is_replicated` other brokers may have the partition as well. With `clean` the log was
    closed and is complete. With `same_boot` the machine has not restarted since the log was
    written, so only the end of the last write may be missing.
    """

    recovery_point = 0
    log_start_offset = 0
    told_start_offset = 0
    high_watermark = 0
    cleaned_offset = -1
    gaps_below = 0
    clean = True
    same_boot = False

    # The entries of the two files of leader epochs; empty if a file is missing or damaged.
    sealed_epochs: Sequence[tuple[int, int]] = ()
    text_epochs: Sequence[tuple[int, int]] = ()

    # Findings: whether recovery read the batches; how many bytes it cut off; the rot, if any.
    is_recovered = False
    cut_size = 0
    damage: CorruptRecord | None = None

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        directory: str,
        config: LogConfig,
        runtime: Runtime,
        open_files: OpenFiles,
        is_replicated: bool,
    ) -> None:
        self.topic_partition = topic_partition
        self.directory = directory
        self.config = config
        self.runtime = runtime
        self.open_files = open_files
        self.is_replicated = is_replicated
        self.degradations: list[Degradation] = []


def create_log(opening: Opening, checkpoint: Callable[[], object]) -> Log:
    """Make a log in a directory that exists and holds no segments."""
    segment = make_segment(opening, opening.log_start_offset, opening.runtime.clock.wall_ms())
    segment.file.create()
    log = make_log(opening, [segment], LeaderEpochs(), checkpoint)
    if log.offsets.published is not None:
        log.offsets.published.store(log.offsets.high_watermark)
    return log


def make_log(
    opening: Opening,
    segments: list[Segment],
    epochs: LeaderEpochs,
    checkpoint: Callable[[], object],
) -> Log:
    """Make the log from segments whose start and end are known; load its producers."""
    end = segments[-1].next_offset
    start = min(max(opening.log_start_offset, segments[0].base_offset), end)
    # An epoch that begins at the very end has a leader and no record yet: keep it.
    epochs.truncate_from_end(end + 1)
    epochs.truncate_from_start(start)
    producers = ProducerStateManager(
        opening.config.producer_id_expiration_ms,
        opening.topic_partition,
        count_max=opening.config.max_partition_producer_ids,
    )
    if end > 0 or not opening.clean:
        # Load them even for an empty log: an unclean stop may leave snapshots without records.
        _load_producers(opening, segments, producers, start, end)
    log = Log(
        opening.topic_partition,
        directory=opening.directory,
        config=opening.config,
        runtime=opening.runtime,
        open_files=opening.open_files,
        segments=segments,
        leader_epochs=epochs,
        producers=producers,
        log_start_offset=start,
        high_watermark=min(max(opening.high_watermark, start), end),
        synced_offset=min(opening.recovery_point, end),
        checkpoint=checkpoint,
        is_replicated=opening.is_replicated,
    )
    log.epochs.compare(opening.sealed_epochs, opening.text_epochs)
    log.offsets.cleaned_offset = opening.cleaned_offset
    log.offsets.gaps_below = min(opening.gaps_below, end)  # later appends leave no gaps
    return log


def mark_opened(log: Log, *, begins_epoch: bool, failure: CorruptRecord | None) -> None:
    """End the opening. With a `failure` (rot) refuse writes.

    Otherwise, with `begins_epoch` (after an unclean stop), begin a new leader epoch. A reader may
    have seen records that the crash lost. The new epoch reveals the loss to it (KIP-320); without
    one it would continue with other records at the same offsets, and not notice.
    """
    if failure is not None:
        log.health.refuse(failure)
        return
    end = log.log_end_offset
    if begins_epoch and end > 0 and log.epochs.latest >= 0:
        try:
            log.epochs.assign(log.epochs.latest + 1, end)
        except KafkaStorageError:
            if log.failure is not None:
                raise
            # The disk is full: the records can be read, and the next append stores the epoch.
    if log.config.durability == "fsync":
        # Sync the recovered records: readers may know them, so the next crash must not take them.
        try:
            log.durability.flush()
        except KafkaStorageError:
            if log.failure is None:
                raise
            # Do not raise: the kernel reports a failed sync once, so the next opening would succeed
            # and hide the loss. The log is open, and read-only.


def _load_producers(
    opening: Opening, segments: list[Segment], producers: ProducerStateManager, start: int, end: int
) -> None:
    try:
        load_producers(
            opening.open_files.files,
            opening.directory,
            segments,
            producers,
            log_end_offset=end,
            log_start_offset=start,
            now_ms=opening.runtime.clock.wall_ms(),
        )
    except CorruptRecord as error:
        # Duplicates cannot be recognised, so the log becomes read-only.
        opening.damage = error
        producers.truncate()


def make_segment(opening: Opening, base_offset: int, created_ms: int) -> Segment:
    """Make a segment of the log that is being opened; its file is not created yet."""
    return Segment(
        opening.open_files,
        opening.directory,
        base_offset,
        created_ms=created_ms,
        zeroed=opening.config.durability == "fsync",
    )
