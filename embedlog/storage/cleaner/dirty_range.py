"""The dirty range: the part of a log that compaction has not read, and whether a round is due.

    log start           first dirty                  end                    log end
        |    clean          |         dirty           |    not yet cleanable   |

`end` is the base offset of a segment: of the segment that holds the last stable offset, of the last
segment, or of the first segment younger than min.compaction.lag.ms, whichever is lowest. A round is
due if dirty / (clean + dirty) in bytes is above min.cleanable.dirty.ratio, or if the oldest dirty
record is older than max.compaction.lag.ms (KIP-354).
"""

from __future__ import annotations

from embedlog.common import Value
from embedlog.storage.batch_walk import walk
from embedlog.storage.log.log import Log
from embedlog.storage.log_config import NO_LIMIT
from embedlog.storage.segments.segment import Segment, segments_from


class DirtyRange(Value):
    """The dirty range of a log, offsets `first_dirty` to `end` (exclusive). Sizes are in bytes."""

    first_dirty: int
    end: int
    clean_size: int
    dirty_size: int
    is_due: bool
    wait_ms: int | None
    """Milliseconds until a lag setting may change the result; None if time alone cannot do so."""

    @property
    def ratio(self) -> float:
        """The share of dirty bytes in the bytes before `end`."""
        return _ratio(self.clean_size, self.dirty_size)


def dirty_range(log: Log, now_ms: int) -> DirtyRange:
    """Return the dirty range of a log of a compacted topic. `now_ms` is wall time. No lock.

    Raises:
        KafkaStorageError: a segment cannot be opened.
    """
    config = log.config
    segments = log.segments
    first_dirty = log.offsets.cleaned_offset
    # The checkpoint may lie outside the log, after deleted records or a lost end: then the whole
    # log is dirty.
    if not log.offsets.log_start_offset <= first_dirty <= segments[-1].next_offset:
        first_dirty = log.offsets.log_start_offset
    unseen = segments_from(segments, first_dirty)
    limit = log.offsets.last_stable_offset
    waits = []
    if config.min_compaction_lag_ms > 0:
        young = _first_younger(unseen[:-1], now_ms - config.min_compaction_lag_ms)
        if young is not None:
            limit = min(limit, young.base_offset)
            waits.append(_age_base(young) + config.min_compaction_lag_ms - now_ms)
    end = segments_from(segments, limit)[0].base_offset
    dirty_size = sum(segment.size for segment in unseen if segment.base_offset < end)
    is_overdue = False
    if config.max_compaction_lag_ms < NO_LIMIT:
        times = map(_first_timestamp, unseen[:-1])
        oldest = min((each for each in times if each > 0), default=NO_LIMIT)
        is_overdue = oldest < now_ms - config.max_compaction_lag_ms and dirty_size > 0
        if oldest < NO_LIMIT and not is_overdue:
            waits.append(oldest + config.max_compaction_lag_ms + 1 - now_ms)
    clean_size = sum(segment.size for segment in segments if segment.base_offset < first_dirty)
    is_dirty = _ratio(clean_size, dirty_size) > config.min_cleanable_dirty_ratio
    return DirtyRange(
        first_dirty=first_dirty,
        end=end,
        clean_size=clean_size,
        dirty_size=dirty_size,
        is_due=is_overdue or is_dirty,
        wait_ms=min((wait for wait in waits if wait > 0), default=None),
    )


def _ratio(clean_size: int, dirty_size: int) -> float:
    total = clean_size + dirty_size
    return dirty_size / total if total else 0.0


def _first_younger(segments: tuple[Segment, ...], than_ms: int) -> Segment | None:
    for segment in segments:
        if _age_base(segment) > than_ms:
            return segment
    return None


def _age_base(segment: Segment) -> int:
    """Return the segment's largest timestamp, or the time of its last append if it has none."""
    largest = segment.largest()[0]
    return largest if largest >= 0 else segment.modified_ms


def _first_timestamp(segment: Segment) -> int:
    """Return the largest timestamp of the segment's first batch; -1 if the segment is empty."""
    size = segment.size
    for info in walk(segment.file.view(0, size), 0, size, segment.path):
        return info[4]
    return -1
