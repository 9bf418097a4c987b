"""A log's clean end: files as Kafka's tools expect them.

A log whose batches can soon be read again gets no files that only spare a reading: making four
files for each of 10,000 logs took 5 s of a stop, nearly all of it in the file system.
"""

from __future__ import annotations

from contextlib import suppress
from errno import EMFILE, ENFILE

from embedlog.errors import KafkaStorageError
from embedlog.runtime.files import write_whole
from embedlog.storage import paths
from embedlog.storage.events import events
from embedlog.storage.log.retention import remove_doomed
from embedlog.storage.producers.append import remove_stale_snapshots, write_snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.errors import KafkaError
    from embedlog.storage.log.log import Log


SOON_READ_SIZE = 64 << 10
"""Reading the headers of this many bytes takes less time than making the files that spare it."""


def close_log(log: Log) -> None:
    """Sync at durability `fsync`, trim the file, store indexes and producers, release the files.

    A poisoned log only releases its files.
    """
    try:
        if log.failure is None and log.config.durability != "memory":
            _finish(log)
    except OSError as error:
        raise log.health.refused(error) from error
    finally:
        with suppress(KafkaStorageError):
            remove_doomed(log)
        for segment in log.segments:
            segment.file.release()


def _finish(log: Log) -> None:
    if log.config.durability == "fsync":
        log.durability.flush()
    active = log.segments[-1]
    if _is_soon_read(log):
        active.file.trim(active.size)
        return
    if log.epochs.is_dirty:
        path = f"{log.directory}/{paths.LEADER_EPOCHS}"
        write_whole(log.files, path, log.epochs.cache.encode(), sync=False)
        log.epochs.is_dirty = False
    if not active.is_changed:
        return
    active.finish()
    write_snapshot(log.files, log.directory, log.transactions.producers, log.log_end_offset)
    remove_stale_snapshots(log.files, log.directory, log.segments)


def _is_soon_read(log: Log) -> bool:
    """Whether indexes, epochs and producers are all found in a few batches from offset 0 on.

    Files of an earlier close are updated, so that none ever describes another log. A log with an
    open transaction always gets its snapshot: Kafka takes a log without one for a log without
    producers, and would show the transaction's records.
    """
    active = log.segments[-1]
    return (
        active.size <= SOON_READ_SIZE
        and len(log.epochs.cache.entries) <= 1
        and active.base_offset == log.offsets.log_start_offset == 0
        and log.transactions.producers.first_unstable_offset(log.log_end_offset) is None
        and log.files.stat(active.file.sidecar(paths.OFFSET_INDEX)) is None
    )


def unless_out_of_files(error: KafkaError | OSError) -> KafkaError | OSError | None:
    """Return the error of a close unless the process has no descriptors left.

    Then nothing can be done, and only time is lost: the next open recovers the logs.
    """
    cause = error if isinstance(error, OSError) else error.__cause__
    if not isinstance(cause, OSError) or cause.errno not in (EMFILE, ENFILE):
        return error
    try:
        events.warning("the directory is not marked as closed, and will be recovered: %s", error)
    except OSError:  # `logging` may not be loaded yet, and needs a descriptor for that
        return None
    return None
