"""Complete a copy of a data directory, so that it opens like a directory that was closed cleanly.

A snapshot in memory copies the files of a running broker. The files alone would have to be
recovered: a log at durability `memory` keeps its indexes, epochs and producers in the process. This
module writes them into the copy. The running logs do not change.
"""

from __future__ import annotations

from embedlog.runtime.files import Files, write_whole
from embedlog.storage import paths
from embedlog.storage.directory.checkpoints import Checkpoints
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.shutdown import may_be_read_soon
from embedlog.storage.producers.append import write_snapshot
from embedlog.storage.state_files import partition_metadata
from embedlog.storage.state_files.clean_shutdown import write_marker
from embedlog.storage.state_files.sealed_file import write_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.log.log import Log
    from embedlog.storage.segments.segment import Segment


def complete_copy(manager: LogManager, files: Files) -> None:
    """Write into `files`, a copy of the directory's files, what a clean close would have written.

    The copy is not marked as clean if a log has failed. Requires: the copy is as old as the logs.
    """
    logs = {log.topic_partition: log for log in manager.logs()}
    for log in logs.values():
        with log.lock:
            _complete(log, files)
    path, partitions = manager.directory.path, manager.partitions()
    checkpoints = Checkpoints(files, path, partitions, sync=False)
    checkpoints.write_positions(logs)
    checkpoints.write_high_watermarks(logs)
    is_known = manager.directory.clean or len(partitions) == len(logs)
    if is_known and all(log.failure is None for log in logs.values()):
        write_marker(files, path, synced=False)


def _complete(log: Log, files: Files) -> None:
    if log.failure is not None:
        return
    directory, end = log.directory, log.log_end_offset
    if log.topic_id is not None:
        path = f"{directory}/{paths.PARTITION_METADATA}"
        partition_metadata.write(files, path, log.topic_id, sync=False)
    is_soon_read = may_be_read_soon(log)
    for segment in log.segments:
        _cut(segment, files)
        if not is_soon_read:
            _write_indexes(segment, files)
    entries = log.epochs.cache.entries
    if entries:
        content = log.epochs.cache.encode()
        write_sealed(files, f"{directory}/{paths.SEALED_LEADER_EPOCHS}", content, sync=False)
        write_whole(files, f"{directory}/{paths.LEADER_EPOCHS}", content, sync=False)
    if end and not is_soon_read:
        write_snapshot(files, directory, log.transactions.producers, end)


def _cut(segment: Segment, files: Files) -> None:
    """Cut the copy of the segment to its content: the file was extended in advance."""
    stat = files.stat(segment.path)
    if stat is not None and stat.size > segment.size:
        file = files.open(segment.path)
        file.truncate(segment.size)
        file.close()


def _write_indexes(segment: Segment, files: Files) -> None:
    encoded = segment.indexes.encoded()
    if encoded is None or not segment.size:
        return
    for suffix, content in zip((paths.OFFSET_INDEX, paths.TIME_INDEX), encoded, strict=True):
        write_whole(files, segment.file.sidecar(suffix), content, sync=False)
    aborted = segment.aborted.index
    if aborted is not None and len(aborted):
        path = segment.file.sidecar(paths.TRANSACTION_INDEX)
        write_whole(files, path, aborted.encode(), sync=False)
