"""A follower's append: batches as their leader stamped them."""

from __future__ import annotations

from embedlog import errors
from embedlog.storage.gaps import EVERYWHERE
from embedlog.storage.log_values import LogAppendInfo
from wire.records.batch import RecordBatch, iter_batches
from wire.records.errors import CorruptBatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import Buffer
    from embedlog.storage.log_state import LogState


def append_batches(
    log: LogState, records: Buffer, leader_epoch: int | None, now_ms: int
) -> LogAppendInfo:
    """See `Log.append_as_follower`. Requires: the partition lock."""
    view = memoryview(records)
    start = log.log_end_offset
    batches = _checked(log, view, start, leader_epoch)
    if not batches:
        return LogAppendInfo((start, start - 1, -1, log.log_start_offset, False, -1, 0))
    if log.gaps_below != EVERYWHERE and _has_gap(batches, start):
        log.allow_gaps_below(EVERYWHERE)  # once: the leader's may be anywhere
    size = sum(batch.size for batch in batches)
    last_offset = batches[-1].last_offset
    latest = max(batch.max_timestamp for batch in batches)
    for batch in batches:
        if batch.partition_leader_epoch > log.latest_epoch:
            log.assign_epoch(batch.partition_leader_epoch, batch.base_offset)
    first_offset = batches[0].base_offset
    segment = log.segment_for(size, first_offset, last_offset, latest, now_ms)
    _, position, largest, holder = segment.end
    log.write(segment, (view[:size],), size)
    for batch in batches:
        if batch.max_timestamp > largest:
            largest, holder = batch.max_timestamp, batch.last_offset
    segment.end = (last_offset + 1, position + size, largest, holder)
    if position == 0:
        segment.limits.first_timestamp = batches[0].max_timestamp
    interval = log.config.index_interval_bytes
    for batch in batches:
        segment.indexes.count(batch.last_offset, position, batch.size, interval, segment.end)
        position += batch.size
        log.replay(batch)
    return LogAppendInfo((first_offset, last_offset, -1, log.log_start_offset, False, latest, size))


def _has_gap(batches: list[RecordBatch], offset: int) -> bool:
    for batch in batches:
        if batch.base_offset != offset:
            return True
        offset = batch.next_offset
    return False


def _checked(
    log: LogState, view: memoryview, next_offset: int, leader_epoch: int | None
) -> list[RecordBatch]:
    """The whole batches of `view` up to the first of a later epoch, all of them good."""
    batches: list[RecordBatch] = []
    try:
        for batch in iter_batches(view):
            if not isinstance(batch, RecordBatch):
                raise CorruptBatch(f"magic {batch.magic} from a leader")
            if leader_epoch is not None and batch.partition_leader_epoch > leader_epoch:
                break
            batch.check_crc()
            if batch.base_offset < next_offset or batch.last_offset_delta < 0:
                raise errors.UnknownServerError(
                    f"Out of order offsets in append to {log.topic_partition}: batch at "
                    f"{batch.base_offset}..{batch.last_offset}, expected {next_offset} or later"
                )
            next_offset = batch.next_offset
            batches.append(batch)
    except CorruptBatch as error:
        raise errors.CorruptMessage(f"{error} in topic partition {log.topic_partition}") from None
    return batches
