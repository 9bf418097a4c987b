"""Cutting a log's end keeps the records before, and every view that readers hold."""

from __future__ import annotations

import errno

import pytest

from embedlog.errors import KafkaStorageError
from embedlog.runtime.files import File
from embedlog.runtime.randomness import seeded
from embedlog.storage.log.log import Log
from embedlog.storage.log.shutdown import close_log
from embedlog.storage.log_config import LogConfig
from embedlog.storage.producers.append import write_snapshot
from embedlog.storage.replica.truncation import truncate_fully_and_start_at, truncate_to
from embedlog.testing import SimFiles, SimulatedCrash
from tests.storage.logs import (
    NOW,
    PARTITION,
    append,
    append_marker,
    batches,
    check,
    manager,
    new_log,
    values,
)

SETTINGS = {"segment_bytes": 500, "index_interval_bytes": 0}


@pytest.mark.parametrize("target", range(12))
def test_a_cut_at_any_offset_leaves_the_batches_before_it(target: int) -> None:
    log = new_log(**SETTINGS)
    for number in range(5):
        append(log, b"%da" % number * 30, b"%db" % number * 30, timestamps=NOW + number)
    sent = values(log)
    view = log.reader.read(8, max_bytes=1000, end_offset=10).records
    content = bytes(view)
    log.offsets.update_high_watermark(10)
    assert truncate_to(log, target) == (target < 10)
    kept = min(target // 2 * 2, 10)  # to the beginning of the batch that holds the target
    assert log.log_end_offset == log.offsets.high_watermark == kept
    assert values(log) == sent[:kept]
    assert bytes(view) == content
    check(log)
    append(log, b"after")
    assert values(log) == [*sent[:kept], b"after"]
    check(log)


def test_epochs_and_producers_are_cut_with_the_log() -> None:
    log = new_log()
    append(log, b"a", epoch=1, producer=(7, 0, 0))
    append(log, b"b", epoch=2, producer=(7, 0, 1), transactional=True)
    append_marker(log, 7, committed=False)
    append(log, b"c", epoch=3, producer=(8, 0, 0))
    log.offsets.update_high_watermark(4)
    truncate_to(log, 2)
    assert log.epochs.cache.entries == [(1, 0), (2, 1)]
    assert [entry.producer_id for entry in list(log.transactions.producers)] == [7]
    assert log.offsets.last_stable_offset == 1
    assert log.transactions.aborted(0, 2) == []
    append_marker(log, 7, committed=False)
    assert len(log.transactions.aborted(0, 3)) == 1


def test_a_cut_at_or_behind_the_end_only_tidies_the_epochs() -> None:
    log = new_log()
    append(log, b"a", epoch=1)
    log.epochs.assign(2)
    assert not truncate_to(log, 1)
    assert log.epochs.cache.entries == [(1, 0)]
    assert values(log) == [b"a"]


def test_a_full_truncation_restarts_elsewhere() -> None:
    log = new_log(**SETTINGS)
    for number in range(5):
        append(log, b"%d" % number * 200, producer=(7, 0, number))
    log.offsets.update_high_watermark(5)
    truncate_fully_and_start_at(log, 100)
    assert (log.offsets.log_start_offset, log.offsets.high_watermark, log.log_end_offset) == (
        100,
        100,
        100,
    )
    assert log.epochs.cache.entries == []
    assert list(log.transactions.producers) == []
    assert append(log, b"a") == 100
    check(log)


def test_a_cut_below_the_first_segment_restarts_there() -> None:
    log = new_log()
    truncate_fully_and_start_at(log, 50)
    append(log, b"a")
    truncate_to(log, 20)
    assert (log.offsets.log_start_offset, log.log_end_offset) == (20, 20)


def test_a_crash_at_any_call_of_a_truncation_leaves_a_log_between_before_and_after() -> None:
    config = LogConfig(durability="fsync", **SETTINGS)

    def prepared(disk: SimFiles) -> tuple[object, list[bytes | None]]:
        owner = manager(disk, config=config)
        log = owner.get_or_create(PARTITION)
        for number in range(6):
            append(log, b"%d" % number * 180)
        log.durability.sync(6)
        owner.checkpoints.write_positions()
        return log, values(log)

    call = 0
    while True:
        disk = SimFiles()
        log, sent = prepared(disk)
        start = disk.calls
        disk.crash(start + call, after=call % 2 == 1)
        try:
            truncate_to(log, 2)
        except SimulatedCrash:
            again = manager(disk.survivor(), config=config).get(PARTITION)
            assert again is not None
            assert again.failure is None
            found = values(again)
            assert found == sent[: len(found)]
            assert len(found) >= 2
            check(again)
        else:
            break
        call += 1
    assert call > 8
    assert [one.base_offset for one in batches(log)] == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0, 3, 6, 100])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE, errno.ENOMEM])
def test_a_full_truncation_that_runs_short_at_any_call_is_done_by_the_next(
    code: int, offset: int
) -> None:
    call = 0
    while True:
        disk = SimFiles()
        log = new_log(disk=disk, **SETTINGS)
        for number in range(6):
            append(log, b"%d" % number * 180, epoch=number, producer=(7, 0, number))
        sent = values(log)
        failing = disk.calls + call
        disk.fail(failing, code)
        try:
            truncate_fully_and_start_at(log, offset)
        except KafkaStorageError:
            assert log.failure is None, disk.trace[-1]
            kept = values(log)
            assert kept == sent[: len(kept)]
            again = new_log(disk=disk.survivor(), **SETTINGS)
            assert again.failure is None
            assert values(again) in (kept, kept[offset:])
            truncate_fully_and_start_at(log, offset)
        else:
            if disk.calls <= failing:
                break
        assert (log.offsets.log_start_offset, log.log_end_offset) == (offset, offset)
        assert log.epochs.cache.entries == []
        assert list(log.transactions.producers) == []
        assert append(log, b"on", epoch=9) == offset
        check(log)
        for survivor in (disk.survivor(), _closed(log)):
            again = new_log(disk=survivor, **SETTINGS)
            assert values(again, offset) == [b"on"]
            assert again.epochs.cache.entries[0] == (9, offset)
            assert list(again.transactions.producers) == []
        call += 1
    assert call > 10


def _closed(log: Log) -> SimFiles:
    close_log(log)
    files = log.files
    assert isinstance(files, SimFiles)
    return files.survivor()


def test_a_log_whose_only_file_cannot_be_made_makes_it_with_the_next_write() -> None:
    disk = SimFiles()
    log = new_log(disk=disk, durability="fsync", **SETTINGS)
    append(log, b"a")
    path = f"{log.directory}/{7:020d}.log"
    right = disk.open

    def refuse(name: str, *, create: bool = False, writable: bool = True) -> File:
        if name == path:
            raise OSError(errno.ENOSPC, "simulated", name)
        return right(name, create=create, writable=writable)

    disk.open = refuse  # type: ignore[method-assign]
    with pytest.raises(KafkaStorageError):
        truncate_fully_and_start_at(log, 7)
    assert (log.failure, log.log_end_offset) == (None, 7)
    assert not [name for name in disk.list(log.directory) if name.endswith(".log")]
    assert values(new_log(disk=disk.survivor(), **SETTINGS), 7) == []
    with pytest.raises(KafkaStorageError):
        append(log, b"b")
    del disk.open
    assert append(log, b"b") == 7
    log.durability.flush()
    assert values(log) == [b"b"]
    images = [*disk.crash_images(seeded(3), 4)]
    assert [values(new_log(disk=image, **SETTINGS)) for image in images] == [[b"b"]] * 4


def test_aborted_transactions_that_stay_are_still_known() -> None:
    log = new_log()
    append(log, b"a", producer=(7, 0, 0), transactional=True)
    append_marker(log, 7, committed=False)
    append(log, b"b")
    write_snapshot(log.files, log.directory, log.transactions.producers, 3)
    append(log, b"c")
    truncate_to(log, 3)
    (known,) = log.transactions.aborted(0, 3)
    assert (known.producer_id, known.first_offset) == (7, 0)


def test_the_part_that_stays_is_synced_before_it_takes_its_place() -> None:
    disk = SimFiles()
    log = new_log(disk=disk, durability="fsync")
    append(log, b"a")
    append(log, b"b")
    log.durability.flush()
    disk.trace.clear()
    truncate_to(log, 1)
    temporary = log.segments[0].path + ".tmp"
    calls = [call for call, path in disk.trace if path == temporary and call in ("sync", "rename")]
    assert calls == ["sync", "rename"]


def test_a_new_start_is_stored_before_and_leaves_no_producers() -> None:
    disk = SimFiles()
    log = new_log(disk=disk, segment_bytes=300)
    for number in range(4):
        append(log, b"x" * 100, producer=(7, 0, number))
    write_snapshot(disk, log.directory, log.transactions.producers, log.log_end_offset)
    disk.trace.clear()
    truncate_fully_and_start_at(log, 50)
    assert not [name for name in disk.list(log.directory) if name.endswith(".snapshot")]
    stored = [n for n, (_, path) in enumerate(disk.trace) if "log-start-offset" in path]
    gone = [
        n for n, (call, path) in enumerate(disk.trace) if (call, path[-4:]) == ("remove", ".log")
    ]
    assert stored[0] < gone[0]
    assert append(log, b"y", producer=(7, 0, 9)) == 50


def test_nothing_is_cut_while_compaction_puts_a_segment_in_place() -> None:
    log = new_log()
    append(log, b"a")
    append(log, b"b")
    log.chain.is_swapping = True
    for cut in (truncate_to, truncate_fully_and_start_at):
        with pytest.raises(KafkaStorageError, match="compacted segment"):
            cut(log, 1)
    assert values(log) == [b"a", b"b"]
