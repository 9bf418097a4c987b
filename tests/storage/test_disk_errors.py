"""No room and no descriptors: the operation fails, the log does not. A failed sync is final."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable

import pytest

from embedlog.errors import EmbedlogError, KafkaStorageError
from embedlog.runtime.files import File
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log.retention import delete_old_segments
from embedlog.storage.log_config import LogConfig
from embedlog.storage.replica.truncation import truncate_to
from embedlog.testing import SimFiles, SimRuntime, sim_runtime
from tests.storage.logs import NOW, PARTITION, append, batches, check, new_log, uncleanable, values

OPENING = frozenset(("open", "read", "list", "sync_directory"))
GROWING = frozenset(("open", "write", "reserve", "make_directory", "rename", "truncate", "remove"))


class Disk(SimFiles):
    """Calls fail while they are refused, and `watch` sees each of them before."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: frozenset[str] = frozenset()
        self.errno = errno.ENOSPC
        self.watch: Callable[[str, str], None] = lambda _call, _path: None

    def begin(self, call: str, path: str) -> int | None:
        limit = super().begin(call, path)
        self.watch(call, path)
        if call in self.refused:
            raise OSError(self.errno, "simulated", path)
        return limit


def _again(disk: SimFiles) -> Disk:
    """Return the disk of the next process after this one was killed."""
    survivor = disk.survivor()
    survivor.__class__ = Disk
    assert isinstance(survivor, Disk)
    survivor.refused = frozenset()
    survivor.errno = errno.ENOSPC
    survivor.watch = lambda _call, _path: None
    return survivor


def _log(disk: SimFiles, **settings: object) -> tuple[LogManager, Log, SimRuntime]:
    runtime = sim_runtime(files=disk)
    config = LogConfig(**settings)  # type: ignore[arg-type]
    manager = LogManager(runtime, "data", config)
    return manager, manager.get_or_create(PARTITION, config, topic_id=bytes(16)), runtime


# Every call of a workload


def _kept(log: Log) -> object:
    """Return the constant part: all records, or of a compacted log the last offset of each key."""
    records = [record for batch in batches(log) for record in batch.records()]
    if log.config.compact:
        return {record.key: record.offset for record in records}
    return [(record.offset, record.value) for record in records]


def _work(
    manager: LogManager, log: Log, runtime: SimRuntime, *, is_tolerant: bool
) -> list[tuple[str, type[Exception]]]:
    """Appends, rolls, deletion, background work; collects the errors."""
    told: list[tuple[str, type[Exception]]] = []

    def attempt(name: str, work: Callable[[], object]) -> None:
        try:
            work()
        except (OSError, EmbedlogError) as error:
            told.append((name, type(error)))
            if not is_tolerant:
                raise

    def background() -> None:
        for _ in range(60):
            manager.tasks.run_once(runtime.clock.monotonic_ms())
            runtime.clock.advance(20)

    for number in range(30):
        wall_ms = runtime.clock.wall_ms()
        key = [b"k%d" % (number % 3)]

        def send(wall_ms: int = wall_ms, key: list[bytes] = key) -> None:
            append(log, b"x" * 150, keys=key, now_ms=wall_ms, timestamps=wall_ms)
            if log.config.durability == "fsync":
                log.durability.flush()
            log.offsets.commit(log.config.durability == "fsync")

        attempt("append", send)
        if number == 15:
            attempt(
                "delete",
                lambda: log.offsets.increment_log_start_offset(min(5, log.offsets.high_watermark)),
            )
        if number in (10, 20, 29):
            runtime.clock.advance(301_000)
            manager.tasks.stir()
            attempt("background", background)
            runtime.clock.advance(16_000)
            attempt("background", background)
    return told


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSPC])
def test_no_call_that_may_succeed_later_poisons(number: int, durability: str, policy: str) -> None:
    settings = {
        "durability": durability,
        "segment_bytes": 1000,
        "retention_bytes": 3000,
        "file_delete_delay_ms": 0,
        "cleanup_policy": policy,
        "min_cleanable_dirty_ratio": 0.01,
    }
    disk = SimFiles()
    manager, log, runtime = _log(disk, **settings)
    first = disk.calls
    assert not _work(manager, log, runtime, is_tolerant=False)
    calls = disk.trace[first:]
    failing = OPENING if number == errno.EMFILE else GROWING
    for index, (call, path) in enumerate(calls):
        if call not in failing:
            continue
        disk = SimFiles()
        manager, log, runtime = _log(disk, **settings)
        disk.fail(disk.calls + index, number)
        told = _work(manager, log, runtime, is_tolerant=True)
        where = f"call {index}, {call} {path}: {told}"
        assert log.failure is None, where
        assert not uncleanable(manager), where
        assert {error for _, error in told} <= {KafkaStorageError}, where
        assert "background" not in {name for name, _ in told}, where
        append(
            log,
            b"on",
            keys=[b"on"],
            now_ms=runtime.clock.wall_ms(),
            timestamps=runtime.clock.wall_ms(),
        )
        log.durability.flush()
        kept = _kept(log)
        if policy == "delete":
            check(log)  # compaction leaves gaps
        manager.close()
        _, again, _ = _log(disk, **settings)
        assert again.failure is None, where
        assert _kept(again) == kept, where


def test_what_a_refused_append_left_is_cut_before_a_shorter_one() -> None:
    disk = Disk()
    log = new_log(disk=disk)
    append(log, b"a")
    end = log.size

    first = disk.calls

    def refuse_rest(_call: str, _path: str) -> None:
        if disk.calls > first + 1:
            disk.refused = frozenset(("write", "size", "truncate"))

    disk.write_short(first, 200)
    disk.watch = refuse_rest
    with pytest.raises(KafkaStorageError, match="simulated") as refusal:
        disk.refused = frozenset()
        append(log, b"long" * 200)
    assert isinstance(refusal.value.__cause__, OSError)
    disk.watch, disk.refused = lambda _call, _path: None, frozenset()
    assert log.failure is None
    assert b"long" in disk.tree.contents()[log.segments[-1].path][end:]
    append(log, b"b")
    assert set(bytes(disk.tree.contents()[log.segments[-1].path][log.size :])) <= {0}
    assert log.size > end
    recovered = new_log(disk=disk.survivor())
    assert recovered.failure is None
    assert values(recovered) == [b"a", b"b"]


def test_epochs_that_could_not_be_stored_are_before_the_next_append() -> None:
    disk = Disk()
    log = new_log(disk=disk, durability="fsync")
    append(log, b"a", epoch=1)
    disk.refused = GROWING
    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            append(log, b"b", epoch=2)
    disk.refused = frozenset()
    append(log, b"b", epoch=2)
    log.durability.flush()
    recovered = new_log(disk=disk.survivor(), durability="fsync")
    assert recovered.failure is None
    assert recovered.epochs.cache.entries[:2] == [(1, 0), (2, 1)]
    assert values(recovered) == [b"a", b"b"]


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_full_disk_does_not_prevent_an_open_after_an_unclean_stop(durability: str) -> None:
    disk = Disk()
    log = new_log(disk=disk, durability=durability, segment_bytes=400)
    for number in range(5):
        append(log, b"%d" % number * 100, producer=(7, 0, number))
    log.durability.flush()
    disk = _again(disk)
    owner = LogManager(sim_runtime(files=disk), "data", LogConfig(durability=durability))
    disk.refused = frozenset(("write", "reserve", "make_directory"))
    log = owner.get_or_create(PARTITION)
    assert log.failure is None
    assert len(values(log)) == 5
    with pytest.raises(KafkaStorageError):
        append(log, b"refused")
    disk.refused = frozenset()
    assert append(log, b"taken", producer=(7, 0, 5)) == 5
    assert log.epochs.cache.entries == [(0, 0), (1, 5)]
    log.durability.flush()
    reopened = new_log(disk=disk.survivor(), durability=durability)
    assert len(values(reopened)) == 6
    assert reopened.epochs.cache.entries[:2] == [(0, 0), (1, 5)]


# Syncs


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_log_whose_recovery_cannot_be_synced_is_read_only(number: int) -> None:
    disk = Disk()
    log = new_log(disk=disk, durability="fsync")
    append(log, b"a")
    disk = _again(disk)

    def fail_sync(call: str, path: str) -> None:
        if call == "sync" and path.endswith(".log"):
            disk.watch = lambda _call, _path: None
            raise OSError(number, "simulated", path)

    manager = LogManager(sim_runtime(files=disk), "data", LogConfig(durability="fsync"))
    disk.watch = fail_sync
    for _ in range(2):
        log = manager.get_or_create(PARTITION)
        assert isinstance(log.failure, OSError)
        assert values(log) == [b"a"]


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_file_that_cannot_be_opened_for_a_sync_is_synced_later(number: int) -> None:
    disk = Disk()
    log = new_log(disk=disk, durability="fsync")
    append(log, b"a")
    log.segments[-1].file.release()
    disk.refused, disk.errno = frozenset(("open",)), number
    with pytest.raises(KafkaStorageError) as refusal:
        log.durability.flush()
    assert isinstance(refusal.value.__cause__, OSError)
    assert log.failure is None
    disk.refused = frozenset()
    log.durability.flush()
    assert log.durability.synced_offset == 1


def test_a_sync_that_lacks_memory_is_final() -> None:
    """The kernel was called: it may have dropped pages."""
    disk = Disk()
    log = new_log(disk=disk, durability="fsync")
    append(log, b"a")
    disk.refused, disk.errno = frozenset(("sync",)), errno.ENOMEM
    with pytest.raises(KafkaStorageError):
        log.durability.flush()
    assert log.failure is not None


def test_a_roll_does_not_sync_what_another_sync_has_failed_on() -> None:
    disk = Disk()
    log = new_log(disk=disk, durability="fsync", segment_bytes=300)
    append(log, b"a" * 200)
    syncs: list[str] = []

    def sync_beside(call: str, path: str) -> None:
        if call == "sync" and path.endswith(".log"):
            syncs.append(path)
            if len(syncs) == 1:
                raise OSError(errno.EIO, "simulated", path)
        if call == "rename" and path.endswith(".index.tmp") and not syncs:
            # A group commit comes while the roll is about to sync.
            with pytest.raises(KafkaStorageError):
                log.durability.sync(1)

    disk.watch = sync_beside
    with pytest.raises(KafkaStorageError, match="earlier failure"):
        append(log, b"b" * 200)
    assert len(syncs) == 1
    assert log.durability.synced_offset == 0
    assert len(log.segments) == 1


# Room


def _full(**settings: object) -> tuple[Disk, LogManager, Log, SimRuntime]:
    """Six segments, where two may stay, and a full disk."""
    disk = Disk()
    limits = {"segment_bytes": 300, "retention_bytes": 500, **settings}
    manager, log, runtime = _log(disk, **limits)
    for number in range(6):
        append(log, b"%d" % number * 200, epoch=number)
    log.durability.flush()
    log.offsets.commit(True)
    disk.refused = GROWING - {"remove"}
    return disk, manager, log, runtime


@pytest.mark.parametrize("delay_ms", [0, 60_000])
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_retention_makes_room_on_a_full_disk(durability: str, delay_ms: int) -> None:
    disk, manager, log, runtime = _full(durability=durability, file_delete_delay_ms=delay_ms)
    runtime.clock.advance(31_000)
    manager.tasks.run_once(runtime.clock.monotonic_ms())
    assert log.failure is None
    kept = [path for path in disk.tree.contents() if path.endswith(".log")]
    assert len(kept) == len(log.segments) == 2
    disk.refused = frozenset()
    append(log, b"on", epoch=6)
    check(log)
    kept = values(log)
    recovered = new_log(disk=disk.survivor(), durability=durability)
    assert recovered.failure is None
    assert values(recovered) == kept


def test_files_that_cannot_be_removed_are_removed_in_the_next_round() -> None:
    disk, _, log, _ = _full(file_delete_delay_ms=0)
    disk.refused = frozenset(("remove",))
    with pytest.raises(KafkaStorageError):
        delete_old_segments(log, NOW)
    assert len(log.segments) == 2
    assert len(log.chain.doomed) == 4
    disk.refused = frozenset()
    delete_old_segments(log, NOW)
    assert len([path for path in disk.tree.contents() if path.endswith(".log")]) == 2
    assert not log.chain.doomed


def test_a_deletion_makes_room_on_a_full_disk() -> None:
    disk, manager, _, _ = _full()
    manager.delete(PARTITION)
    left = [path for path in disk.tree.contents() if "checkpoint" not in path]
    assert not [path for path in left if "events" in path]
    assert manager.get(PARTITION) is None
    disk.refused = frozenset()
    log = manager.get_or_create(PARTITION)
    assert append(log, b"new") == 0


def test_records_that_cannot_be_deleted_are_all_there() -> None:
    disk, manager, log, _ = _full()
    with pytest.raises(KafkaStorageError) as refusal:
        log.offsets.increment_log_start_offset(3)
    assert isinstance(refusal.value.__cause__, OSError)
    assert log.offsets.log_start_offset == 0
    assert len(values(log)) == 6
    disk.refused = frozenset()
    manager.checkpoints.write_positions()
    assert new_log(disk=disk.survivor()).offsets.log_start_offset == 0
    assert log.offsets.increment_log_start_offset(3)


@pytest.mark.slow
@pytest.mark.parametrize("offset", [1, 3])
def test_a_log_that_cannot_be_truncated_is_what_its_directory_holds(offset: int) -> None:
    number = 0
    is_over = False
    while not is_over:
        disk = Disk()
        log = new_log(disk=disk, segment_bytes=500)
        for epoch in range(6):
            append(log, b"%d" % epoch * 150, epoch=epoch)
        left = number
        number += 1

        def refuse(call: str, path: str, disk: Disk = disk) -> None:
            nonlocal left
            left -= 1
            if left == -1:
                raise OSError(errno.ENOSPC, "simulated", path)

        disk.watch = refuse
        try:
            truncate_to(log, offset)
        except KafkaStorageError:
            assert log.failure is None, number
        is_over = left >= 0
        disk.watch = lambda _call, _path: None
        assert log.log_end_offset >= offset
        kept = values(log)
        assert kept == [b"%d" % epoch * 150 for epoch in range(log.log_end_offset)]
        recovered = new_log(disk=disk.survivor(), segment_bytes=500)
        assert recovered.failure is None, number
        assert values(recovered) == kept
        append(log, b"on", epoch=6)
        check(log)


def test_reads_need_no_index_file() -> None:
    disk = Disk()
    log = new_log(disk=disk, segment_bytes=500)
    for _ in range(6):
        append(log, b"x" * 150)
    manager = LogManager(sim_runtime(files=_again(disk)), "data", LogConfig(segment_bytes=500))
    again = manager.get_or_create(PARTITION)
    files = again.files
    assert isinstance(files, Disk)

    def refuse_indexes(call: str, path: str) -> None:
        if call == "open" and path.endswith("index"):
            raise OSError(errno.EMFILE, "simulated", path)

    files.watch = refuse_indexes
    assert len(values(again, 1)) == 5


# Background work


def test_background_work_tells_nobody_but_is_shown() -> None:
    disk, manager, log, runtime = _full(file_delete_delay_ms=0)
    disk.refused = GROWING
    began_ms = runtime.clock.wall_ms()
    for _ in range(70):
        runtime.clock.advance(5_000)
        manager.tasks.stir()
        manager.tasks.run_once(runtime.clock.monotonic_ms())
    shown = {one.subject.partition(": ")[2]: one for one in manager.health()}
    assert shown.keys() == {
        "checkpoint",
        "high watermarks",
        "leader epochs",
        "retention",
        "unsaved",
    }
    assert all("simulated" in one.reason for one in shown.values())
    assert all(began_ms < one.since_ms <= began_ms + 61_000 for one in shown.values())
    assert log.failure is None
    disk.refused = frozenset()
    for _ in range(70):
        runtime.clock.advance(5_000)
        manager.tasks.stir()
        manager.tasks.run_once(runtime.clock.monotonic_ms())
    assert not manager.health()


def test_a_log_that_cannot_be_looked_at_now_is_compacted_later() -> None:
    disk = Disk()
    settings = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": 0.01}
    manager, log, runtime = _log(disk, segment_bytes=300, max_compaction_lag_ms=1, **settings)
    for _ in range(6):
        append(log, b"x" * 200, keys=[b"k"])
    log.offsets.commit(False)
    for segment in log.segments:
        segment.file.release()
    disk.refused, disk.errno = OPENING, errno.EMFILE
    for _ in range(5):
        runtime.clock.advance(16_000)
        manager.tasks.stir()
        manager.tasks.run_once(runtime.clock.monotonic_ms())
    assert not uncleanable(manager)
    disk.refused = frozenset()
    for _ in range(200):
        runtime.clock.advance(16_000)
        manager.tasks.stir()
        manager.tasks.run_once(runtime.clock.monotonic_ms())
    assert len(values(log)) < 6


def test_names_of_files_are_hidden_in_no_error() -> None:
    disk = Disk()
    log = new_log(disk=disk)
    append(log, b"a")
    disk.refused = GROWING
    with pytest.raises(KafkaStorageError) as refusal:
        append(log, b"b" * 70_000)
    assert re.search(r"events-0/0{20}\.log", str(refusal.value))
    file: File = log.segments[-1].file.get()
    assert file.size() >= log.size
