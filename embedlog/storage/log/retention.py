"""Removal of old segments: by start offset, by size, by age.

There is a pass for each of these rules. It begins at the oldest segment and ends before the first
segment to keep. A segment is removed only once the high watermark has passed its end; an empty last
segment stays. If every segment must go, an empty segment is begun first.
"""

from __future__ import annotations

from embedlog.errors import KafkaStorageError
from embedlog.storage.log_health import HARMLESS_ERRORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.storage.log.log import Log
    from embedlog.storage.segments.segment import Segment

    Remove = Callable[[list[str], int], None]

    Rule = Callable[[Segment, int], bool]
    """(segment, base offset of the next segment) -> whether the segment must be removed."""


def delete_old_segments(
    log: Log,
    now_ms: int,
    remove: Remove | None = None,
    *,
    is_closing: bool = False,
    pinned_offset: int | None = None,
) -> int:
    """Remove the segments that the topic's retention does not keep; return how many.

    `now_ms` is wall time. `remove` gets the paths of the renamed files and the delay in
    milliseconds after which to remove them; without `remove` they are removed at once. Views of
    their batches stay readable. The rules of size and age remove nothing from `pinned_offset` on.

    With `is_closing` the age of a segment counts from the last write to its file if that is later
    than its newest timestamp. Otherwise a process that writes a record with an old timestamp and
    closes a second later would lose the record, before Kafka would have checked for the first time.

    Requires: the partition lock.

    Raises:
        KafkaStorageError: the disk refuses. Segments that have left the log but are still on disk
            are removed first at the next call, so that there is never a hole between two segments.
    """
    if log.chain.is_swapping:
        return 0  # wait: compaction's new segment, not yet in place, has records that must stay
    remove_doomed(log, remove)
    taken = _take_out(log, lambda segment, following: following <= log.offsets.log_start_offset)
    if log.config.delete:
        rules = (_size_rule(log), _time_rule(log, now_ms, is_closing=is_closing))
        taken += sum(_take_out(log, _unless_pinned(rule, pinned_offset)) for rule in rules)
    remove_doomed(log, remove)
    return taken


def free_below(log: Log, offset: int) -> bool:
    """Remove at once the segments whose records all lie below `offset`.

    Return whether there were any. No segment above the high watermark is removed. DeleteRecords
    uses it on a full disk, where the new start offset cannot be stored before space is freed.
    Requires: the partition lock.
    """
    log.check_usable()
    offset = min(offset, log.offsets.high_watermark)
    if log.chain.is_swapping or not _take_out(log, lambda segment, following: following <= offset):
        return False
    remove_doomed(log)
    return True


def remove_doomed(log: Log, remove: Remove | None = None) -> None:
    """Remove the files of segments that have left the log, then sync the directory.

    It is synced at durability `os` as well. The checkpoints will say that nothing is below the
    first segment, and that everything below the recovery point is whole. So recovery would trust a
    segment that a loss of power brings back, though it may never have been synced.
    """
    if not log.chain.doomed:
        return
    delay_ms = log.config.file_delete_delay_ms
    is_now = remove is None or log.config.durability == "memory" or delay_ms == 0
    try:
        for segment in log.chain.doomed:
            if remove is None or is_now:
                segment.file.remove()
            else:
                _put_away(segment, remove, delay_ms)
        if log.config.durability != "memory":
            log.files.sync_directory(log.directory)
        log.chain.doomed.clear()
    except OSError as error:
        raise log.health.refused(error) from error


def _put_away(segment: Segment, remove: Remove, delay_ms: int) -> None:
    try:
        remove(segment.file.put_away(), delay_ms)
    except OSError as error:
        if error.errno not in HARMLESS_ERRORS:
            raise
        segment.file.remove()  # remove at once: the rename was refused, for example by a full disk


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


def _time_rule(log: Log, now_ms: int, *, is_closing: bool) -> Rule:
    retention_ms = log.config.retention_ms

    def must_go(segment: Segment, _following: int) -> bool:
        if retention_ms < 0:
            return False
        largest = segment.largest()[0]
        youngest = largest if largest >= 0 else segment.modified_ms
        if is_closing and now_ms - youngest > retention_ms:
            youngest = max(youngest, segment.modified_ms)
        return now_ms - youngest > retention_ms

    return must_go


def _unless_pinned(rule: Rule, pinned_offset: int | None) -> Rule:
    if pinned_offset is None:
        return rule
    return lambda segment, following: following <= pinned_offset and rule(segment, following)


def _take_out(log: Log, must_go: Rule) -> int:
    """Remove from the log, but not yet from disk, the oldest segments that must go; count them."""
    segments = log.segments
    count = 0
    for slot, segment in enumerate(segments):
        is_last = slot == len(segments) - 1
        end = log.log_end_offset if is_last else segments[slot + 1].base_offset
        if log.offsets.high_watermark < end or (is_last and segment.size == 0):
            break
        if not must_go(segment, end):
            break
        count += 1
    if count and count == len(segments):
        count = _make_last_one_go(log, count)
        segments = log.segments
    if count:
        log.chain.doomed += segments[:count]
        log.replace_segments(segments[count:])
    return count


def _make_last_one_go(log: Log, count: int) -> int:
    """Begin a segment after the last one, so that all `count` segments can go.

    If the disk has no room for the new segment, the last one stays. Return how many can go.
    """
    try:
        log.roll()
    except KafkaStorageError:
        if log.failure is not None:
            raise
        return count - 1
    return count
