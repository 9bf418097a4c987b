"""Which old segments go: by start offset, by size, by age.

Segments are looked at oldest first, and the first that must stay ends the pass. A segment is only
removed once the high watermark has passed its end, and never while it is the last and empty. When
all must go, an empty one is begun first.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.storage.log import Log
    from embedlog.storage.segment import Segment

    Rule = Callable[[Segment, int], bool]
    """(segment, first offset of the next one) -> whether the segment must go."""


def delete_old_segments(log: Log, now_ms: int) -> int:
    """Apply the topic's retention; return how many segments went. `now_ms` is wall time.

    Views of their batches stay readable. Requires: the partition lock.

    Raises:
        KafkaStorageError: the disk refuses.
    """
    deleted = _delete(log, lambda segment, following: following <= log.log_start_offset)
    if not log.config.delete:
        return deleted
    deleted += _delete(log, _size_rule(log))
    return deleted + _delete(log, _time_rule(log, now_ms))


def _size_rule(log: Log) -> Rule:
    limit = log.config.retention_bytes
    excess = log.size - limit

    def must_go(segment: Segment, _following: int) -> bool:
        nonlocal excess
        if limit < 0 or excess < segment.size:
            return False
        excess -= segment.size
        return True

    return must_go


def _time_rule(log: Log, now_ms: int) -> Rule:
    retention_ms = log.config.retention_ms

    def must_go(segment: Segment, _following: int) -> bool:
        if retention_ms < 0:
            return False
        largest = segment.largest()[0]
        youngest = largest if largest >= 0 else segment.modified_ms
        return now_ms - youngest > retention_ms

    return must_go


def _delete(log: Log, must_go: Rule) -> int:
    segments = log.segments
    doomed = 0
    for slot, segment in enumerate(segments):
        is_last = slot == len(segments) - 1
        end = log.log_end_offset if is_last else segments[slot + 1].base_offset
        if log.high_watermark < end or (is_last and segment.size == 0):
            break
        if not must_go(segment, end):
            break
        doomed += 1
    if doomed == 0:
        return 0
    if doomed == len(segments):
        log.roll()
        segments = log.segments
    log.replace_segments(segments[doomed:])
    try:
        for segment in segments[:doomed]:
            segment.remove()
    except OSError as error:
        raise log.refused(error) from error
    return doomed
