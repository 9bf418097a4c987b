"""The bugs of `planted`, and for each the program that must find it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from errno import EMFILE, ENFILE
from typing import Any, NamedTuple
from unittest.mock import patch

from embedlog.controller.controller import Controller
from embedlog.controller.metadata_log import MetadataLog
from embedlog.coordinator import loading
from embedlog.errors import CorruptRecord, KafkaStorageError
from embedlog.runtime import lock_order, locks
from embedlog.runtime.files import parent, write_fully
from embedlog.storage import log_health, paths
from embedlog.storage.cleaner.filter import BatchFilter
from embedlog.storage.cleaner.output import CleanedOutput
from embedlog.storage.directory import checkpoints, log_manager, owned_directory
from embedlog.storage.directory.checkpoints import Checkpoints
from embedlog.storage.directory.log_checkpoints import LogCheckpoints
from embedlog.storage.directory.tasks import LogTasks
from embedlog.storage.log import opening, reader, retention
from embedlog.storage.log.durability import LogDurability
from embedlog.storage.log.log import Log
from embedlog.storage.log.offsets import LogOffsets
from embedlog.storage.log.transactions import LogTransactions
from embedlog.storage.producers import snapshot as producer_snapshot
from embedlog.storage.recovery import recovery
from embedlog.storage.segments import scan
from embedlog.storage.segments.segment import Segment
from embedlog.storage.segments.segment_file import SegmentFile
from embedlog.storage.segments.segment_indexes import SegmentIndexes
from embedlog.storage.state_files import sealed_file
from embedlog.testing import SimFiles
from tests.crash.simulated import DATA
from wire.records.batch import RecordBatch
from wire.records.format import HEADER, HEADER_SIZE, LOG_OVERHEAD


class Bug(NamedTuple):
    """A bug that exists while the context of `plant` is open; `part` of a program must find it."""

    name: str
    part: str
    plant: Callable[[], AbstractContextManager[object]]


def _replace(owner: object, name: str, wrong: object) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: patch.object(owner, name, wrong)


def _with_original(
    owner: Any, name: str, wrong: Callable[..., object]
) -> Callable[[], AbstractContextManager[Any]]:
    """Call `wrong` with the original before the arguments."""
    right = getattr(owner, name)

    def call(*arguments: Any, **keywords: Any) -> object:
        return wrong(right, *arguments, **keywords)

    return _replace(owner, name, call)


# Syncs


def _acknowledge(durability: LogDurability, offset: int) -> None:
    durability.synced_offset = max(durability.synced_offset, offset)


def _unsynced(right: Callable[..., object], *arguments: Any, **keywords: Any) -> object:
    return right(*arguments, **{**keywords, "sync": False})


def _unless_of_logs(right: Callable[..., None], files: SimFiles, path: str) -> None:
    if path != DATA:
        right(files, path)


def _rename_unsynced(files: Any, path: str, content: Any, *, sync: bool) -> None:
    file = files.open(path + ".tmp", create=True)
    file.truncate(0)
    write_fully(file.write, [content], 0)
    file.close()
    files.rename(path + ".tmp", path)
    if sync:
        files.sync_directory(parent(path))


def _append_unsynced(right: Callable[..., int], log: MetadataLog, records: Any) -> int:
    log._sync = False
    return right(log, records)


def _show_at_once(offsets: LogOffsets, _synced_only: bool) -> None:
    offsets.update_high_watermark(1 << 62)


def _sync_that_may_fail(durability: LogDurability, end: int, segments: tuple[Segment, ...]) -> None:
    for segment in segments:
        try:
            segment.sync()
        except OSError as error:
            raise KafkaStorageError(str(error)) from error
    durability.synced_offset = max(durability.synced_offset, end)


def _sync_that_never_fails(
    durability: LogDurability, end: int, segments: tuple[Segment, ...]
) -> None:
    for segment in segments:
        try:
            segment.sync()
        except OSError:
            continue
    durability.synced_offset = max(durability.synced_offset, end)


# Promises


def _recovery_points_too_high(right: Callable[..., bool], known: Checkpoints, logs: Any) -> bool:
    ends = {name: log.log_end_offset for name, log in logs.items()}
    right(known, logs)
    known._recovery_points.update(ends)
    return known._write(paths.RECOVERY_POINTS, known._recovery_points)


def _marker_always_synced(right: Callable[..., object], *arguments: Any, **_: Any) -> object:
    return right(*arguments, synced=True)


def _marker_stays(files: Any, directory: str, *, sync: bool) -> bool:
    return files.stat(f"{directory}/{paths.CLEAN_SHUTDOWN}") is not None


def _forget_the_start(offsets: LogOffsets, offset: int) -> bool:
    offsets.log_start_offset = max(offsets.log_start_offset, offset)
    return True


# Skipped checks


def _batch_unchecked(view: memoryview, position: int, end: int) -> Any:
    if end - position < HEADER_SIZE or view[position + 16] != 2:
        return "no batch"
    fields = HEADER.unpack_from(view, position)
    size = fields[1] + LOG_OVERHEAD
    if not HEADER_SIZE <= size <= end - position:
        return "no whole batch"
    return size, fields[0], fields[0] + fields[6], fields[8], fields[2]


def _sealed_unchecked(files: Any, path: str) -> bytes | None:
    try:
        return bytes(files.read(path)[sealed_file._HEADER.size :])
    except FileNotFoundError:
        return None


def _snapshot_unchecked(content: Any, path: str = "") -> Any:
    rows = memoryview(content)[producer_snapshot._HEADER.size :]
    size = len(rows) - len(rows) % producer_snapshot._ENTRY.size
    found = producer_snapshot._ENTRY.iter_unpack(rows[:size])
    return [producer_snapshot._unpack(row) for row in found]


def _index_believed(_indexes: SegmentIndexes, entry: tuple[int, int], _view: Any, size: int) -> int:
    return min(entry[1], size)


def _until_the_damage(right: Callable[..., Iterator[Any]], log: Log) -> Iterator[Any]:
    try:
        yield from right(log)
    except CorruptRecord:
        return


# Retention and compaction


def _one_more(right: Callable[[Log], Any], log: Log) -> Any:
    rule = right(log)
    spare = [True] if len(log.segments) > 2 else []
    return lambda segment, following: rule(segment, following) or bool(spare and spare.pop())


def _drop_one(right: Callable[..., Any], rules: BatchFilter, batch: Any, expired: bool) -> Any:
    kept, is_mortal = right(rules, batch, expired)
    return list(kept)[1:], is_mortal


def _tombstones_at_once(
    right: Callable[..., Any], rules: BatchFilter, batch: Any, _expired: bool
) -> Any:
    return right(rules, batch, True)


# Other


def _believe_all(_name: str) -> bool:
    return _name.endswith("-delete")


@contextmanager
def _no_new_epochs() -> Iterator[None]:
    def mark_opened(log: Log, *, begins_epoch: bool, failure: CorruptRecord | None) -> None:
        right(log, begins_epoch=False, failure=failure)

    right = recovery.mark_opened
    with (
        patch.object(recovery, "mark_opened", mark_opened),
        patch.object(Controller, "bump_leader_epochs", lambda *_: None),
    ):
        yield


@contextmanager
def _no_checksums() -> Iterator[None]:
    def all_good(
        _reader: reader.LogReader, _segment: Segment, _position: int, end: int, offset: int
    ) -> Any:
        return end, offset, None

    with (
        patch.object(RecordBatch, "check_crc", lambda _: None),
        patch.object(reader.LogReader, "_check", all_good),
    ):
        yield


@contextmanager
def _locks_swapped() -> Iterator[None]:
    """A checkpoint takes the manager's mutex although its callers may hold a partition lock."""

    def make(manager: log_manager.LogManager, *args: Any, **settings: Any) -> None:
        right_make(manager, *args, **settings)
        mutexes[id(manager.checkpoints)] = manager._mutex

    def write(checkpoints: LogCheckpoints) -> bool:
        with mutexes[id(checkpoints)]:
            return right_write(checkpoints)

    mutexes: dict[int, Any] = {}
    right_make = log_manager.LogManager.__init__
    right_write = LogCheckpoints.write_positions
    with (
        patch.object(locks, "checked_lock", locks.checked_order().lock),
        patch.object(log_manager.LogManager, "__init__", make),
        patch.object(LogCheckpoints, "write_positions", write),
        patch.object(lock_order, "print", lambda *_, **__: None, create=True),
    ):
        yield


_HARMLESS = tuple(set(log_health.HARMLESS_ERRORS) - {EMFILE, ENFILE})

BUGS: tuple[Bug, ...] = (
    Bug(
        "a record is acknowledged before it is synced",
        "images fsync append",
        _replace(LogDurability, "sync", _acknowledge),
    ),
    Bug(
        "records are shown before they are synced",
        "images fsync large",
        _replace(LogOffsets, "commit", _show_at_once),
    ),
    Bug(
        "a segment's name is not synced",
        "images fsync roll",
        _replace(SegmentFile, "sync_name", lambda _: None),
    ),
    Bug(
        "a topic's directory is not synced",
        "images fsync create",
        _with_original(SimFiles, "sync_directory", _unless_of_logs),
    ),
    Bug(
        "a change of the metadata is not synced",
        "images fsync configure",
        _with_original(MetadataLog, "append", _append_unsynced),
    ),
    Bug(
        "a small file is renamed before it is synced",
        "images fsync delete records",
        _replace(sealed_file, "write_whole", _rename_unsynced),
    ),
    Bug(
        "small files are not synced",
        "images fsync delete records",
        _with_original(sealed_file, "write_whole", _unsynced),
    ),
    Bug(
        "compaction's output is not synced",
        "images fsync compact",
        _replace(CleanedOutput, "_sync", lambda _: None),
    ),
    Bug(
        "recovery points beyond the synced offset",
        "images fsync other level, time",
        _with_original(Checkpoints, "write_positions", _recovery_points_too_high),
    ),
    Bug(
        "the marker of a clean stop exists before the logs are synced",
        "images os append, restart",
        _with_original(owned_directory, "write_marker", _marker_always_synced),
    ),
    Bug(
        "the marker of a clean stop stays while the directory is open",
        "images os restart, large",
        _replace(owned_directory, "take_marker", _marker_stays),
    ),
    Bug(
        "no leader epoch begins after an unclean stop",
        "images os append",
        _no_new_epochs,
    ),
    Bug(
        "a torn tail is accepted, as recovery looks at no checksum",
        "images os large",
        _replace(scan, "read_batch", _batch_unchecked),
    ),
    Bug(
        "producers are forgotten by an unclean open",
        "images os append",
        _replace(opening, "load_producers", lambda *_, **__: None),
    ),
    Bug(
        "records of aborted transactions are shown",
        "images os abort",
        _replace(LogTransactions, "aborted", lambda *_: []),
    ),
    Bug(
        "a deletion of records is not noted",
        "images os delete records",
        _replace(LogOffsets, "increment_log_start_offset", _forget_the_start),
    ),
    Bug(
        "retention deletes one segment too many",
        "images os retain",
        _with_original(retention, "_size_rule", _one_more),
    ),
    Bug(
        "compaction drops the last record of a key",
        "images os compact",
        _with_original(BatchFilter, "_latest_records", _drop_one),
    ),
    Bug(
        "tombstones go at once",
        "images os compact",
        _with_original(BatchFilter, "_latest_records", _tombstones_at_once),
    ),
    Bug(
        "a full disk poisons a log",
        "faults os append",
        _replace(log_health, "HARMLESS_ERRORS", ()),
    ),
    Bug(
        "too many open files poison a log",
        "faults os roll",
        _replace(log_health, "HARMLESS_ERRORS", _HARMLESS),
    ),
    Bug(
        "a failed sync is tried again",
        "faults fsync append",
        _replace(LogDurability, "_sync", _sync_that_may_fail),
    ),
    Bug(
        "a failed sync is taken for a sync",
        "faults fsync append",
        _replace(LogDurability, "_sync", _sync_that_never_fails),
    ),
    Bug(
        "an error of background work comes out of an unrelated call",
        "faults os time",
        _replace(LogTasks, "_does", lambda _self, work, now_ms, *_: work(now_ms)),
    ),
    Bug(
        "two locks are taken in the wrong order",
        "faults os delete records",
        _locks_swapped,
    ),
    Bug(
        "rot of synced data is cut like a torn tail",
        "flips killed fsync p-0/00000000000000000006.log",
        _replace(recovery, "_is_rot", lambda *_: False),
    ),
    Bug(
        "a sealed file's checksum is not looked at",
        "flips killed fsync log-start-offset-checkpoint",
        _replace(checkpoints, "read_sealed", _sealed_unchecked),
    ),
    Bug(
        "a snapshot's checksum is not looked at",
        "flips clean fsync .snapshot",
        _replace(producer_snapshot, "decode", _snapshot_unchecked),
    ),
    Bug(
        "an index is trusted without a check of the batch at its position",
        "flips clean fsync p-0/00000000000000000002.index",
        _replace(SegmentIndexes, "_checked", _index_believed),
    ),
    Bug(
        "the metadata log is replayed without a look at checksums",
        "flips clean fsync __cluster_metadata-0/00000000000000000000.log",
        _no_checksums,
    ),
    Bug(
        "a damaged shard answers that nothing is committed",
        "flips killed fsync __consumer_offsets-0/00000000000000000000.log",
        _with_original(loading, "read_checked", _until_the_damage),
    ),
    Bug(
        "directories of others are removed",
        "flips clean os meta.properties",
        _replace(paths, "is_deleted_log", _believe_all),
    ),
)
