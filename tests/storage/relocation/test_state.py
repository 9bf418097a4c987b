"""The state of a log after a move: files beside its records, and a place for the next."""

from __future__ import annotations

from errno import EIO

from embedlog.storage import paths
from embedlog.storage.state_files.published_offset import read_published
from tests.storage.logs import append
from tests.storage.relocation.relocation import THERE, Moving


def test_a_moved_log_has_the_snapshot_of_its_last_segment() -> None:
    moving = Moving()
    moving.move()
    last = moving.log.segments[-1].base_offset
    path = paths.segment_file(moving.log.directory, last, paths.SNAPSHOT)
    assert moving.disk.stat(path) is not None


def test_bytes_that_were_put_aside_move_with_the_log() -> None:
    moving = Moving()
    name = "00000000000000000000.0000000005.quarantine"
    moving.disk.open(f"{moving.log.directory}/{name}", create=True).write([b"damaged"], 0)
    moving.move()
    assert moving.disk.read(f"{moving.log.directory}/{name}") == b"damaged"


def test_other_processes_follow_the_commits_of_a_moved_log() -> None:
    moving = Moving(durability="fsync")
    log = moving.log
    moving.move()
    assert moving.place == THERE
    assert read_published(log.files, log.directory) == log.offsets.high_watermark
    append(log, b"new", keys=[b"k"])
    assert read_published(log.files, log.directory) == log.log_end_offset - 1
    moving.commit()
    assert read_published(log.files, log.directory) == log.log_end_offset


def test_a_moved_log_is_closed_with_indexes_and_epochs_for_kafka() -> None:
    moving = Moving()
    moving.move()
    log = moving.log
    epochs = log.epochs.cache.encode()
    moving.close()
    assert moving.disk.read(f"{log.directory}/{paths.LEADER_EPOCHS}") == epochs
    last = log.segments[-1].base_offset
    for suffix in (paths.OFFSET_INDEX, paths.TIME_INDEX):
        assert moving.disk.stat(paths.segment_file(log.directory, last, suffix)) is not None


def test_a_moved_log_keeps_its_start_though_the_process_is_killed() -> None:
    moving = Moving()
    moving.move()
    again = Moving(moving.disk.survivor(), metadata=moving.metadata)
    assert again.place == THERE
    assert again.log.offsets.log_start_offset == 3


def test_a_move_waits_for_compaction_to_put_a_segment_in_place() -> None:
    moving = Moving()
    moving.log.chain.is_swapping = True
    moving.ask()
    for _ in range(20):
        moving.relocations.run_once(0)
    assert moving.place != THERE
    moving.log.chain.is_swapping = False
    moving.go_on()
    moving.check()
    assert moving.place == THERE


def test_an_interrupted_commit_of_a_move_ends_all_writes() -> None:
    moving = Moving()
    begin = moving.disk.begin

    def refuse(call: str, path: str) -> int | None:
        if call == "sync_directory" and path == THERE:
            raise OSError(EIO, "simulated", path)
        return begin(call, path)

    moving.disk.begin = refuse  # type: ignore[method-assign]
    moving.ask()
    for _ in range(50):
        moving.relocations.run_once(0)
    assert moving.log.failure is not None


def test_retention_of_a_moved_log_removes_nothing_of_its_former_directory() -> None:
    moving = Moving()
    log = moving.log
    log.chain.doomed.append(log.segments[0])
    moving.move()
    assert log.chain.doomed == []
