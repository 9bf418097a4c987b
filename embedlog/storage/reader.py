"""Reads that are not at the tail, and look-ups by time."""

from __future__ import annotations

from _bisect import bisect_right
from struct import Struct

from embedlog.errors import CorruptRecord
from embedlog.storage.batch_walk import walk
from embedlog.storage.log_values import LogRead
from embedlog.storage.segment import Segment
from embedlog.storage.validation.validated_batch import MAGIC
from wire.records.batch import ATTRIBUTES_POSITION, CRC_POSITION, MAGIC_POSITION, iter_batches
from wire.records.crc32c import crc32c
from wire.records.errors import RecordsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.log_state import LogState

NOTHING = memoryview(b"")
_CRC = Struct(">I")

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
"""Timestamps below 0 that ListOffsets gives a meaning; -5 and -6 are of tiered storage."""


def read_older(
    log: LogState, offset: int, max_bytes: int, end_offset: int, min_one: bool
) -> LogRead:
    """`Log.read` of an offset that lies before the last segment."""
    segments = log.segments
    slot = bisect_right(segments, offset, key=_base_offset) - 1
    for segment in segments[slot:]:
        next_offset, size, _, _ = segment.end
        position = segment.indexes.position_of(offset, size)
        if position == size and segment is not segments[-1]:
            # Compaction left nothing here at or after `offset`.
            _check_gap(log, segment, size, offset)
            continue
        end = size
        if end_offset < next_offset:
            end = max(position, segment.indexes.position_of(end_offset, size))
            next_offset = max(offset, end_offset)
        if end - position > max_bytes:
            end, next_offset = cut(
                segment, position, end, offset=offset, max_bytes=max_bytes, min_one=min_one
            )
        trusted = segment.trusted_size
        if end > trusted or end == trusted < size:
            good = find_damage(log, segment, position, end, offset)
            if good is not None:
                end, next_offset = good
        if end != size:
            segment.indexes.remember(next_offset, end)
        view = segment.file.view(position, end)
        return LogRead((view, next_offset, segment.base_offset, position))
    raise AssertionError((offset, segments))


def cut(
    segment: Segment, position: int, end: int, *, offset: int, max_bytes: int, min_one: bool
) -> tuple[int, int]:
    """Where the whole batches of [position, end) that fit `max_bytes` end, and the next offset.

    With `min_one` the first batch counts as fitting. The offset is that of the first batch which
    does not fit, as its head tells: `find_damage` and `verify` know it from those before.
    """
    limit = position + max_bytes
    start = max(position, segment.indexes.boundary_before(limit, segment.end[1]))
    fitting_end, next_offset = start, offset
    view = segment.file.view(0, end)
    try:
        for at, size, base_offset, last_offset, _, _ in walk(view, start, end, segment.path):
            if at + size > limit and not (min_one and at == position):
                return at, max(offset, base_offset)
            fitting_end, next_offset = at + size, last_offset + 1
            if at + size >= limit:
                break
    except CorruptRecord:
        if fitting_end <= position:
            raise
    return fitting_end, next_offset


def verify(log: LogState, segment: Segment, position: int, end: int, offset: int) -> int:
    """Check batches that an earlier process wrote, when they are first read.

    `offset` is what the reader asked for: the first batch holds it. Returns the offset behind them.

    Raises:
        CorruptRecord: a wrong checksum; offsets that do not continue, or epochs that are not the
            log's, which no checksum covers.
    """
    _, next_offset, damage = _check(log, segment, position, end, offset)
    if damage is not None:
        log.note_damage(damage)
        raise damage
    return next_offset


def find_damage(
    log: LogState, segment: Segment, position: int, end: int, offset: int
) -> tuple[int, int] | None:
    """As `verify`, but what precedes the first bad batch may be read: where it ends, in bytes and
    as an offset; None when all is good up to the segment's end, or was written by this process.

    Raises:
        CorruptRecord: the first batch is bad.
    """
    if position >= segment.loaded_size:
        return None
    good_end, good_offset, damage = _check(log, segment, position, end, offset)
    if damage is None:
        return None if end == segment.end[1] else (good_end, good_offset)
    log.note_damage(damage)
    if good_end == position or good_offset >= segment.end[0]:
        raise damage  # also when the next read would be of the next segment
    return good_end, good_offset


def _check(
    log: LogState, segment: Segment, position: int, end: int, offset: int
) -> tuple[int, int, CorruptRecord | None]:
    """How far the batches are good, in bytes and as an offset, and what is wrong behind that.

    A batch behind a gap that overlaps the next one may be the wrong one of the two.
    """
    view = segment.file.view(0, end)
    before_gap: tuple[int, int] | None = None
    expected = segment.base_offset if position == 0 else -1
    offset_end = segment.end[0]
    gaps_below = log.gaps_below
    epoch_of, read_crc = log.leader_epochs.epoch_for_offset, _CRC.unpack_from
    good_end, good_offset, reason = position, offset, ""
    try:
        for at, size, base_offset, last_offset, _, epoch in walk(view, position, end, segment.path):
            if expected < 0 and base_offset > offset:
                _check_gap(log, segment, at, offset)
            is_next = base_offset == expected if expected >= 0 else base_offset <= offset
            known = epoch_of(base_offset)
            if not offset <= last_offset < offset_end or (
                not is_next and not expected < base_offset <= gaps_below
            ):
                reason = f"offsets {base_offset}..{last_offset}, expected {expected}"
                good_end, good_offset = before_gap or (good_end, good_offset)
            elif known not in (epoch, -1):
                reason = f"leader epoch {epoch} at offset {base_offset}, expected {known}"
            elif view[at + MAGIC_POSITION] != MAGIC:
                reason = _wrong_legacy_checksum(view, at, at + size)
            else:
                (stored,) = read_crc(view, at + CRC_POSITION)
                computed = crc32c(view[at + ATTRIBUTES_POSITION : at + size])
                if computed != stored:
                    reason = f"crc {computed:#010x}, stored {stored:#010x}"
            if reason:
                break
            before_gap = None if is_next else (good_end, good_offset)
            good_end, good_offset = at + size, last_offset + 1
            expected = good_offset
    except CorruptRecord as error:
        return good_end, good_offset, error
    if before_gap is not None and not reason and end < segment.end[1]:
        following = int.from_bytes(segment.file.view(end, end + 8), "big", signed=True)
        if following < good_offset:
            reason = f"offset {good_offset - 1}, the next batch begins at {following}"
            good_end, good_offset = before_gap
    if position <= segment.trusted_size:
        segment.trusted_size = max(segment.trusted_size, good_end)
    if reason:
        return good_end, good_offset, CorruptRecord(segment.path, good_end, reason)
    return good_end, good_offset, None


def _check_gap(log: LogState, segment: Segment, position: int, offset: int) -> None:
    """No batch holds `offset`, the next one begins at `position`: look at those before.

    If compaction left nothing there they are in order; else one with a wrong base offset is passed
    over. From the last but one that the index names: the wrong one may be the last.

    Raises:
        CorruptRecord: one of them is not where its offsets say.
    """
    if position <= segment.trusted_size or not segment.loaded_size:
        return
    start = position
    for _ in range(2):
        start = segment.indexes.boundary_before(max(0, start - 1), segment.size)
    expected = segment.base_offset
    view = segment.file.view(0, position)
    for at, _, base_offset, last_offset, _, _ in walk(view, start, position, segment.path):
        is_next = base_offset == expected or at == start > 0
        if base_offset < expected or not (is_next or base_offset <= log.gaps_below):
            reason = f"offsets {base_offset}..{last_offset}, expected {expected}"
            damage = CorruptRecord(segment.path, at, reason)
            log.note_damage(damage)
            raise damage
        expected = last_offset + 1


def _wrong_legacy_checksum(view: memoryview, position: int, end: int) -> str:
    """What is wrong with a message of magic 0 or 1, "" when nothing is."""
    try:
        for batch in iter_batches(view, position, end):
            batch.check_crc()
    except RecordsError as error:
        return str(error)
    return ""


def fetch_offset(
    log: LogState, timestamp: int, end_offset: int | None
) -> tuple[int, int, int] | None:
    """See `Log.fetch_offset`."""
    epochs = log.leader_epochs
    bound = log.log_end_offset if end_offset is None else end_offset
    if timestamp == LATEST:
        return -1, bound, _epoch(log, epochs.latest_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return -1, start, _epoch(log, epochs.epoch_for_offset(start))
    if timestamp == MAX_TIMESTAMP:
        found = _largest_timestamp(log)
    elif timestamp < 0:
        return -1, -1, -1
    else:
        found = _first_at_or_after(log, timestamp)
    return None if found is None or found[1] >= bound else found


def _largest_timestamp(log: LogState) -> tuple[int, int, int] | None:
    """The first record with the largest timestamp of all, also below the log's start.

    A log whose records have no timestamps answers its first record, an empty one nothing.
    """
    best = max(log.segments, key=lambda segment: segment.largest()[0])
    timestamp, holder = best.largest()
    size = best.end[1]
    position = 0 if timestamp < 0 else best.indexes.position_of(holder, size)
    return _first_record(best, position, size, timestamp, 0)


def _first_at_or_after(log: LogState, timestamp: int) -> tuple[int, int, int] | None:
    start_offset = log.log_start_offset
    for segment in log.segments:
        if segment.largest()[0] < timestamp:
            continue
        size = segment.end[1]
        position = segment.indexes.position_of_time(timestamp, size)
        found = _first_record(segment, position, size, timestamp, start_offset)
        if found is not None:
            return found
    return None


def _first_record(
    segment: Segment, position: int, size: int, timestamp: int, start_offset: int
) -> tuple[int, int, int] | None:
    """(timestamp, offset, epoch) of the first record from `position` on that is not older."""
    view = segment.file.view(0, size)
    for at, batch_size, _, last_offset, latest, epoch in walk(view, position, size, segment.path):
        if latest < timestamp or last_offset < start_offset:
            continue
        for batch in iter_batches(view, at, at + batch_size):
            for record in batch.records():
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return record.timestamp, record.offset, epoch
    return None


def _epoch(log: LogState, epoch: int) -> int:
    return epoch if epoch >= 0 else log.latest_epoch


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
