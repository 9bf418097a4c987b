"""Cutting records off a log's end: a follower whose history parted from the leader's.

A file that readers may have mapped is never made shorter: touching a page beyond the end of a
mapped file kills the process. What is kept of a cut segment is copied into a new file, which takes
the old one's name; views of the old file stay as they were, and so do the reads of those who hold
the old segment.
"""

from __future__ import annotations

from embedlog.runtime.files import write_fully
from embedlog.storage import paths
from embedlog.storage.batch_walk import walk
from embedlog.storage.segment import Segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.log_state import LogState

_COPY_SIZE = 1 << 20


def truncate_to(log: LogState, offset: int) -> bool:
    """See `Log.truncate_to`. Requires: the partition lock."""
    if offset >= log.log_end_offset:
        if log.leader_epochs.truncate_from_end(log.log_end_offset):
            log.epochs_changed()
        return False
    segments = log.segments
    if offset < segments[0].base_offset:
        truncate_fully(log, offset)
        return True
    kept = [segment for segment in segments if segment.base_offset <= offset]
    position = kept[-1].position_of(offset, kept[-1].size)
    log.before_truncation(offset)
    try:
        for segment in reversed(segments[len(kept) :]):
            segment.remove()
        kept[-1] = _shortened(log, kept[-1], position)
    except OSError as error:
        raise log.refused(error) from error
    log.replace_segments(tuple(kept))
    return True


def truncate_fully(log: LogState, offset: int) -> None:
    """See `Log.truncate_fully_and_start_at`. Requires: the partition lock."""
    # The start offset first: if the segments go and a crash follows, the log restarts there.
    log.log_start_offset = offset
    log.before_truncation(offset)
    try:
        for segment in reversed(log.segments):
            if segment.base_offset == offset:
                segment.part_with()
            segment.remove()
        segment = log.new_segment(offset)
        segment.create()
    except OSError as error:
        raise log.refused(error) from error
    log.leader_epochs.clear()
    log.epochs_changed()
    log.replace_segments((segment,))


def _shortened(log: LogState, former: Segment, position: int) -> Segment:
    """A segment of the batches of `former` before `position`, under the same name."""
    segment = log.new_segment(former.base_offset)
    path = segment.path + paths.TEMPORARY
    file = log.files.open(path, create=True)
    file.truncate(0)
    for start in range(0, position, _COPY_SIZE):
        end = min(start + _COPY_SIZE, position)
        write_fully(file.write, [former.view(start, end)], start)
    if log.config.durability == "fsync":
        file.sync()
    former.part_with()
    log.files.rename(path, segment.path)
    file.close()
    next_offset, largest, holder = former.base_offset, -1, -1
    for at, _, _, last_offset, timestamp, _ in walk(
        former.view(0, position), 0, position, former.path
    ):
        if at == 0:
            segment.first_timestamp = timestamp
        next_offset = last_offset + 1
        if timestamp > largest:
            largest, holder = timestamp, last_offset
    segment.end = (next_offset, position, largest, holder)
    segment.capacity = position
    segment.dirty = True
    segment.rebuild_indexes(log.config.index_interval_bytes)
    segment.aborted = None
    segment.trusted_size, segment.loaded_size = former.trusted_size, former.loaded_size
    return segment
