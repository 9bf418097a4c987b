"""Opening a log: loading it after a clean close, recovering it after an unclean one.

Recovery reads every batch from the segment of the recovery point on. With P the recovery point
(everything below was synced), b the first byte that is no good batch and W the sync window:

    the stop was         found                                        action
    any                  all batches are good                         open
    any                  b < P                                        rot
    clean                a bad batch                                  rot: nothing was unfinished
    a killed process     b is in the last segment, no good batch      torn: cut at b
                         follows, and it can be an unfinished write
                         (`torn_write`)
                         anything else: no page can be missing        rot
    a loss of power,     no good batch behind b                       torn: cut at b
    or unknown           good batches behind b, all within W          pages out of order: cut at b
                         good batches behind b + W                    rot

Rot: complete data has become bad. Nothing is cut; the log is served up to b and refuses writes.
Before bytes are cut, they are moved to a `.quarantine` file, unless they are only zeros; the cut is
reported. A crash during recovery leaves a directory that recovers to the same log.
"""

from __future__ import annotations

from _bisect import bisect_right

from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.batch_walk import walk
from embedlog.storage.degradation import CUT, Degradation
from embedlog.storage.events import events
from embedlog.storage.log.durability import SYNC_WINDOW_SIZE
from embedlog.storage.log.opening import Opening, create_log, make_log, make_segment, mark_opened
from embedlog.storage.recovery.start_offset import settle_start_offset
from embedlog.storage.recovery.sweep import quarantine_segments, quarantine_tail, sweep_directory
from embedlog.storage.recovery.torn_write import content_size, is_torn
from embedlog.storage.segments.scan import SegmentScan, has_good_batch_after, scan_segment
from embedlog.storage.segments.segment import UNKNOWN, Segment, base_offset_of
from embedlog.storage.state_files.leader_epochs import LeaderEpochs, read_epochs, read_epochs_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.common import TopicPartition
    from embedlog.storage.log.log import Log


def open_log(opening: Opening, checkpoint: Callable[[], object], *, salvage: bool = False) -> Log:
    """Load or recover the log of a directory.

    A log whose synced data has rotted is returned with `failure` set to the `CorruptRecord`. With
    `salvage` it is cut like a torn log instead, and the bytes behind the cut go into quarantine.
    """
    bases = sweep_directory(opening.open_files.files, opening.directory)
    epochs, is_exact = _load_epochs(opening)
    if not bases:
        settle_start_offset(opening, None, None)
        return create_log(opening, checkpoint)
    segments = [_existing_segment(opening, base) for base in bases]
    for segment, following in zip(segments, segments[1:], strict=False):
        segment.end = (following.base_offset, segment.file.capacity, UNKNOWN, -1)
    known = epochs if is_exact else None
    failure: CorruptRecord | None = None
    recovered = salvage or not (opening.clean and _load_end(opening, segments[-1], known))
    if recovered:
        segments, failure = _recover(opening, segments, known, salvage)
    settle_start_offset(opening, epochs, segments[-1].next_offset)
    if segments[-1].next_offset < opening.log_start_offset and failure is None:
        return _start_over(opening, segments, checkpoint)
    if epochs is None or not (is_exact or _may_be_true(opening, epochs, segments)):
        epochs = _rebuild_epochs(segments)
    log = make_log(opening, segments, epochs, checkpoint)
    mark_opened(
        log,
        begins_epoch=recovered and not opening.is_replicated,
        failure=failure or opening.damage,
    )
    opening.is_recovered = recovered
    _tell_opened(log, recovered=recovered)
    return log


def _start_over(opening: Opening, segments: list[Segment], checkpoint: Callable[[], object]) -> Log:
    """Replace a log that ends below its start offset by an empty log: all records were deleted."""
    end, start = segments[-1].next_offset, opening.log_start_offset
    reason = f"the log ends at {end}, records below {start} were deleted: it begins there, empty"
    events.warning("%s: %s", opening.topic_partition, reason)
    opening.degradations.append(
        Degradation(
            CUT,
            str(opening.topic_partition),
            since_ms=opening.runtime.clock.wall_ms(),
            reason=reason,
        )
    )
    quarantine_segments(opening.open_files.files, segments)
    return create_log(opening, checkpoint)


# Loading


def _existing_segment(opening: Opening, base_offset: int) -> Segment:
    """Return a segment that exists on disk; until it is read, all its bytes count as content."""
    path = paths.segment_file(opening.directory, base_offset)
    stat = opening.open_files.files.stat(path)
    assert stat is not None, path
    segment = make_segment(opening, base_offset, stat.modified_ms)
    segment.end = (base_offset, stat.size, UNKNOWN, -1)
    segment.expect_stored(stat.size)
    return segment


def _load_end(opening: Opening, segment: Segment, epochs: LeaderEpochs | None) -> bool:
    """Find the end of the last segment; return False if it was not closed cleanly after all."""
    next_offset, size = segment.base_offset, segment.file.capacity
    try:
        view = segment.file.view(0, size)
        start = segment.indexes.boundary_before(size, size)
        for at, _, base_offset, last_offset, _, epoch in walk(view, start, size, segment.path):
            is_next = base_offset == next_offset or at == start > 0
            if not is_next and not next_offset < base_offset <= opening.gaps_below:
                return False
            if epochs is not None and epochs.epoch_for_offset(base_offset) not in (epoch, -1):
                return False
            next_offset = last_offset + 1
        segment.end = (next_offset, size, UNKNOWN, -1)
        segment.largest()
        for _, _, _, _, timestamp, _ in walk(view, 0, size, segment.path):
            segment.limits.first_timestamp = timestamp
            break
    except CorruptRecord:
        return False
    segment.synced_size = size
    return next_offset >= opening.recovery_point


def _load_epochs(opening: Opening) -> tuple[LeaderEpochs | None, bool]:
    """Return the stored epoch cache, None if it is damaged, and whether it certainly fits the log.

    The sealed form reveals damage, but after a loss of power it may be older than the log. The text
    form is newer if Kafka has used the directory since embedlog did.
    """
    files = opening.open_files.files
    try:
        text = read_epochs_text(files, opening.directory)
        opening.text_epochs = text.entries if text is not None else ()
    except CorruptRecord:
        text = None
    try:
        sealed = read_epochs(files, opening.directory)
        opening.sealed_epochs = sealed.entries if sealed is not None else ()
    except CorruptRecord:
        return None, False
    if sealed is None:
        return text, False
    if text is not None and text.latest_epoch > sealed.latest_epoch:
        return text, False
    return sealed, opening.same_boot or opening.config.durability == "fsync"


def _may_be_true(opening: Opening, epochs: LeaderEpochs, segments: list[Segment]) -> bool:
    """Whether `epochs` can be right, as far as the batches show.

    In a compacted log the first batches of an epoch may be gone, so only the last batch is
    compared.
    """
    if not opening.gaps_below:
        return _are_true(epochs, segments)
    last_offset = segments[-1].next_offset - 1
    _, found = _batch_epoch(segments, last_offset)
    return found in (-1, epochs.epoch_for_offset(last_offset))


def _are_true(epochs: LeaderEpochs, segments: list[Segment]) -> bool:
    """Whether each epoch begins with a batch of that epoch, and the last batch has the last epoch.

    The stored epochs may have no checksum. After an unclean stop they may be older than the log.
    """
    end = segments[-1].next_offset
    entries = epochs.entries
    starts = [start for _, start in entries if segments[0].base_offset <= start < end]
    for offset in (*starts, end - 1):
        base_offset, found = _batch_epoch(segments, offset)
        if found != epochs.epoch_for_offset(offset):
            return False
        if offset in starts and base_offset != offset and offset != entries[0][1]:
            return False
    return True


def _batch_epoch(segments: list[Segment], offset: int) -> tuple[int, int]:
    """Return (base offset, leader epoch) of the batch that holds `offset`, or (-1, -1)."""
    segment = segments[max(0, bisect_right(segments, offset, key=base_offset_of) - 1)]
    size = segment.size
    position = segment.indexes.position_of(offset, size)
    for _, _, base_offset, _, _, epoch in walk(
        segment.file.view(0, size), position, size, segment.path
    ):
        return base_offset, epoch
    return -1, -1


def _rebuild_epochs(segments: list[Segment]) -> LeaderEpochs:
    epochs = LeaderEpochs()
    for segment in segments:
        size = segment.size
        for _, _, base_offset, _, _, epoch in walk(
            segment.file.view(0, size), 0, size, segment.path
        ):
            if epoch > epochs.latest_epoch:
                epochs.assign(epoch, base_offset)
    return epochs


# Recovering


def _recover(
    opening: Opening, segments: list[Segment], epochs: LeaderEpochs | None, salvage: bool
) -> tuple[list[Segment], CorruptRecord | None]:
    """Return the segments that remain, and the damage that must not be cut off, or None."""
    floor = max(0, bisect_right(segments, opening.recovery_point, key=base_offset_of) - 1)
    for slot in range(floor, len(segments)):
        segment, later = segments[slot], segments[slot + 1 :]
        scan = scan_segment(
            segment.file.view(0, segment.file.capacity),
            path=segment.path,
            base_offset=segment.base_offset,
            epochs=epochs,
            gaps_below=opening.gaps_below,
            index_interval=opening.config.index_interval_bytes,
        )
        error = _check_join(opening, scan, segment, later)
        segment.adopt(scan)
        if error is None:
            if scan.size < segment.file.capacity:
                segment.file.cut_to(segment.size)  # only zeros: the file was extended in advance
            continue
        if not salvage and _is_rot(opening, scan, segment, later):
            return segments[: slot + 1], error
        _cut(opening, error, segment, later)
        return segments[: slot + 1], None
    return segments, None


def _cut(opening: Opening, error: CorruptRecord, segment: Segment, later: list[Segment]) -> None:
    wall_ms = opening.runtime.clock.wall_ms()
    size, news = _tell_cut(opening.topic_partition, error, segment, later, wall_ms=wall_ms)
    opening.cut_size += size
    opening.degradations.append(news)
    # Move later segments first: after an interrupt, recovery finds the same first bad byte.
    quarantine_segments(opening.open_files.files, later)
    quarantine_tail(opening.open_files.files, segment)


def _check_join(
    opening: Opening, scan: SegmentScan, segment: Segment, later: list[Segment]
) -> CorruptRecord | None:
    """Return the damage of a segment, or a gap between it and the next segment; else None."""
    if scan.error is not None and not scan.only_zeros_follow:
        return scan.error
    end = scan.next_offset
    if not later:
        if end >= opening.recovery_point:
            return None
        reason = f"ends at offset {end}, but {opening.recovery_point} was synced"
        return CorruptRecord(segment.path, scan.size, reason)
    following = later[0].base_offset
    if end == following or end < following <= opening.gaps_below:
        return None
    reason = f"ends at offset {scan.next_offset}, the next segment begins at {following}"
    return CorruptRecord(segment.path, scan.size, reason)


def _is_rot(opening: Opening, scan: SegmentScan, segment: Segment, later: list[Segment]) -> bool:
    """Whether `scan` ended at rot, not at an unfinished write: see the table at the file's top."""
    if opening.clean or scan.next_offset < opening.recovery_point:
        return True
    start = scan.size
    views = [
        segment.file.view(0, segment.file.capacity),
        *(s.file.view(0, s.file.capacity) for s in later),
    ]
    if opening.same_boot:
        # A segment is complete before the next one is made.
        return (
            bool(later)
            or has_good_batch_after(views[0], start, scan.next_offset, beyond=start)
            or not is_torn(views[0], start)
        )
    passed = -start
    for view in views:
        distance_min = SYNC_WINDOW_SIZE - passed
        if has_good_batch_after(view, start, scan.next_offset, beyond=max(start, distance_min)):
            return True
        passed += len(view)
        start = 0
    return False


def _tell_cut(
    topic_partition: TopicPartition,
    error: CorruptRecord,
    segment: Segment,
    later: list[Segment],
    *,
    wall_ms: int,
) -> tuple[int, Degradation]:
    """Log that recovery cuts the log at the end of `segment`.

    Return the number of bytes cut off, and the degradation to report.
    """
    size = content_size(segment.file.view(segment.size, segment.file.capacity))
    size += sum(content_size(each.file.view(0, each.file.capacity)) for each in later)
    reason = (
        f"cut at offset {segment.next_offset}: {size} bytes in {1 + len(later)} segments were put "
        f"aside ({segment.file.directory}/*.quarantine): {error}"
    )
    events.warning("%s was %s", topic_partition, reason)
    return size, Degradation(CUT, str(topic_partition), since_ms=wall_ms, reason=reason)


def _tell_opened(log: Log, *, recovered: bool) -> None:
    if log.failure is not None:
        events.error(
            "%s is damaged: it is served up to offset %d and refuses writes: %s",
            log.topic_partition,
            log.log_end_offset,
            log.failure,
        )
    elif recovered:
        events.info(
            "%s was recovered after an unclean shutdown: offsets %d to %d in %d segments",
            log.topic_partition,
            log.offsets.log_start_offset,
            log.log_end_offset,
            len(log.segments),
        )
