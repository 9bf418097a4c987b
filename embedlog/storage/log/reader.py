"""Reading a log: batches from an offset on, and look-ups by timestamp. No lock, no copy.

Batches that an earlier process wrote are checked when they are first read. Those before the byte
position `Segment.trusted_size` have been checked.
"""

from __future__ import annotations

from _bisect import bisect_right
from struct import Struct

from embedlog import errors
from embedlog.errors import CorruptRecord
from embedlog.storage.batch_walk import walk
from embedlog.storage.log_values import LogRead
from embedlog.storage.segments.segment import Segment, base_offset_of
from embedlog.storage.segments.segment_file import NOTHING
from embedlog.storage.segments.segment_indexes import HINTS_MAX
from embedlog.storage.validation.validated_batch import MAGIC
from wire.records.batch import iter_batches
from wire.records.crc32c import crc32c
from wire.records.errors import RecordsError
from wire.records.format import ATTRIBUTES_POSITION, CRC_POSITION, MAGIC_POSITION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition
    from embedlog.storage.log.epochs import LogEpochs
    from embedlog.storage.log.offsets import LogOffsets
    from embedlog.storage.log_health import LogHealth
    from embedlog.storage.segments.chain import SegmentChain

_CRC = Struct(">I")

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
"""These negative timestamps have a special meaning in ListOffsets. -5 and -6, which are for tiered
storage, find nothing."""


class LogReader:
    """The reader of one log. Thread-safe, without a lock."""

    __slots__ = ("_chain", "_epochs", "_health", "_offsets", "_topic_partition")

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        chain: SegmentChain,
        offsets: LogOffsets,
        epochs: LogEpochs,
        health: LogHealth,
    ) -> None:
        self._topic_partition = topic_partition
        self._chain = chain
        self._offsets = offsets
        self._epochs = epochs
        self._health = health

    def read(
        self, offset: int, *, max_bytes: int, end_offset: int, min_one: bool = True
    ) -> LogRead:
        """Return whole batches; the first one holds `offset`, the last ends before `end_offset`.

        They are of one segment and at most `max_bytes` long. With `min_one` the first batch is
        returned even if it is longer (KIP-74). The view is read-only and stays valid after
        retention deletes the file.

        Raises:
            OffsetOutOfRange: `offset` is outside [log_start_offset, log_end_offset].
            CorruptRecord: the batch at `offset` is damaged, or the log ends there because of rot.
        """
        segment = self._chain.segments[-1]
        next_offset, size, _, _ = segment.end
        if not self._offsets.log_start_offset <= offset <= next_offset:
            self._health.check_rot()
            raise self._out_of_range(offset, next_offset)
        if offset < segment.base_offset:
            segment = self._older(offset)
            next_offset, size, _, _ = segment.end
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
            if end >= segment.trusted_size:
                good = self._find_damage(segment, position, end, offset)
                if good is not None:
                    end, next_offset = good
            if len(hints) >= HINTS_MAX:
                hints.clear()
            hints[next_offset] = end
            view = segment.file.view(position, end)
        else:
            view = NOTHING
            if self._health.failure is not None and offset == self._chain.end_offset:
                self._health.check_rot()
        return LogRead((view, next_offset, segment.base_offset, position))

    def _older(self, offset: int) -> Segment:
        """Return the first segment with a batch at or after `offset`, else the last segment.

        Requires: `offset` lies before the last segment.
        """
        segments = self._chain.segments
        slot = bisect_right(segments, offset, key=base_offset_of) - 1
        for segment in segments[slot:-1]:
            size = segment.end[1]
            if segment.indexes.position_of(offset, size) != size:
                return segment
            # Compaction left nothing here at or after `offset`.
            self._check_gap(segment, size, offset)
        return segments[-1]

    def _out_of_range(self, offset: int, end: int) -> errors.KafkaError:
        return errors.OffsetOutOfRange(
            f"Received request for offset {offset} for partition {self._topic_partition}, but we "
            f"only have log segments from offset {self._offsets.log_start_offset} to {end}."
        )

    def fetch_offset(
        self, timestamp: int, *, end_offset: int | None = None
    ) -> tuple[int, int, int] | None:
        """Return (timestamp, offset, leader epoch) by the rules of ListOffsets, or None.

        `timestamp` may be -1 latest, -2 earliest, -3 largest timestamp, -4 earliest local. No found
        offset lies beyond `end_offset`: the high watermark, or for read_committed the last stable
        offset. Without `end_offset` the log's end is the bound.
        """
        epochs, start = self._epochs.cache, self._offsets.log_start_offset
        bound = self._chain.end_offset if end_offset is None else end_offset
        if timestamp == LATEST:
            return -1, bound, self._known(epochs.latest_epoch)
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            return -1, start, self._known(epochs.epoch_for_offset(start))
        if timestamp == MAX_TIMESTAMP:
            found = _largest_timestamp(self._chain.segments)
        elif timestamp < 0:
            return -1, -1, -1
        else:
            found = _first_at_or_after(self._chain.segments, timestamp, start)
        return None if found is None or found[1] >= bound else found

    def _known(self, epoch: int) -> int:
        return epoch if epoch >= 0 else self._epochs.latest

    # Checking the batches of an earlier process

    def verify(self, segment: Segment, position: int, end: int, offset: int) -> int:
        """Check batches that an earlier process wrote; return the offset after the last one.

        The first batch must hold `offset`, which a caller of `read` asked for.

        Raises:
            CorruptRecord: a checksum is wrong, offsets are not in order, or an epoch differs from
                the log's epoch cache. (No checksum covers offsets and epochs.)
        """
        _, next_offset, damage = self._check(segment, position, end, offset)
        if damage is not None:
            self._health.note_damage(damage)
            raise damage
        return next_offset

    def _find_damage(
        self, segment: Segment, position: int, end: int, offset: int
    ) -> tuple[int, int] | None:
        """Check batches as `verify` does, but accept the good ones before the first bad one.

        Return (byte position, offset) of the end of the good batches. Return None if all batches
        are good up to the segment's end, or this process wrote them. Raise CorruptRecord only if
        the first batch is bad.
        """
        if position >= segment.loaded_size or end == segment.trusted_size == segment.end[1]:
            return None
        good_end, good_offset, damage = self._check(segment, position, end, offset)
        if damage is None:
            return None if end == segment.end[1] else (good_end, good_offset)
        self._health.note_damage(damage)
        if good_end == position or good_offset >= segment.end[0]:
            raise damage  # even if the next read would begin in the next segment and miss it
        return good_end, good_offset

    def _check(
        self, segment: Segment, position: int, end: int, offset: int
    ) -> tuple[int, int, CorruptRecord | None]:
        """Return the byte position and offset where the good batches end, and the damage there.

        The damage is None if all are good. If a batch after a gap overlaps the next one, either of
        the two may be the bad one, so the good batches end before both.
        """
        view = segment.file.view(0, end)
        before_gap: tuple[int, int] | None = None
        expected = segment.base_offset if position == 0 else -1
        offset_end = segment.end[0]
        gaps_below = self._offsets.gaps_below
        epoch_of, read_crc = self._epochs.cache.epoch_for_offset, _CRC.unpack_from
        good_end, good_offset, reason = position, offset, ""
        try:
            for at, size, base_offset, last_offset, _, epoch in walk(
                view, position, end, segment.path
            ):
                if expected < 0 and base_offset > offset:
                    self._check_gap(segment, at, offset)
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

    def _check_gap(self, segment: Segment, position: int, offset: int) -> None:
        """Check the batches before `position`, where the first batch behind `offset` begins.

        If compaction removed the batch of `offset`, these batches are in order. If not, one of them
        may have a damaged base offset, and the reader would miss it. The check begins at the
        second-last index entry before `position`: the last one may point to the damaged batch.
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
            if base_offset < expected or not (is_next or base_offset <= self._offsets.gaps_below):
                reason = f"offsets {base_offset}..{last_offset}, expected {expected}"
                damage = CorruptRecord(segment.path, at, reason)
                self._health.note_damage(damage)
                raise damage
            expected = last_offset + 1


def cut(
    segment: Segment, position: int, end: int, *, offset: int, max_bytes: int, min_one: bool
) -> tuple[int, int]:
    """Return the end of the batches in [position, end) that fit `max_bytes`, and the next offset.

    With `min_one` the first batch always fits. The next offset comes from the header of the next
    batch, while `LogReader.verify` computes it from the last batch that it checked.
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


def _wrong_legacy_checksum(view: memoryview, position: int, end: int) -> str:
    """Return the error in a message of magic 0 or 1, or "" if it is good."""
    try:
        for batch in iter_batches(view, position, end):
            batch.check_crc()
    except RecordsError as error:
        return str(error)
    return ""


def _largest_timestamp(segments: tuple[Segment, ...]) -> tuple[int, int, int] | None:
    """Return the first record with the largest timestamp, even if it is below the log's start.

    If no record has a timestamp, return the first record; if the log is empty, None.
    """
    best = max(segments, key=lambda segment: segment.largest()[0])
    timestamp, holder = best.largest()
    size = best.end[1]
    position = 0 if timestamp < 0 else best.indexes.position_of(holder, size)
    return _first_record(best, position, size, timestamp, 0)


def _first_at_or_after(
    segments: tuple[Segment, ...], timestamp: int, start_offset: int
) -> tuple[int, int, int] | None:
    for segment in segments:
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
    """Return (timestamp, offset, epoch) of the first matching record from byte `position` on.

    A record matches if timestamp and offset are at least `timestamp` and `start_offset`.
    """
    view = segment.file.view(0, size)
    for at, batch_size, _, last_offset, latest, epoch in walk(view, position, size, segment.path):
        if latest < timestamp or last_offset < start_offset:
            continue
        for batch in iter_batches(view, at, at + batch_size):
            for record in batch.records():
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return record.timestamp, record.offset, epoch
    return None
