"""A log's clean end: files as Kafka's tools expect them."""

from __future__ import annotations

from embedlog.runtime.files import write_whole
from embedlog.storage import paths
from embedlog.storage.producer_append import remove_stale_snapshots, write_snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.log_state import LogState


def close_log(log: LogState) -> None:
    """Sync at durability `fsync`, trim the file, store indexes and producer state, let go.

    A poisoned log is only let go of.

    Raises:
        KafkaStorageError: the disk refuses.
    """
    try:
        if log.failure is None and log.config.durability != "memory":
            _finish(log)
    except OSError as error:
        raise log.refused(error) from error
    finally:
        for segment in log.segments:
            segment.release()


def _finish(log: LogState) -> None:
    if log.config.durability == "fsync":
        log.flush()
    if log.epochs_dirty:
        path = f"{log.directory}/{paths.LEADER_EPOCHS}"
        write_whole(log.files, path, log.leader_epochs.encode(), sync=False)
        log.epochs_dirty = False
    active = log.segments[-1]
    if not active.dirty:
        return
    active.finish()
    write_snapshot(log.files, log.directory, log.producers, log.log_end_offset)
    remove_stale_snapshots(log.files, log.directory, log.segments)
