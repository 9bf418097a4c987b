"""The files that a clean stop writes for a log, or leaves out."""

from __future__ import annotations

import pytest

from embedlog.storage import paths
from embedlog.storage.log.log import Log
from embedlog.storage.log.shutdown import close_log
from embedlog.storage.log_config import LogConfig
from embedlog.storage.producers.append import write_snapshot
from embedlog.storage.replica.truncation import truncate_to
from embedlog.testing import SimFiles
from tests.storage.logs import PARTITION, append, append_marker, check, manager, new_log, values


def _again(disk: SimFiles) -> Log:
    owner = manager(disk)
    assert owner.directory.clean
    log = owner.get(PARTITION)
    assert log is not None
    check(log)
    return log


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_short_log_is_closed_without_making_a_file(durability: str) -> None:
    disk = SimFiles()
    owner = manager(disk, config=LogConfig(durability=durability))
    log = owner.get_or_create(PARTITION)
    append(log, b"a", producer=(7, 0, 0))
    log.durability.flush()
    before = disk.list(log.directory)
    owner.close()
    assert disk.list(log.directory) == before
    stat = disk.stat(log.segments[-1].path)
    assert stat is not None
    assert stat.size == log.size


def test_a_short_log_knows_its_producers_epochs_and_times_again() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    append(log, b"a", b"b", producer=(7, 0, 0), epoch=3)
    last = append(log, b"c", producer=(7, 0, 2), epoch=3)
    owner.close()
    again = _again(disk)
    assert values(again) == [b"a", b"b", b"c"]
    assert again.epochs.cache.entries == [(3, 0)]
    assert append(again, b"c", producer=(7, 0, 2), epoch=3) == last, "a duplicate"
    assert append(again, b"d", producer=(7, 0, 3), epoch=3) == last + 1


def test_an_open_transaction_has_its_snapshot_though_the_log_is_short() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    append(log, b"a", producer=(7, 0, 0), transactional=True)
    end = log.log_end_offset
    owner.close()
    assert disk.stat(paths.segment_file(log.directory, end, paths.SNAPSHOT)) is not None
    again = _again(disk)
    again.offsets.update_high_watermark(again.log_end_offset)
    assert again.offsets.last_stable_offset == 0
    append_marker(again, 7, committed=True)


def test_files_of_an_earlier_close_are_brought_up_to_date() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    for _ in range(800):
        append(log, b"x" * 100)
    owner.close()
    index = log.segments[-1].file.sidecar(paths.OFFSET_INDEX)
    former = disk.read(index)
    owner = manager(disk)
    again = owner.get(PARTITION)
    assert again is not None
    truncate_to(again, 2)
    append(again, b"other")
    owner.close()
    assert len(disk.read(index)) < len(former)
    assert values(_again(disk))[2:] == [b"other"]


def test_a_poisoned_log_releases_its_files() -> None:
    log = new_log()
    append(log, b"a")
    log.health.poison(OSError(5, "simulated"))
    assert log.segments[-1].file.opened is not None
    close_log(log)
    assert log.segments[-1].file.opened is None


def test_kafka_finds_no_older_epochs_beside_a_short_log() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    append(log, b"a", epoch=3)
    path = f"{log.directory}/{paths.LEADER_EPOCHS}"
    disk.open(path, create=True).write([b"0\n1\n1 0\n"], 0)
    owner.close()
    assert disk.read(path) == b"0\n1\n3 0\n"


def test_the_snapshots_of_segments_and_of_the_end_stay_and_no_others() -> None:
    disk = SimFiles()
    owner = manager(disk, config=LogConfig(segment_bytes=400))
    log = owner.get_or_create(PARTITION)
    for number in range(8):
        append(log, b"x" * 60, producer=(7, 0, number))
    write_snapshot(disk, log.directory, log.transactions.producers, 4)
    bases = {segment.base_offset for segment in log.segments[1:]}
    assert bases == {3, 6}
    owner.close()
    names = [name for name in disk.list(log.directory) if name.endswith(paths.SNAPSHOT)]
    assert {paths.parse_offset(name) for name in names} == {*bases, 8}


def test_no_snapshot_of_removed_records_is_believed() -> None:
    log = new_log()
    append(log, b"a", producer=(7, 0, 0))
    append(log, b"b", producer=(7, 0, 1))
    write_snapshot(log.files, log.directory, log.transactions.producers, 2)
    truncate_to(log, 1)
    log.transactions.reload(0, 0, 0)
    assert append(log, b"c", producer=(7, 0, 1)) == 1
    path = paths.segment_file(log.directory, 2, paths.SNAPSHOT)
    assert log.files.stat(path) is None
