"""A follower's append: batches keep the offsets and epochs that the leader assigned."""

from __future__ import annotations

from embedlog import errors
from embedlog.storage.log.gaps import EVERYWHERE
from embedlog.storage.log_values import LogAppendInfo
from embedlog.storage.replica.truncation import truncate_fully_and_start_at
from wire.records.batch import RecordBatch, iter_batches
from wire.records.errors import CorruptBatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import Buffer
    from embedlog.storage.log.log import Log


def append_as_follower(
    log: Log, records: Buffer, *, leader_epoch: int | None = None, now_ms: int | None = None
) -> LogAppendInfo:
    """Append batches with the offsets and leader epochs that the leader assigned.

    `leader_epoch` is the epoch that the follower knows: the first batch of a higher epoch, and all
    batches behind it, are left out (KAFKA-18723). An incomplete batch at the end is ignored.
    `now_ms` is wall time. Requires: the partition lock.

    The leader's log may begin within a batch (DeleteRecords). An empty log that begins at the same
    offset takes the whole batch: it starts over at the batch's base offset, as Kafka's followers.

    Raises:
        CorruptMessage: a checksum or the structure is wrong. Nothing was appended.
        UnknownServerError: the offsets do not increase, or begin below the log end offset. Nothing
            was appended.
        KafkaStorageError: the disk refuses a batch. The batches before it are in the log.
    """
    log.check_usable()
    if now_ms is None:
        now_ms = log.clock.wall_ms()
    view = memoryview(records)
    start = log.log_end_offset
    batches = _checked(log, view, start, leader_epoch)
    if batches and batches[0].base_offset < start:
        truncate_fully_and_start_at(log, batches[0].base_offset)
    if not batches:
        return LogAppendInfo((start, start - 1, -1, log.offsets.log_start_offset, False, -1, 0))
    if log.offsets.gaps_below != EVERYWHERE and _has_gap(batches, start):
        log.offsets.allow_gaps_below(EVERYWHERE)  # stored once, not for each gap of the leader
    for batch in batches:
        if batch.partition_leader_epoch != log.epochs.stored:
            log.epochs.follow(batch.partition_leader_epoch, batch.base_offset)
        log.writer.append(
            log.segments[-1],
            (batch.buffer,),
            batch.size,
            first_offset=batch.base_offset,
            last_offset=batch.last_offset,
            latest=batch.max_timestamp,
            now_ms=now_ms,
        )
        log.transactions.replay(batch, log.offsets.high_watermark)
    first_offset, last_offset = batches[0].base_offset, batches[-1].last_offset
    size = sum(batch.size for batch in batches)
    latest = max(batch.max_timestamp for batch in batches)
    start_offset = log.offsets.log_start_offset
    return LogAppendInfo((first_offset, last_offset, -1, start_offset, False, latest, size))


def _has_gap(batches: list[RecordBatch], offset: int) -> bool:
    for batch in batches:
        if batch.base_offset != offset:
            return True
        offset = batch.next_offset
    return False


def _begins_within(log: Log, batch: RecordBatch) -> bool:
    """Return whether the log is empty, and begins at a record of the batch behind the first."""
    start = log.log_end_offset
    return log.offsets.log_start_offset == start and batch.base_offset < start <= batch.last_offset


def _checked(
    log: Log, view: memoryview, next_offset: int, leader_epoch: int | None
) -> list[RecordBatch]:
    """Return the whole batches of `view` before the first one of an epoch above `leader_epoch`.

    Raises as `append_as_follower`.
    """
    batches: list[RecordBatch] = []
    try:
        for batch in iter_batches(view):
            if not isinstance(batch, RecordBatch):
                raise CorruptBatch(f"magic {batch.magic} from a leader")
            if leader_epoch is not None and batch.partition_leader_epoch > leader_epoch:
                break
            batch.check_crc()
            begins_late = not batches and _begins_within(log, batch)
            if batch.base_offset < next_offset and not begins_late or batch.last_offset_delta < 0:
                raise errors.UnknownServerError(
                    f"Out of order offsets in append to {log.topic_partition}: batch at "
                    f"{batch.base_offset}..{batch.last_offset}, expected {next_offset} or later"
                )
            next_offset = batch.next_offset
            batches.append(batch)
    except CorruptBatch as error:
        raise errors.CorruptMessage(f"{error} in topic partition {log.topic_partition}") from None
    return batches
