"""Putting a staged file into a log: as its next segment, or batch by batch.

    rename    roll the log, so that an empty segment has the name of the next one; write offsets
              and leader epoch into the file's batches; sync; rename the file over the empty segment
    append    append each batch like a producer's: the topic's rules and conversions apply

Each renamed file makes a segment, so small files are appended. If an interrupted attempt has placed
some records of the file, they are cut off first. That is safe: nobody has read them or appended
behind them.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.storage.log.log import Log
from embedlog.storage.replica.truncation import truncate_to
from embedlog.storage.segments.indexes.transaction import TransactionIndex
from embedlog.storage.staging.staged_file import read_batches, stamp
from embedlog.storage.state_files.commit_file import Piece

_NO_OFFSET = bytes(8)
"""Base offset 0 as bytes, as in a batch that a producer sends."""


def place(log: Log, piece: Piece, path: str, *, leader_epoch: int) -> None:
    """Put a staged file at the end of the log, unless its records are there already.

    No reader sees the records before the caller publishes them. Requires: the partition lock.

    Raises:
        KafkaError: the log or the disk refuses.
    """
    if log.log_end_offset >= piece.end_offset:
        return
    if log.log_end_offset > piece.base_offset:
        truncate_to(log, piece.base_offset)
    assert log.log_end_offset == piece.base_offset, (log, piece)
    try:
        if piece.is_renamed:
            _rename(log, piece, path, leader_epoch)
        else:
            _append(log, path, leader_epoch)
    except OSError as error:
        raise log.health.refused(error) from error
    if log.log_end_offset != piece.end_offset:
        raise errors.KafkaStorageError(
            f"{path}: {log.topic_partition} ends at {log.log_end_offset}, not {piece.end_offset}"
        )


def _rename(log: Log, piece: Piece, path: str, leader_epoch: int) -> None:
    files = log.files
    leader_epoch = log.epochs.lead_in(leader_epoch)
    log.roll()
    empty = log.segments[-1]
    assert empty.size == 0, empty
    file = files.open(path)
    scan = stamp(
        file,
        path,
        base_offset=piece.base_offset,
        leader_epoch=leader_epoch,
        index_interval=log.config.index_interval_bytes,
    )
    file.sync()
    file.close()
    segment = log.chain.new(piece.base_offset)
    empty.file.part_with()
    files.rename(path, segment.path)
    segment.file.capacity = scan.size
    segment.adopt(scan)
    segment.aborted.adopt(TransactionIndex())  # empty: staged batches are never transactional
    segment.modified_ms = segment.limits.created_ms
    log.take_segment(segment)
    files.sync_directory(log.directory)
    files.sync_directory(path.rpartition("/")[0])
    segment.synced_size, segment.file.is_name_synced = scan.size, True


def _append(log: Log, path: str, leader_epoch: int) -> None:
    file = log.files.open(path, writable=False)
    now_ms = log.clock.wall_ms()
    for _, batch in read_batches(file, file.size(), path):
        sent = b"".join((_NO_OFFSET, batch[len(_NO_OFFSET) :]))
        log.append_as_leader(sent, leader_epoch=leader_epoch, now_ms=now_ms)
