"""Truncating a log, for a follower whose last records differ from the leader's.

A file that readers may have mapped is never shortened: touching a page beyond the end of a mapped
file kills the process. Instead the part to keep is copied into a new file, which is renamed over
the old one. Readers that have the old segment continue with the old file.
"""

from __future__ import annotations

from _bisect import bisect_right

from embedlog.errors import KafkaStorageError
from embedlog.runtime.files import File, write_fully
from embedlog.storage import paths
from embedlog.storage.batch_walk import walk
from embedlog.storage.producers.append import remove_snapshots
from embedlog.storage.segments.segment import Segment, base_offset_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.log.log import Log

_COPY_SIZE = 1 << 20


def truncate_to(log: Log, offset: int) -> bool:
    """Remove the batch that holds `offset`, and all later ones; return whether there were any.

    Requires: the partition lock.

    Raises:
        KafkaStorageError: the disk refuses. Perhaps only some of the last segments were removed.
    """
    log.check_usable()
    if offset >= log.log_end_offset:
        log.epochs.truncate_from_end(log.log_end_offset)
        return False
    segments = log.segments
    if offset < segments[0].base_offset:
        truncate_fully_and_start_at(log, offset)
        return True
    _check_settled(log)
    kept = segments[bisect_right(segments, offset, key=base_offset_of) - 1]
    position = kept.indexes.position_of(offset, kept.size)
    with log.durability.lock:  # a sync under way must not report removed records as durable
        log.offsets.before_truncation(offset)
        left = segments
        try:
            shortened, file = _copy(log, kept, position)
            while left[-1] is not kept:
                left[-1].file.remove()
                left = left[:-1]
            kept.file.part_with()
            log.files.rename(shortened.path + paths.TEMPORARY, shortened.path)
            left = (*left[:-1], shortened)
            file.close()
        except OSError as error:
            raise log.health.refused(error) from error
        finally:
            # Even after an interrupt the log must have the segments that are in the directory.
            if left is not segments:
                log.replace_segments(left)
    return True


def lose_unsynced(log: Log) -> None:
    """Remove the records that are not synced, to simulate a loss of power.

    Requires and raises as `truncate_to`.
    """
    truncate_to(log, max(log.durability.synced_offset, log.offsets.log_start_offset))


def truncate_fully_and_start_at(log: Log, offset: int) -> None:
    """Remove all records, and continue as an empty log that begins at `offset`.

    Requires: the partition lock.

    Raises:
        KafkaStorageError: the disk refuses. Perhaps only some of the last segments were removed.
    """
    log.check_usable()
    _check_settled(log)
    with log.durability.lock:
        # Set the start offset first: if a crash follows the removal of the segments, the log begins
        # there again.
        former, log.offsets.log_start_offset = log.offsets.log_start_offset, offset
        try:
            log.offsets.before_truncation(offset)
        except KafkaStorageError:
            log.offsets.log_start_offset = former
            raise
        left = segments = log.segments
        try:
            # Producer snapshots only save time, and would be wrong for new records.
            remove_snapshots(log.files, log.directory)
            while left:
                if left[-1].base_offset == offset:
                    left[-1].file.part_with()
                left[-1].file.remove()
                left = left[:-1]
        except OSError as error:
            raise log.health.refused(error) from error
        finally:
            # Even after an interrupt the log must have the segments that are in the directory.
            if left:
                log.offsets.log_start_offset = former
                if left is not segments:
                    log.replace_segments(left)
        segment = log.chain.new(offset)
        try:
            segment.file.create()  # if this fails, the next write creates it
        except OSError as error:
            raise log.health.refused(error) from error
        finally:
            _start_over(log, segment)


def _start_over(log: Log, segment: Segment) -> None:
    """Make `segment` the log's only one, and forget its epochs and producers.

    Requires: the log's directory holds no producer snapshot.

    Raises:
        KafkaStorageError: the epochs cannot be stored; the next append stores them.
    """
    log.epochs.clear()
    log.transactions.applied_offset = -1
    log.offsets.log_start_offset = segment.base_offset
    log.replace_segments((segment,))
    log.epochs.store()


def _check_settled(log: Log) -> None:
    """Raise KafkaStorageError while a swap by compaction waits for the disk.

    Compaction's new segment may hold records that are to be removed.
    """
    if log.chain.is_swapping:
        raise KafkaStorageError(
            f"{log.topic_partition}: a compacted segment is yet to take its place"
        )


def _copy(log: Log, former: Segment, position: int) -> tuple[Segment, File]:
    """Copy the batches of `former` before `position` into a segment with a temporary name."""
    segment = log.chain.new(former.base_offset)
    file = log.files.open(segment.path + paths.TEMPORARY, create=True)
    file.truncate(0)
    for start in range(0, position, _COPY_SIZE):
        end = min(start + _COPY_SIZE, position)
        write_fully(file.write, [former.file.view(start, end)], start)
    if log.config.durability == "fsync":
        file.sync()
    segment.end = (former.base_offset, 0, -1, -1)
    interval = log.config.index_interval_bytes
    for _, size, _, last_offset, timestamp, _ in walk(
        former.file.view(0, position), 0, position, former.path
    ):
        segment.extend(last_offset, size, timestamp, interval)
    segment.file.capacity = position
    segment.file.dirty = True
    segment.aborted.index = None
    segment.trusted_size = former.trusted_size
    return segment, file
