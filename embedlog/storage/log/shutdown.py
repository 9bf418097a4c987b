"""Closing a log cleanly, with the files that Kafka's tools expect.

With indexes, snapshot and epochs the next opening need not read the batches. A log so small that
reading it takes hardly any time gets no such files: at a stop, making four files for each of 10,000
logs took 5 s, nearly all of it in the file system.
"""

from __future__ import annotations

from contextlib import suppress
from errno import EMFILE, ENFILE

from embedlog.errors import KafkaError, KafkaStorageError
from embedlog.runtime.files import write_whole
from embedlog.storage import paths
from embedlog.storage.events import events
from embedlog.storage.log.retention import remove_doomed
from embedlog.storage.producers.append import remove_stale_snapshots, write_snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.log.log import Log


SOON_READ_SIZE = 64 << 10
"""A log of at most this size may be closed without indexes and snapshot: reading the headers of its
batches takes less time than making these files."""


def close_log(log: Log) -> None:
    """Sync at durability `fsync`, cut the last file to its content, store indexes and producers.

    In any case release the files.
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
    log.epochs.save()
    active = log.segments[-1]
    is_soon_read = may_be_read_soon(log)
    path = f"{log.directory}/{paths.LEADER_EPOCHS}"
    # Kafka believes this file without a look at the batches, so an older one must not stay.
    if log.epochs.is_dirty and not (is_soon_read and log.files.stat(path) is None):
        write_whole(log.files, path, log.epochs.cache.encode(), sync=False)
        log.epochs.is_dirty = False
    if is_soon_read:
        active.file.trim(active.size)
        return
    if not active.is_changed:
        return
    active.finish()
    write_snapshot(log.files, log.directory, log.transactions.producers, log.log_end_offset)
    remove_stale_snapshots(log.files, log.directory, log.segments)


def may_be_read_soon(log: Log) -> bool:
    """Whether the next opening can find indexes, epochs and producers in a few batches.

    The log has no others and begins at 0. False if an earlier close has left files: they must be
    updated, or they would describe an older log. False if a transaction is open: a log without a
    snapshot has no producers for Kafka, which would show the transaction's records.
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
    """Return the error of a close, or None if its cause is that no descriptor is left.

    A close without descriptors cannot succeed. It costs only time: the next open recovers the logs.
    """
    cause = error if isinstance(error, OSError) else error.__cause__
    if not isinstance(cause, OSError) or cause.errno not in (EMFILE, ENFILE):
        return error
    try:
        events.warning("the directory is not marked as closed, and will be recovered: %s", error)
    except OSError:  # `logging` may not be imported yet, and the import needs a descriptor
        return None
    return None
