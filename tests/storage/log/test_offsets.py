"""The offsets of a log stay in order after losses, deletions and answers of a leader."""

from __future__ import annotations

import pytest

from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log.transactions import LogTransactions
from embedlog.storage.log_config import LogConfig
from embedlog.storage.replica.append import append_as_follower
from embedlog.storage.replica.truncation import truncate_to
from embedlog.storage.state_files.published_offset import read_published
from embedlog.testing import SimFiles, sim_runtime
from tests.storage.logs import (
    DATA,
    PARTITION,
    append,
    append_marker,
    check,
    manager,
    new_log,
    values,
)


def test_a_cut_within_a_synced_batch_promises_nothing_behind_the_end() -> None:
    log = new_log(durability="fsync")
    append(log, b"a", b"b", b"c")
    log.durability.flush()
    truncate_to(log, 2)
    assert log.log_end_offset == log.durability.synced_offset == 0
    check(log)


def test_deleted_records_of_an_open_transaction_are_not_stable_offsets() -> None:
    log = new_log()
    append(log, b"a", producer=(7, 0, 0), transactional=True)
    append(log, b"b")
    append(log, b"c")
    log.offsets.commit(False)
    assert log.offsets.last_stable_offset == 0
    log.offsets.increment_log_start_offset(2)
    assert log.offsets.last_stable_offset == 2


def test_a_leaders_low_watermark_does_not_fall_below_the_start() -> None:
    log = new_log()
    for _ in range(4):
        append(log, b"a")
    log.offsets.commit(False)
    log.offsets.increment_log_start_offset(3)
    log.offsets.follow(1)
    assert log.offsets.high_watermark == 3


def test_a_follower_hides_an_open_transaction() -> None:
    leader, follower = new_log(), new_log()
    append(leader, b"a")
    append(leader, b"b", producer=(7, 0, 0), transactional=True)
    read = leader.reader.read(0, max_bytes=1 << 20, end_offset=2)
    append_as_follower(follower, read.records)
    follower.offsets.follow(2)
    assert follower.offsets.last_stable_offset == 1
    append_marker(leader, 7, committed=True)
    read = leader.reader.read(2, max_bytes=1 << 20, end_offset=3)
    append_as_follower(follower, read.records)
    follower.offsets.follow(3)
    assert follower.offsets.last_stable_offset == 3


def test_a_transaction_is_hidden_though_an_interrupt_followed_its_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = new_log()
    with monkeypatch.context() as patched:
        patched.setattr(LogTransactions, "apply", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            append(log, b"a", producer=(7, 0, 0), transactional=True)
    append(log, b"b")
    log.offsets.commit(False)
    assert log.offsets.last_stable_offset == 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_aborted_transactions_are_found_in_all_segments() -> None:
    disk = SimFiles()
    log = new_log(disk=disk, segment_bytes=400)
    expected = []
    for producer_id in range(7, 12):
        first = append(log, b"x" * 150, producer=(producer_id, 0, 0), transactional=True)
        append(log, b"y" * 150)
        append_marker(log, producer_id, committed=False)
        expected.append((producer_id, first))
    end = log.log_end_offset
    assert len(log.segments) > 4
    assert _aborted(log, end) == expected
    reopened = new_log(disk=disk.survivor(), segment_bytes=400)
    assert _aborted(reopened, end) == expected


def _aborted(log: Log, end: int) -> list[tuple[int, int]]:
    return [(each.producer_id, each.first_offset) for each in log.transactions.aborted(0, end)]


def test_the_watermark_of_a_log_that_has_lost_records_is_its_end() -> None:
    runtime = sim_runtime()
    owner = LogManager(runtime, DATA, LogConfig(), is_replicated=True)
    log = owner.get_or_create(PARTITION)
    append(log, b"a")
    append(log, b"b")
    log.offsets.follow(2)
    owner.checkpoints.write_high_watermarks()
    disk = runtime.files.survivor()
    disk.boot_id += "+"
    disk.open(log.segments[0].path).truncate(0)
    reopened = LogManager(sim_runtime(files=disk), DATA, LogConfig(), is_replicated=True)
    lost = reopened.get_or_create(PARTITION)
    assert not values(lost)
    check(lost)


def test_a_leader_that_wrote_nothing_keeps_its_epoch() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    append(log, b"a", epoch=2)
    log.epochs.assign(5)
    owner.close()
    again = manager(disk).get(PARTITION)
    assert again is not None
    assert again.epochs.cache.entries == [(2, 0), (5, 1)]


def test_other_processes_see_a_new_replica_as_empty() -> None:
    owner = LogManager(sim_runtime(), DATA, LogConfig(), is_replicated=True)
    log = owner.get_or_create(PARTITION)
    assert read_published(log.files, log.directory) == 0
    append(log, b"a")
    assert read_published(log.files, log.directory) == 0


def test_other_processes_see_everything_once_the_log_is_no_longer_synced() -> None:
    log = new_log(durability="fsync")
    append(log, b"a")
    assert read_published(log.files, log.directory) == 0
    log.configure(log.config.replace(durability="os"))
    assert read_published(log.files, log.directory) is None
